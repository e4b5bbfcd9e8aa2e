/**
 * Looks at a data folder that no service holds, without changing a byte: what is there, what is damaged, and everything
 * that can still be read. For `check` and `dump`.
 */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { formatBytes } from '../../byte-text.ts'
import { EdgeError } from '../../errors.ts'
import { notAFolder } from '../../file-kind.ts'
import { lockHolder } from '../../file-lock.ts'
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import { parseStore, type StoreDescriptor } from '../catalog/descriptor.ts'
import { DescriptorFiles } from '../catalog/descriptor-files.ts'
import { METADATA_FILE, METADATA_FILES, OFFSETS_FILE, REBUILT_ENDING, STORE_FILE } from '../catalog/layout.ts'
import { inspectStore, soundOr } from '../catalog/store-state.ts'
import { BATCH_HEADER_SIZE, BATCH_KIND, decodeExternal, EXTERNAL_BODY_SIZE } from '../core/batch-header.ts'
import { GROUP_FLAG } from '../core/journal-format.ts'
import type { EncryptionSettings } from '../encryption-settings.ts'
import { zstdCodec } from '../io/block-codec.ts'
import { bodyChecksum } from '../io/checksum.ts'
import type { FileSystem } from '../io/file-system.ts'
import { type FoundBatch, type FoundJournal, readJournal, visitBatches } from '../io/journal-recovery.ts'
import { readStoreKeys } from '../io/key-source.ts'
import { REFUGE } from '../io/refuge.ts'
import type { StoreKeys } from '../io/store-keys.ts'
import { missingChecks, refuseWrongKeys } from '../key-check.ts'
import { type DatabaseReport, inspectDatabase, NO_DATABASE } from '../metadata/integrity.ts'
import { readTrail } from '../metadata/offset-trail.ts'
import { type FoundTrail, NO_TRAIL } from '../metadata/trail-rows.ts'
import { missingOf } from '../missing-journal.ts'
import { quotedTopic } from '../place-text.ts'
import { describeMissing, HEADER_MENDED, JOURNAL_HEADER_COPIED } from '../recovery-report.ts'
import { type InspectedOffset, mergeOffsets } from './consumer-offsets.ts'
import { type InspectedPartition, type InspectedTopic, readNames, type Tell } from './names.ts'
import { type JournalPlace, PartitionWalk, type WalkCounts } from './partition-walk.ts'
import { createReadOnlyFileSystem } from './read-only-file-system.ts'

export interface InspectionFinding {
  readonly level: 'error' | 'warn'
  /** In the data folder. */
  readonly path: string
  readonly text: string
}

/** Bytes of what the data folder holds. */
export interface StoreSizes {
  readonly segments: number
  readonly journal: number
  readonly metadata: number
  readonly quarantine: number
}

/** More findings are counted, not kept: a disk that fell apart has one a block. */
const MAX_FINDINGS = 1000
const LOCK_FILE = 'lock'

export class StoreInspection {
  readonly path: string
  /** Hex; null when `store.json` cannot be read. */
  readonly storeId: string | null
  readonly topics: readonly InspectedTopic[]
  readonly sizes: StoreSizes
  /** The journal ends as a clean stop leaves it. */
  readonly isCleanStop: boolean
  readonly findings: InspectionFinding[] = []
  /** Findings that were not kept. */
  findingsLeftOut = 0
  readonly #fileSystem: FileSystem
  readonly #journal: FoundJournal
  readonly #places = new Map<number, JournalPlace[]>()
  readonly #syncedEnds: ReadonlyMap<number, bigint>
  readonly #offsets: ReadonlyMap<number, readonly InspectedOffset[]>

  readonly #keys: StoreKeys
  /** Files are sealed with keys that were not given: of those only checksums are looked at. */
  readonly #isBlind: boolean

