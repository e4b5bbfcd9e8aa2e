/** The log as one object: the engine (journal, segments, recovery), the catalog (names, descriptors, SQLite) and retention. */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { EdgeError, toEdgeError } from '../errors.ts'
import type { FileLock } from '../file-lock.ts'
import { defaultsOf } from '../setting.ts'
import type { Catalog, DropReport, Log, LogFinding, LogStats, MetadataStore, Partition, ProducerTable } from './api.ts'
import { METADATA_FILE } from './catalog/layout.ts'
import { checkSchedule, systemCron } from './cron.ts'
import { DataFolderWatch } from './data-folder-watch.ts'
import { type LogEngine, openEngine } from './engine.ts'
import { Findings } from './findings.ts'
import { FlashUse } from './flash-use.ts'
import { giveUpOneOf } from './io/ballast.ts'
import type { DiskSpace, FileSystem } from './io/file-system.ts'
import { isFlashDevice } from './io/flash-device.ts'
import { checkJournalVersions } from './io/journal-recovery.ts'
import { readStoreKeys } from './io/key-source.ts'
import { createNodeFileSystem, machineBootId } from './io/node-file-system.ts'
import { refugeFolder } from './io/refuge.ts'
import type { StoreKeys } from './io/store-keys.ts'
import { toldFileSystem } from './io/told-file-system.ts'
import { journalWitness } from './journal-start.ts'
import { keyCheckOf, refuseWrongKeys } from './key-check.ts'
import { type Names, type NamesOptions, openNames } from './names.ts'
import type { OpenLogOptions } from './open-options.ts'
import { partitionText } from './place-text.ts'
import { RetentionLoop } from './retention-loop.ts'
import { RETENTION_SETTINGS } from './retention-settings.ts'
import { systemScheduler } from './scheduler.ts'
import { StuckJournal } from './stuck-journal.ts'

export const LOCK_FILE = 'lock'
/** A day's budget on flash when nothing is configured: a card of 16 GB and 3,000 cycles then lasts for ten years. */
const AUTO_FLASH_BUDGET_BYTES = 8 * 1024 ** 3

export async function openLogStore(options: OpenLogOptions): Promise<Log> {
  const keys = readStoreKeys(options.encryption)
  if (options.retention !== undefined && options.cron === undefined) await checkSchedule(options.retention.schedule)
  const fileSystem = options.fileSystem ?? openFolder(options)
  const lock = lockFolder(fileSystem, options.path)
  const findings = new Findings(options.clock, options.logger)
  const flash = new FlashUse(flashBudget(options), options.clock)
  let names: Names | undefined
  try {
    checkJournalVersions(fileSystem)
    refuseWrongKeys(fileSystem, keys)
    names = await openNamesWhenFull({
      fileSystem,
      metadataPath: options.metadataPath ?? join(options.path, METADATA_FILE),
      ...(options.nativeBinding === undefined ? {} : { nativeBinding: options.nativeBinding }),
      clock: options.clock,
      scheduler: options.scheduler ?? systemScheduler,
      report: findings.report,
      flash,
      settings: options.settings,
      expectExisting: options.expectExisting === true,
      journalWitness: () => journalWitness(fileSystem),
      keyCheck: keyCheckOf(keys),
    })
    return await openOnNames(options, { fileSystem, lock, findings, flash, names }, keys)
  } catch (error) {
    await names?.close()
    lock.remove()
    throw error
  }
}

/** A start on a full disk writes little: what is kept for that goes, and is made again when there is room. */
async function openNamesWhenFull(options: NamesOptions): Promise<Names> {
  for (;;) {
    try {
      return await openNames(options)
    } catch (error) {
      if (!isRoomMade(options.fileSystem, error)) throw error
    }
  }
}

const isRoomMade = (fileSystem: FileSystem, error: unknown): boolean =>
  toEdgeError(error).code === 'EDGE_DISK_FULL' && giveUpOneOf(fileSystem)

interface Parts {
  readonly fileSystem: FileSystem
  readonly lock: FileLock
  readonly findings: Findings
  readonly flash: FlashUse
  readonly names: Names
}

