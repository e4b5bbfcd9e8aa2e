/**
 * The engine: partitions over one journal and their segments. Opens and recovers them, takes appends, serves reads, repacks
 * full journal files in the background. Names and settings of topics are the catalog's.
 */
import { type EdgeError, toEdgeError } from '../errors.ts'
import type { RecordBatch } from '../sdk/wire/batch.ts'
import type {
  Durability,
  LogStats,
  Partition,
  ProducerTable,
  ProducerTag,
  ReadRequest,
  ReadResult,
  Receipt,
  SpaceStats,
  TopicOptions,
} from './api.ts'
import { AppendPath } from './append-path.ts'
import { keepOffsetsToldBy, writeCheckpoint } from './checkpoint.ts'
import { closedInJournal, type JournalSegment } from './core/journal-segments.ts'
import { later } from './core/offset.ts'
import type { PendingBatch } from './core/pending-batch.ts'
import { JUMP } from './core/watermark.ts'
import { DiskTrouble } from './disk-trouble.ts'
import type { EngineOptions } from './engine-options.ts'
import {
  createJournal,
  createJournalFiles,
  createLargeBatches,
  createMaintenance,
  createReader,
  createRemoval,
  createRepacker,
  createSegmentFiles,
  machineStart,
  recover,
  type SegmentWriting,
  segmentSizeOf,
} from './engine-parts.ts'
import { FolderTrouble } from './folder-trouble.ts'
import { syncFound } from './found-segments.ts'
import { reportHole } from './hole-report.ts'
import { bodyChecksum } from './io/checksum.ts'
import type { Journal } from './io/journal.ts'
import type { JournalFiles } from './io/journal-files.ts'
import { type FoundJournal, readJournal } from './io/journal-recovery.ts'
import type { LargeBatches } from './io/large-batches.ts'
import type { PartitionReader } from './io/partition-reader.ts'
import type { Repacker } from './io/repacker.ts'
import type { SegmentFiles } from './io/segment-files.ts'
import { noKeys } from './io/store-keys.ts'
import { journalSizes, setFileStates } from './journal-start.ts'
import type { Maintenance } from './maintenance.ts'
import { MovedPartitions } from './moved-partitions.ts'
import { LogPartition, type PartitionServices } from './partition.ts'
import type { AppendGate, DroppedSegments, PartitionHost, PartitionSpec, SealedSegment, SegmentHost } from './ports.ts'
import { Producers } from './producers.ts'
import {
  clearLeftovers,
  reportAdopted,
  reportHeaders,
  reportKept,
  reportLostEnds,
  reportMissingFiles,
  reportRefused,
  reportUnknownKeys,
  reportUnopened,
  reportUnreadable,
} from './recovery-report.ts'
import { RunNumbers } from './run-numbers.ts'
import type { SegmentRemoval } from './segment-removal.ts'
import { activeView, journalViews, sealedViews } from './segment-views.ts'
import { SideFiles } from './side-files.ts'

/** How long an open waits for unproven groups to be written again; then it goes on, with appends refused. */
const AGAIN_WAIT_MS = 10_000
/** How long a stop waits for the last batches; who still waits then is told. */
const CLOSE_WAIT_MS = 5000

export async function openEngine(options: EngineOptions): Promise<LogEngine> {
  const { fileSystem, storeIdBytes, keys = noKeys, rules = {} } = options
  const found = readJournal({ fileSystem, storeIdBytes, checksum: bodyChecksum, keys, rules })
  // Names seen now may be in the cache alone: made by a process that was killed before it could sync them.
  fileSystem.makeDirectory('journal')
  await fileSystem.syncDirectory('')
  await fileSystem.syncDirectory('journal')
  const engine = new LogEngine(options, found)
  await options.descriptors.keepAdopted()
  await engine.start()
  return engine
}