  /** Use `openInspection`. */
  constructor(path: string, options: { nativeBinding?: string; fileSystem: FileSystem; keys: StoreKeys }) {
    const { nativeBinding, fileSystem, keys } = options
    this.path = path
    this.#fileSystem = fileSystem
    this.#keys = keys
    const store = this.#readStore()
    this.storeId = store === null ? null : Buffer.from(store.storeId).toString('hex')
    this.#isBlind = missingChecks(store?.keyCheck ?? null, keys).length > 0
    if (this.#isBlind)
      this.#tell('warn', STORE_FILE, 'names a key that was not given: of sealed files only checksums are looked at')
    const database = this.#readDatabase(nativeBinding)
    this.#offsets = mergeOffsets(database, this.#readTrail())
    this.#journal = readJournal({ fileSystem, storeIdBytes: undefined, checksum: bodyChecksum, keys })
    for (const name of this.#journal.copiedNames) this.#tell('warn', `journal/${name}`, JOURNAL_HEADER_COPIED)
    for (const name of this.#journal.mendedNames) this.#tell('warn', `journal/${name}`, HEADER_MENDED)
    this.#syncedEnds = database.syncedEnds
    for (const { level, path, text } of describeMissing(missingOf(this.#journal, database.journalFiles)))
      this.#tell(level, path, text)
    this.topics = readNames(fileSystem, database.descriptors, this.#tell)
    this.isCleanStop = isCleanStop(this.#journal)
    this.#readPlaces()
    this.sizes = {
      segments: folderSize(join(path, 'streams')) + folderSize(join(path, REFUGE)),
      journal: folderSize(join(path, 'journal')),
      metadata: METADATA_FILES.reduce((sum, name) => sum + folderSize(join(path, name)), 0),
      quarantine: folderSize(join(path, 'quarantine')),
    }
  }

  /** Everything readable of a partition, in order; damage is told to `findings`. Counts are final when it has ended. */
  read(partition: InspectedPartition): { readonly counts: WalkCounts; batches(): AsyncGenerator<StoredBatch> } {
    const journal = this.#places.get(partition.key) ?? []
    return new PartitionWalk({
      fileSystem: this.#fileSystem,
      checksum: bodyChecksum,
      codec: zstdCodec,
      keys: this.#keys,
      isBlind: this.#isBlind,
      partition,
      syncedEnd: this.#syncedEnds.get(partition.key) ?? 0n,
      journal,
      tell: (level, path, text) => this.#tell(level, path, `${text} (${this.#placeText(partition)})`),
    })
  }

  #placeText(partition: InspectedPartition): string {
    const topic = this.topics.find(({ partitions }) => partitions.includes(partition))
    const what = `partition ${partition.partitionId}`
    return topic === undefined ? what : `${quotedTopic(topic.streamName, topic.topicName)}, ${what}`
  }

  /** How far consumers, groups and devices have come in a partition: the database and the offset trail together. */
  consumerOffsets(partition: InspectedPartition): readonly InspectedOffset[] {
    return this.#offsets.get(partition.key) ?? []
  }

  close(): void {
    for (const { handle } of this.#journal.files) handle.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  readonly #tell: Tell = (level, path, text) => {
    if (this.findings.length < MAX_FINDINGS) this.findings.push({ level, path, text })
    else this.findingsLeftOut++
  }

  #readStore(): StoreDescriptor | null {
    const state = inspectStore(this.#fileSystem, true)
    if (state.kind === 'existing') return state.store
    const found = new DescriptorFiles(this.#fileSystem).read(STORE_FILE)
    const store = found.kind === 'sound' ? soundOr(STORE_FILE, parseStore(found.body)) : null
    if (store === null) this.#tell('error', STORE_FILE, 'is missing or damaged; the next start makes it anew')
    return store
  }

  #readDatabase(nativeBinding: string | undefined): DatabaseReport {
    // A start that ended while it rebuilt a damaged one may have left the whole one without its name.
    const path = [METADATA_FILE, METADATA_FILE + REBUILT_ENDING]
      .map((name) => join(this.path, name))
      .find((each) => existsSync(each))
    if (path === undefined) {
      this.#tell(
        'error',
        METADATA_FILE,
        'is missing; the next start makes it anew, without users, tokens and most offsets',
      )
      return NO_DATABASE
    }
    const report = inspectDatabase(path, nativeBinding)
    if (report.isNewer)
      throw new EdgeError(
        'EDGE_STORE_NEWER',
        `${METADATA_FILE} has layout ${report.version}, which is newer than this release`,
      )
    for (const problem of report.problems) this.#tell('error', METADATA_FILE, problem)
    return report
  }

  #readTrail(): FoundTrail {
    try {
      const found = readTrail(join(this.path, OFFSETS_FILE))
      const text = `${found.damagedCount} rows are torn or damaged and left out: some offsets may be a second older`
      if (found.damagedCount > 0) this.#tell('warn', OFFSETS_FILE, text)
      return found
    } catch (error) {
      this.#tell('warn', OFFSETS_FILE, `cannot be read: some offsets may be a second older (${String(error)})`)
      return NO_TRAIL
    }
  }

  #readPlaces(): void {
    const known = new Set(this.topics.flatMap(({ partitions }) => partitions.map(({ key }) => key)))
    for (const name of this.#journal.strangers) this.#tell('warn', `journal/${name}`, 'is no file of ours')
    const tally = visitBatches(this.#journal, bodyChecksum, (batch) => {
      const { key, kind } = batch.header
      if (kind === BATCH_KIND.sequence || !known.has(key)) return
      const file = this.#journal.files.find(({ number }) => number === batch.fileNumber)
      if (file === undefined) return
      const { header, position, size, isDamaged } = batch
      const places = this.#places.get(key) ?? []
      this.#places.set(key, places)
      places.push({ header, file, position, size, isDamaged, externalRun: externalRunOf(batch) })
    })
    if (this.#isBlind) return
    for (const { file, position, reason } of tally.unopened)
      this.#tell('error', `journal/${file.number}`, `group at ${position} cannot be opened: ${reason}`)
    if (tally.lostBytes > 0)
      this.#tell('error', 'journal', `${formatBytes(tally.lostBytes)} that may have held messages cannot be read`)
  }
}

export interface InspectionOptions {
  readonly path: string
  readonly nativeBinding?: string
  readonly encryption?: EncryptionSettings
  /** Without any key, look at the checksums of sealed files, which say whether they are damaged. */
  readonly isBlindAllowed?: boolean
}

/**
 * @throws {EdgeError} EDGE_STORE_IN_USE while a service holds the folder, EDGE_STORE_MISSING, EDGE_STORE_NEWER,
 *   EDGE_KEY_WRONG, EDGE_IO.
 */
export function openInspection(options: InspectionOptions): StoreInspection {
  const { path, encryption, isBlindAllowed, ...rest } = options
  refuseOtherThanFolder(path)
  refuseHeld(path)
  const fileSystem = createReadOnlyFileSystem(path)
  const keys = readStoreKeys(encryption)
  if (keys.checks.length > 0 || isBlindAllowed !== true) refuseWrongKeys(fileSystem, keys)
  return new StoreInspection(path, { ...rest, fileSystem, keys })
}

/** Nothing of a store is in the folder: the first start has not been. @throws {EdgeError} EDGE_STORE_MISSING. */
export function isEmptyStore(path: string): boolean {
  if (!existsSync(path)) return true
  refuseOtherThanFolder(path)
  return inspectStore(createReadOnlyFileSystem(path), false).kind === 'first-start'
}

function refuseOtherThanFolder(path: string): void {
  const wrong = existsSync(path) ? notAFolder(path) : 'it is not there'
  if (wrong !== undefined) throw new EdgeError('EDGE_STORE_MISSING', `data folder ${path}: ${wrong}`)
}

/** @throws {EdgeError} EDGE_STORE_IN_USE while a service holds the folder. */
function refuseHeld(path: string): void {
  const pid = lockHolder(join(path, LOCK_FILE))
  if (pid === null) return
  throw new EdgeError('EDGE_STORE_IN_USE', `data folder ${path} is in use by process ${pid}`, { details: { pid } })
}

/** The reference stands at the end of the body, behind a producer's tag. */
function externalRunOf({ header, area, position, isDamaged }: FoundBatch): number | null {
  if (header.kind !== BATCH_KIND.external || isDamaged) return null
  return decodeExternal(area, position + BATCH_HEADER_SIZE + header.bodySize - EXTERNAL_BODY_SIZE).runNumber
}

function isCleanStop({ scan }: FoundJournal): boolean {
  const last = scan.chain.at(-1)
  return last !== undefined && (last.header.flags & GROUP_FLAG.isCleanStop) !== 0
}

/** Of a file or folder; 0 when it is not there. */
function folderSize(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return 0
  if (!found.isDirectory()) return found.size
  const entries = readdirSync(path, { withFileTypes: true, recursive: true })
  return entries
    .filter((entry) => entry.isFile())
    .reduce(
      (sum, entry) => sum + (statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    )
}