async function openOnNames(options: OpenLogOptions, parts: Parts, keys: StoreKeys): Promise<Log> {
  const { fileSystem, findings, flash, names } = parts
  const { catalog, metadata, quarantine } = names
  const { settings, clock, scheduler = systemScheduler, isClockTrusted = () => true } = options
  const engine = await openEngine({
    fileSystem,
    clock,
    scheduler,
    report: findings.report,
    settings,
    flash,
    storeIdBytes: catalog.storeId,
    bootId: options.bootId ?? machineBootId(),
    descriptors: catalog,
    hints: metadata.hints,
    producerStore: metadata.producers,
    randomU64: options.randomU64 ?? (() => randomBytes(8).readBigUInt64LE()),
    isClockTrusted,
    keys,
    setAside: (origin, bytesView) => void quarantine.keep(origin, bytesView, clock.wallUs()),
    ...(options.codec === undefined ? {} : { codec: options.codec }),
    ...(options.rules === undefined ? {} : { rules: options.rules }),
  })
  try {
    return await openOnEngine(options, parts, engine)
  } catch (error) {
    await engine.close()
    throw error
  }
}

async function openOnEngine(options: OpenLogOptions, parts: Parts, engine: LogEngine): Promise<Log> {
  const { fileSystem, findings, names } = parts
  const { catalog, metadata, quarantine } = names
  const { clock, scheduler = systemScheduler, isClockTrusted = () => true } = options
  for (const path of engine.damagedPaths) setAside(parts, path, clock.wallUs())
  catalog.attach(engine, (key) => engine.partitions.get(key))
  metadata.useTopicKeys((streamId, topicId) => {
    const topic = catalog.topic(streamId, topicId)
    return topic === undefined ? [] : topic.partitions.map((partition) => partition.key)
  })
  metadata.forgetUnknown(
    (streamId, topicId) => catalog.topic(streamId, topicId) !== undefined,
    (key) => engine.partitions.has(key),
  )
  for (const partition of engine.partitions.values()) metadata.clamp(partition, catalog)
  const retention = new RetentionLoop({
    settings: options.retention ?? defaultsOf(RETENTION_SETTINGS),
    clock,
    isClockTrusted,
    scheduler,
    cron: options.cron ?? systemCron,
    catalog,
    metadata,
    drops: metadata.drops,
    segments: engine,
    stuckJournal: new StuckJournal(engine),
    fileSystem,
    quarantine,
    report: findings.report,
  })
  engine.setGate(retention)
  await retention.start()
  const watch = new DataFolderWatch({
    path: options.path,
    fileSystem,
    lock: parts.lock,
    scheduler,
    report: findings.report,
    partitions: () => engine.partitions.values(),
    changed: (failure) => engine.setDisplaced(failure),
  })
  return new OpenedLog({ ...parts, engine, retention, watch })
}

/** Messages and password hashes are nobody's but the service's and its group's. */
const FOLDER_MODE = 0o750

/** Makes the data folder. A missing parent is a disk that is not mounted, not a folder to be made. */
function openFolder({ path, expectExisting, onProgress }: OpenLogOptions): FileSystem {
  if (expectExisting === true && !existsSync(path)) {
    const text = `data folder ${path} is not there though a store is expected in it`
    throw new EdgeError('EDGE_STORE_MISSING', text)
  }
  try {
    mkdirSync(dirname(path), { recursive: true })
    mkdirSync(path, { recursive: true, mode: FOLDER_MODE })
  } catch (cause) {
    const { message } = toEdgeError(cause)
    throw new EdgeError('EDGE_STORE_MISSING', `data folder ${path} cannot be made: ${message}`, { cause })
  }
  const fileSystem = createNodeFileSystem(path)
  return onProgress === undefined ? fileSystem : toldFileSystem(fileSystem, onProgress)
}