export class LogEngine implements PartitionHost, SegmentHost, PartitionServices {
  readonly partitions = new Map<number, LogPartition>()
  readonly producers: Producers
  readonly journal: Journal
  readonly files: JournalFiles
  readonly segmentFiles: SegmentFiles
  readonly maintenance: Maintenance
  readonly #large: LargeBatches
  readonly #appends: AppendPath
  readonly removal: SegmentRemoval
  readonly #sideFiles: SideFiles
  readonly #folders: FolderTrouble
  /** Files found at open that nothing can be made of, to be set aside. */
  readonly damagedPaths: readonly string[]
  readonly #options: EngineOptions
  readonly #reader: PartitionReader
  readonly #repacker: Repacker
  readonly #moved = new MovedPartitions()
  #gate: AppendGate | undefined
  readonly #isMarkLast: boolean
  readonly #unsyncedPaths: readonly string[]
  /** The clean stop before this start may still be all that the disk knows. */
  #isStartUnrecorded = false
  #isClosed = false

  constructor(options: EngineOptions, found: FoundJournal) {
    const { fileSystem, settings, clock, scheduler, report, descriptors, keys = noKeys } = options
    this.#options = options
    this.#sideFiles = new SideFiles(fileSystem, clock)
    this.#folders = new FolderTrouble(options)
    this.producers = new Producers(options.producerStore, settings.max_publishers)
    this.segmentFiles = createSegmentFiles(options)
    for (const spec of descriptors.specs()) this.partitions.set(spec.key, new LogPartition(spec, this))

    const start = machineStart(options, found)
    const trouble = new DiskTrouble(fileSystem, report)
    const { firstLostKey } = descriptors
    const recovered = recover(options, start, {
      journal: found,
      partitions: this.partitions,
      hadFailure: trouble.wasMarked,
      tagged: (batch, isProven) => this.producers.replay(batch, isProven),
      lost: (key, durability) => this.#adopted(key, durability, firstLostKey),
      sequenceOwner: (tag) => this.producers.ownerOf(tag),
    })
    const leftovers = clearLeftovers(fileSystem, recovered)
    this.damagedPaths = [...leftovers.damagedPaths, ...found.strangers.map((name) => `journal/${name}`)]
    reportUnknownKeys(recovered, report)
    reportUnreadable(recovered, report)
    reportLostEnds(recovered, options)
    reportRefused(recovered, options)
    reportHeaders(recovered, found, report)
    reportMissingFiles(recovered, report)
    reportUnopened(recovered.damage.unopened, report, options.setAside)
    const runs = new RunNumbers(recovered.highestRun)
    runs.overtake(this.partitions.values(), leftovers.stuckPaths, recovered.unlisted, found.scan.nextOrdinal)
    this.#isMarkLast = recovered.isMarkLast
    this.#unsyncedPaths = [...recovered.unsyncedPaths, ...leftovers.emptiedPaths]

    this.removal = createRemoval(options, {
      segmentFiles: this.segmentFiles,
      closedSegments: ({ key }) => [...this.sealedSegments(key), ...this.journalSegments(key)],
      exclusive: (task) => this.maintenance.exclusive(task),
      makeRoom: () => this.maintenance.giveUpDropReserve(),
      changed: () => this.#roomMade(),
    })
    // A power cut brought back what had been dropped.
    const kept = [...this.partitions.values()].flatMap((each) => this.removal.unlinkBelow(each, each.logStartOffset))
    reportKept([...leftovers.emptiedPaths, ...leftovers.keptPaths, ...leftovers.stuckPaths, ...kept], report)

    setFileStates(found, start.isAllOnDisk, keys.currentId)
    const { fileSize, largestSize } = journalSizes(settings.journal_file_size, found, recovered.again)
    this.files = createJournalFiles(options, found, {
      fileSize,
      nextSequence: () => this.journal.nextSequence,
      recycling: () => keepOffsetsToldBy(options.hints, [...this.partitions.values()]),
    })
    const { files, segmentFiles, producers } = this
    const maintenance = () => this.maintenance
    const settled = () => this.#moved.notify()
    const journal = createJournal(options, start, { files, found, recovered, trouble, maintenance, settled })
    this.journal = journal
    this.#reader = createReader(options, { journal, files, segmentFiles, largestFileSize: largestSize })
    const writing: SegmentWriting = {
      nextRunNumber: () => runs.next(),
      written: options.flash.written,
      placed: (partition, refusal) => this.#folders.placed(partition, refusal),
      giveUpFolder: (partition, refusal) => runs.giveUpFolder(partition, refusal),
    }
    this.#large = createLargeBatches(options, writing, {
      journal,
      stored: (refusal) => {
        trouble.stored(refusal)
        // What may be dropped goes now, not at the next time of the schedule.
        if (refusal?.code === 'EDGE_DISK_FULL') this.#gate?.segmentsChanged()
      },
      entered: (messageCount, recordsSize) => this.#appends.entered(messageCount, recordsSize),
    })
    this.#appends = new AppendPath({ journal, large: this.#large, producers, clock, scheduler })
    this.#repacker = createRepacker(options, writing, {
      segments: segmentFiles,
      partitions: () => this.partitions.values(),
    })
    this.maintenance = createMaintenance(options, {
      files,
      fileSize,
      journal,
      repack: (file) => this.#repacker.pack(file),
      checkpoint: (packed) => this.#checkpoint(packed),
      changed: () => this.#gate?.segmentsChanged(),
    })
  }

  /** Prepares files and waits until what was not proven is safe again. */
  async start(): Promise<void> {
    await syncFound(this.#options.fileSystem, this.#unsyncedPaths)
    await this.maintenance.start()
    this.files.noteGenerations()
    if (this.#isMarkLast) return this.#startSession()
    if (!this.journal.hasUnsynced) return
    await this.#within(AGAIN_WAIT_MS, this.journal.flush())
  }

  /** Waits for `task`, not for ever: a full disk may keep it waiting. Its failure was reported where it happened. */
  async #within(milliseconds: number, task: Promise<void>): Promise<void> {
    let cancel = (): void => {}
    const tooLong = new Promise<void>((resolve) => {
      cancel = this.#options.scheduler.after(milliseconds, resolve)
    })
    await Promise.race([task.catch(() => {}), tooLong])
    cancel()
  }

  /** The clean stop spared buffered topics a jump: it must not do so again once offsets were given. */
  async #startSession(): Promise<void> {
    try {
      await this.journal.startSession()
    } catch {
      this.#isStartUnrecorded = true
      for (const { watermark } of this.partitions.values()) {
        if (watermark.isBuffered) watermark.jumpTo(watermark.nextOffset + JUMP)
      }
    }
  }

  setGate(gate: AppendGate): void {
    this.#gate = gate
    this.#appends.gate = gate
  }

  get refusal(): EdgeError | undefined {
    return this.#appends.refusal
  }

  /** @param failure why nothing can be taken, whatever the disk says; undefined when that is over. */
  setDisplaced(failure: EdgeError | undefined): void {
    this.#appends.displaced = failure
    this.journal.roomMade()
  }

  readonly producerTable: ProducerTable = {
    numberOf: (deviceName) => this.producers.numberOf(deviceName),
    have: (device, epoch, lane) => this.producers.have(device, epoch, lane),
    lanes: (device, epoch) => this.producers.lanes(device, epoch),
    devices: () => this.producers.devices(),
    forget: (deviceName) => this.producers.forget(deviceName),
    record: (tag, receipt) => this.#appends.recordSequence(tag, receipt),
  }

  stats(): Omit<LogStats, keyof SpaceStats> {
    const { files, journal } = this
    const { flash } = this.#options
    const partitions = [...this.partitions.values()]
    return {
      journalFileCount: files.all.length,
      journalUsedBytes: files.usedBytes,
      segmentCount: partitions.reduce((sum, partition) => sum + partition.segmentCount, 0),
      diskUsedBytes: this.diskUsedBytes(),
      refusingFolderCount: this.#folders.count,
      ...this.#appends.counters,
      ...journal.counters,
      writtenBytes: journal.counters.writtenBytes + flash.writtenBytes,
      isSyncAwaited: journal.hasUnsynced,
      lastSyncUs: journal.lastSyncUs,
      flashBudgetPerDayBytes: flash.budget.perDayBytes,
      flashBudgetLeftBytes: flash.leftBytes,
    }
  }

  hasRoom(sizeBytes: number): boolean {
    return this.#appends.hasRoom(sizeBytes)
  }

  isLarge(sizeBytes: number): boolean {
    return this.#appends.isLarge(sizeBytes)
  }

  async flush(): Promise<void> {
    await this.#large.settled()
    await this.journal.flush()
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#appends.close()
    // Repacking goes on meanwhile: it may be what the last batches wait for.
    await this.#within(CLOSE_WAIT_MS, this.flush())
    await this.removal.close()
    await this.maintenance.close()
    this.#folders.close()
    this.#repacker.close()
    try {
      this.#checkpoint([...this.partitions.values()])
    } catch (error) {
      const { code, message } = toEdgeError(error)
      const text = `the checkpoint at the end could not be written, the next start reads more: ${message}`
      this.#options.report({ event: 'log.checkpoint.failed', level: 'warn', text, fields: { error_code: code } })
    }
    // A duty to jump that nothing has taken up yet must survive: an unclean stop repeats it, a clean one would forget it.
    const isOwing = [...this.partitions.values()].some((partition) => partition.watermark.isOwing)
    await this.journal.close(!isOwing)
    this.segmentFiles.close()
    this.files.close()
  }

  // ---- PartitionHost ------------------------------------------------------------------------------------------------

  addPartition(spec: PartitionSpec): Partition {
    const partition = new LogPartition(spec, this)
    if (this.#isStartUnrecorded) partition.watermark.oweFrom(partition.nextOffset)
    this.partitions.set(spec.key, partition)
    return partition
  }

  removePartition(key: number): void {
    const partition = this.partitions.get(key)
    if (partition === undefined) return
    partition.isRemoved = true
    this.partitions.delete(key)
    // An open file keeps its place on the disk when the trash has removed it.
    const segments = [...partition.segments, ...partition.externals.values()]
    for (const segment of segments) {
      this.segmentFiles.forget(segment.path)
      this.segmentFiles.removed(segment)
    }
    this.#folders.removed(key)
    // What stays there nothing refers to: the next start removes it.
    if (segments.some(({ directory }) => directory !== partition.spec.directory))
      void this.removal.clearRefuge(key).catch(() => {})
  }

  updateOptions(key: number, options: TopicOptions): void {
    const partition = this.partitions.get(key)
    if (partition !== undefined) partition.options = options
  }

  // ---- SegmentHost --------------------------------------------------------------------------------------------------

  sealedSegments(key: number): readonly SealedSegment[] {
    return sealedViews(this.partitions.get(key)?.segments ?? [], this.segmentFiles)
  }

  journalSegments(key: number): readonly SealedSegment[] {
    const partition = this.partitions.get(key)
    if (partition === undefined) return []
    const headerAt = (offset: bigint) => this.#reader.headerAt(partition, offset)
    return journalViews(this.closedInJournal(partition), { holes: partition.holesFound, headerAt })
  }

  hasLargeBatches(key: number): boolean {
    return (this.partitions.get(key)?.externals.size ?? 0) > 0
  }

  activeSegment(key: number): SealedSegment | null {
    return activeView(this.partitions.get(key)?.segments ?? [], this.segmentFiles)
  }

  async sealActive(key: number): Promise<void> {
    const partition = this.partitions.get(key)
    if (partition !== undefined) await this.removal.sealActive(partition)
  }

  async dropOldest(key: number, count: number, lastOffset: bigint | null): Promise<DroppedSegments | undefined> {
    const partition = this.partitions.get(key)
    return partition === undefined ? undefined : this.removal.dropOldest(partition, count, lastOffset)
  }

  diskUsedBytes(): number {
    let segments = 0
    for (const partition of this.partitions.values()) {
      for (const segment of partition.segments) segments += segment.sizeBytes
      for (const segment of partition.externals.values()) segments += segment.sizeBytes
    }
    const besides = this.maintenance.reserveBytes + this.#sideFiles.sizeBytes + this.#options.descriptors.trashBytes
    return segments + this.files.totalBytes + besides
  }

  // ---- PartitionServices --------------------------------------------------------------------------------------------

  get isClockTrusted(): boolean {
    return this.#options.isClockTrusted?.() ?? true
  }

  wallUs(): bigint {
    return this.#options.clock.wallUs()
  }

  checkAppend(partition: LogPartition, batch: RecordBatch, tag: ProducerTag | undefined): void {
    this.#appends.check(partition, batch, tag)
  }

  dropsNewest(partition: LogPartition, batch: RecordBatch, receipt: Receipt, tag: ProducerTag | undefined): boolean {
    return this.#appends.dropsNewest(partition, batch, receipt, tag)
  }

  submit(batch: PendingBatch, partition: LogPartition, recordsView: Uint8Array, tag: ProducerTag | undefined): void {
    this.#appends.submit(batch, partition, recordsView, tag)
  }

  read(partition: LogPartition, request: ReadRequest, end: bigint): ReadResult | Promise<ReadResult> {
    const from = later(request.fromOffset, partition.logStartOffset)
    if (from >= end) return { batches: [], nextOffset: from, messageCount: 0 }
    const { maxCount, maxBytes } = request
    return this.#reader.read(partition, { from, end, maxCount, maxBytes })
  }

  offsetAt(partition: LogPartition, timeUs: bigint): bigint | Promise<bigint> {
    return this.#reader.offsetAt(partition, timeUs, partition.logStartOffset, partition.visibleEnd)
  }

  closedInJournal(partition: LogPartition): readonly JournalSegment[] {
    const { index, externals, watermark, segments } = partition
    const last = segments.at(-1)
    const growing = last?.isClosed ? undefined : last
    const { writtenEnd, durableEnd } = watermark
    const limitBytes = segmentSizeOf(partition, this.#options.settings)
    return closedInJournal({ growing, index, externals, writtenEnd, durableEnd }, limitBytes)
  }

  purge(partition: LogPartition): Promise<void> {
    return this.removal.purge(partition)
  }

  async deleteSegments(partition: LogPartition, count: number, barrierOffset: bigint | null): Promise<number> {
    return (await this.removal.dropOldest(partition, count, barrierOffset))?.count ?? 0
  }

  tagSettled(tag: ProducerTag, seenAtUs: bigint): void {
    this.producers.settled(tag, seenAtUs)
  }

  tagSynced(tag: ProducerTag, seenAtUs: bigint): void {
    this.producers.synced(tag, seenAtUs)
  }

  damaged(partition: LogPartition, from: bigint, end: bigint, cause: string | EdgeError): void {
    if (!partition.holesFound.add({ from, end, reason: 'damage' })) return
    reportHole(this.#options, partition, { from, end, cause })
  }

  grown(partition: LogPartition): void {
    if (partition.grownBytes < segmentSizeOf(partition, this.#options.settings)) return
    partition.grownBytes = 0
    this.#gate?.segmentsChanged()
  }

  moved(partition: LogPartition): void {
    this.#moved.add(partition)
  }

  // ---- inside -------------------------------------------------------------------------------------------------------

  /** A partition that no descriptor names: it was deleted, or else it is kept. */
  #adopted(key: number, durability: Durability, firstLostKey: number): LogPartition | undefined {
    if (key < firstLostKey) return undefined
    const partition = new LogPartition(this.#options.descriptors.adopt(key, durability), this)
    this.partitions.set(key, partition)
    reportAdopted(partition, this.#options)
    return partition
  }

  #checkpoint(packed: readonly LogPartition[]): void {
    writeCheckpoint({ producers: this.producers, store: this.#options.hints }, packed)
  }

  /** Segments went: who waits for room goes on, and retention sees whether more have to go. */
  #roomMade(): void {
    this.maintenance.kick()
    this.#gate?.segmentsChanged()
  }
}