/** The first write into the folder: one that takes none is named as a whole. */
function lockFolder(fileSystem: FileSystem, path: string): FileLock {
  for (;;) {
    try {
      return fileSystem.lock(LOCK_FILE)
    } catch (cause) {
      if (isRoomMade(fileSystem, cause)) continue
      const { code, message, details } = toEdgeError(cause)
      if (code !== 'EDGE_IO') throw cause
      throw new EdgeError(code, `data folder ${path} cannot be written: ${message}`, { cause, details })
    }
  }
}

/** Keeps every edge out of the folder, which is there, until it is removed. @throws EDGE_STORE_IN_USE, EDGE_IO. */
export function lockStore(path: string): FileLock {
  return lockFolder(createNodeFileSystem(path), path)
}

function flashBudget({ settings, path }: OpenLogOptions): number {
  if (settings.flash_budget_per_day !== 'auto') return settings.flash_budget_per_day
  return isFlashDevice(path) ? AUTO_FLASH_BUDGET_BYTES : 0
}

function setAside({ findings, names }: Parts, path: string, nowUs: bigint): void {
  const owner = names.catalog
    .specs()
    .find(({ directory, key }) => [directory, refugeFolder(key)].some((folder) => path.startsWith(`${folder}/`)))
  const what = owner === undefined ? path : `${path} of ${partitionText(names.catalog, owner)}`
  try {
    const target = names.quarantine.take(path, nowUs)
    findings.report({
      event: 'log.file.quarantined',
      level: 'error',
      text: `${what} cannot be read and was moved to ${target}`,
      fields: { path, target },
    })
  } catch (error) {
    findings.report({
      event: 'log.file.unreadable',
      level: 'error',
      text: `${what} cannot be read and could not be moved: ${String(error)}`,
      fields: { path },
    })
  }
}

/** Asked often, also while the disk is away: that it cannot be asked is told by whoever wants to write. */
function spaceOf(fileSystem: FileSystem): DiskSpace {
  try {
    return fileSystem.space()
  } catch {
    return { freeBytes: 0, totalBytes: 0 }
  }
}

interface OpenedParts extends Parts {
  readonly engine: LogEngine
  readonly retention: RetentionLoop
  readonly watch: DataFolderWatch
}

class OpenedLog implements Log {
  readonly #parts: OpenedParts
  #closing: Promise<void> | undefined

  constructor(parts: OpenedParts) {
    this.#parts = parts
  }

  get storeId(): Uint8Array {
    return this.#parts.names.catalog.storeId
  }
  get catalog(): Catalog {
    return this.#parts.names.catalog
  }
  get metadata(): MetadataStore {
    return this.#parts.names.metadata
  }
  get producers(): ProducerTable {
    return this.#parts.engine.producerTable
  }
  get isWritable(): boolean {
    return this.#parts.engine.refusal === undefined
  }

  partition(key: number): Partition | undefined {
    return this.#parts.engine.partitions.get(key)
  }

  hasRoom(sizeBytes: number): boolean {
    return this.#parts.engine.hasRoom(sizeBytes)
  }

  onceRoom(callback: () => void): void {
    this.#parts.engine.journal.onceRoom(callback)
  }

  flush(): Promise<void> {
    return this.#parts.engine.flush()
  }

  stats(): LogStats {
    const { engine, retention, fileSystem } = this.#parts
    const { freeBytes, totalBytes } = spaceOf(fileSystem)
    return {
      ...engine.stats(),
      droppedMessages: retention.ledger.totalMessages(),
      diskBudgetBytes: retention.diskBudgetBytes(totalBytes),
      diskFreeBytes: freeBytes,
      diskTotalBytes: totalBytes,
      isOverDiskBudget: retention.isOverBudget,
      fullTopicCount: retention.fullTopicCount,
    }
  }

  findings(): readonly LogFinding[] {
    return this.#parts.findings.list
  }

  drops(): DropReport {
    return this.#parts.retention.ledger.report()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #close(): Promise<void> {
    const { watch, retention, engine, names, lock } = this.#parts
    watch.close()
    await retention.close()
    await engine.close()
    await names.close()
    lock.release()
  }
}
