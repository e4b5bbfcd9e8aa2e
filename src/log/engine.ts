/**
 * The engine: partitions over one journal and their segments. Opens and recovers them, takes appends, serves reads, repacks
 * full journal files in the background. Names and settings of topics are the catalog's.
 */
import { type EdgeError, toEdgeError } from '../errors.ts'
import type { RecordBatch } from '../sdk/wire/batch.ts'
import { sharedKernel } from '../sdk/wire/kernel/shared-kernel.ts'
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
import { AppendPath, MAX_BATCH_SIZE } from './append-path.ts'
import { writeCheckpoint } from './checkpoint.ts'
import { bootNumber, hashBootId, isSameBoot } from './core/boot.ts'
import { alignUp } from './core/byte-area.ts'
import { FlashBudget } from './core/flash-budget.ts'
import { PAGE_SIZE } from './core/journal-format.ts'
import { later } from './core/offset.ts'
import type { PendingBatch } from './core/pending-batch.ts'
import type { RollLimits } from './core/repack-plan.ts'
import { JUMP } from './core/watermark.ts'
import { DiskTrouble } from './disk-trouble.ts'
import type { EngineOptions } from './engine-options.ts'
import { reportHole } from './hole-report.ts'
import { zstdCodec } from './io/block-codec.ts'
import { bodyChecksum } from './io/checksum.ts'
import { Journal } from './io/journal.ts'
import { JournalFiles } from './io/journal-files.ts'
import { JournalReader } from './io/journal-reader.ts'
import { type FoundJournal, readJournal } from './io/journal-recovery.ts'
import { LargeBatches } from './io/large-batches.ts'
import { PartitionReader } from './io/partition-reader.ts'
import { Repacker } from './io/repacker.ts'
import { SegmentFiles } from './io/segment-files.ts'
import { noKeys } from './io/store-keys.ts'
import { groupCommitOptions, journalBufferSize, lastGroup, setFileStates } from './journal-start.ts'
import { Maintenance } from './maintenance.ts'
import { MovedPartitions } from './moved-partitions.ts'
import { LogPartition, type PartitionServices } from './partition.ts'
import type { AppendGate, PartitionHost, PartitionSpec, SealedSegment, SegmentHost } from './ports.ts'
import { Producers } from './producers.ts'
import { recoverPartitions } from './recovery.ts'
import {
  clearLeftovers,
  reportAdopted,
  reportMissingFiles,
  reportUnknownKeys,
  reportUnopened,
} from './recovery-report.ts'
import { SegmentRemoval } from './segment-removal.ts'
import { activeView, sealedViews } from './segment-views.ts'
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
  readonly budget: FlashBudget
  readonly maintenance: Maintenance
  readonly #large: LargeBatches
  readonly #appends: AppendPath
  readonly removal: SegmentRemoval
  readonly #sideFiles: SideFiles
  /** Files found at open that nothing can be made of, to be set aside. */
  readonly damagedPaths: readonly string[]
  readonly #options: EngineOptions
  readonly #reader: PartitionReader
  readonly #repacker: Repacker
  readonly #moved = new MovedPartitions()
  #gate: AppendGate | undefined
  #runNumber: number
  readonly #isAfterCleanStop: boolean
  #isClosed = false

  constructor(options: EngineOptions, found: FoundJournal) {
    const { fileSystem, settings, clock, scheduler, storeIdBytes, keys = noKeys, rules = {} } = options
    this.#options = options
    this.#sideFiles = new SideFiles(fileSystem, clock)
    this.budget = new FlashBudget(options.flashBudgetPerDayBytes, clock.monotonicUs())
    this.producers = new Producers(options.producerStore, settings.max_publishers)
    this.segmentFiles = new SegmentFiles({
      fileSystem,
      checksum: bodyChecksum,
      codec: options.codec ?? zstdCodec,
      maxOpenFiles: settings.open_segments,
      decodedBlocks: settings.decoded_blocks,
    })
    for (const spec of options.descriptors.specs()) this.partitions.set(spec.key, new LogPartition(spec, this))
    const bootHash = hashBootId(new TextEncoder().encode(options.bootId))
    const isAllOnDisk = rules.isCacheTrusted === true || !isSameBoot(found.scan.boots, bootHash)
    const trouble = new DiskTrouble(fileSystem, options.report)
    const hadFailure = trouble.wasMarked
    const firstUnknownKey = options.descriptors.nextKey
    const recovered = recoverPartitions({
      fileSystem,
      checksum: bodyChecksum,
      journal: found,
      keys,
      partitions: this.partitions,
      hints: options.hints,
      journalFileSize: settings.journal_file_size,
      isAllOnDisk,
      bootNumber: (highestSegmentBoot) => bootNumber(found.scan.boots, bootHash, { hadFailure, highestSegmentBoot }),
      rules,
      tagged: (batch, isProven) => this.producers.replay(batch, isProven),
      lost: (key, durability) => this.#adopted(key, durability, firstUnknownKey),
      sequenceOwner: (tag) => this.producers.ownerOf(tag),
    })
    this.damagedPaths = [...clearLeftovers(fileSystem, recovered), ...found.strangers.map((name) => `journal/${name}`)]
    reportUnknownKeys(recovered, options.report)
    reportMissingFiles(recovered, options.report)
    reportUnopened(recovered.damage.unopened, options.report, options.setAside)
    this.removal = new SegmentRemoval({
      fileSystem,
      segmentFiles: this.segmentFiles,
      descriptors: options.descriptors,
      scheduler,
      exclusive: (task) => this.maintenance.exclusive(task),
      makeRoom: () => this.maintenance.giveUpDropReserve(),
      changed: () => this.#roomMade(),
      isUnlinkedBeforeFloor: rules.isUnlinkedBeforeFloor === true,
    })
    // A power cut brought back what had been dropped.
    for (const partition of this.partitions.values()) {
      this.removal.unlinkBelow(partition, partition.logStartOffset)
    }
    this.#runNumber = recovered.highestRun
    this.#isAfterCleanStop = recovered.isClean
    setFileStates(found, isAllOnDisk, keys.currentId)
    this.files = new JournalFiles(
      {
        fileSystem,
        storeIdBytes,
        fileSize: settings.journal_file_size,
        keys,
        randomU64: options.randomU64,
        keyFloor: () => options.descriptors.nextKey,
        changed: (generations, isDurable) => options.hints.setJournalFiles(generations, isDurable),
        isOrderIgnored: rules.isPrepareOrderIgnored === true,
      },
      found.files,
    )
    const bufferSize = journalBufferSize(settings.journal_file_size, keys.currentId !== 0)
    this.journal = new Journal({
      files: this.files,
      start: {
        ordinal: found.scan.nextOrdinal,
        boot: recovered.boot,
        bootHash,
        last: lastGroup(found, isAllOnDisk),
        again: recovered.again,
      },
      bufferSize,
      isSealing: keys.currentId !== 0,
      commit: groupCommitOptions(settings, bufferSize),
      budget: this.budget,
      retryMs: settings.append_retry,
      clock,
      scheduler,
      checksum: bodyChecksum,
      randomU64: options.randomU64,
      events: {
        fileSealed: () => this.maintenance.kick(),
        fileWanted: () => this.maintenance.kick(),
        settled: () => this.#moved.notify(),
        startRecorded: () => trouble.startRecorded(),
        failed: (error, file) => trouble.failed(error, file, this.journal.refusal !== undefined),
        writableAgain: () => trouble.ended(),
      },
      rules,
    })
    // What was written before encryption was turned on may be larger than what is written now.
    const readBuffer = options.readBuffer ?? sharedKernel().reserve(journalBufferSize(settings.journal_file_size))
    this.#reader = new PartitionReader(
      new JournalReader(this.journal, this.files, bodyChecksum, readBuffer),
      this.segmentFiles,
    )
    const randomU32 = () => Number(options.randomU64() & 0xffffffffn)
    this.#large = new LargeBatches({
      fileSystem,
      scheduler,
      codec: options.codec ?? zstdCodec,
      checksum: bodyChecksum,
      journal: this.journal,
      storeIdBytes,
      keys,
      nextRunNumber: () => ++this.#runNumber,
      randomU32,
      maxWaitingBytes: MAX_BATCH_SIZE,
      written: (sizeBytes, syncCount) => this.#spend(sizeBytes, syncCount),
    })
    this.#appends = new AppendPath({
      journal: this.journal,
      large: this.#large,
      producers: this.producers,
      clock,
      scheduler,
    })
    this.#repacker = new Repacker({
      fileSystem,
      segments: this.segmentFiles,
      codec: options.codec ?? zstdCodec,
      checksum: bodyChecksum,
      clock,
      scheduler,
      storeIdBytes,
      keys,
      partitions: () => this.partitions.values(),
      limitsOf: (partition) => this.#limitsOf(partition),
      nextRunNumber: () => ++this.#runNumber,
      randomU32,
      written: (sizeBytes, syncCount) => this.#spend(sizeBytes, syncCount),
      rules,
    })
    this.maintenance = new Maintenance({
      fileSystem,
      clock,
      scheduler,
      files: this.files,
      fileCount: settings.journal_files,
      fileSize: settings.journal_file_size,
      retryMs: settings.append_retry,
      repackAfterUs: settings.repack_after * 1000,
      report: options.report,
      repack: (file) => this.#repacker.pack(file),
      checkpoint: (packed) => this.#checkpoint(packed),
      journal: this.journal,
      changed: () => this.#gate?.segmentsChanged(),
      isHoldIgnored: rules.isHoldIgnored === true,
    })
  }

  /** Prepares files and waits until what was not proven is safe again. */
  async start(): Promise<void> {
    await this.maintenance.start()
    this.files.noteGenerations()
    if (this.#isAfterCleanStop) return this.#startSession()
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
    return this.journal.refusal
  }

  readonly producerTable: ProducerTable = {
    numberOf: (deviceName) => this.producers.numberOf(deviceName),
    have: (device, epoch, lane) => this.producers.have(device, epoch, lane),
    lanes: (device, epoch) => this.producers.lanes(device, epoch),
    record: (tag, receipt) => this.#appends.recordSequence(tag, receipt),
  }

  stats(): Omit<LogStats, keyof SpaceStats> {
    const { files, journal, budget } = this
    const partitions = [...this.partitions.values()]
    return {
      journalFileCount: files.all.length,
      journalUsedBytes: files.usedBytes,
      segmentCount: partitions.reduce((sum, partition) => sum + partition.segmentCount, 0),
      diskUsedBytes: this.diskUsedBytes(),
      ...this.#appends.counters,
      ...journal.counters,
      lastSyncUs: journal.lastSyncUs,
      flashBudgetPerDayBytes: budget.perDayBytes,
      flashBudgetLeftBytes: budget.leftBytes(this.#options.clock.monotonicUs()),
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
    await this.maintenance.close()
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
    this.partitions.set(spec.key, partition)
    return partition
  }

  removePartition(key: number): void {
    const partition = this.partitions.get(key)
    if (partition === undefined) return
    partition.isRemoved = true
    this.partitions.delete(key)
    for (const segment of partition.segments) this.segmentFiles.forget(segment.path)
  }

  updateOptions(key: number, options: TopicOptions): void {
    const partition = this.partitions.get(key)
    if (partition !== undefined) partition.options = options
  }

  // ---- SegmentHost --------------------------------------------------------------------------------------------------

  sealedSegments(key: number): readonly SealedSegment[] {
    return sealedViews(this.partitions.get(key)?.segments ?? [], this.segmentFiles)
  }

  activeSegment(key: number): SealedSegment | null {
    return activeView(this.partitions.get(key)?.segments ?? [], this.segmentFiles)
  }

  async sealActive(key: number): Promise<void> {
    const partition = this.partitions.get(key)
    if (partition !== undefined) await this.removal.sealActive(partition)
  }

  diskUsedBytes(): number {
    let segments = 0
    for (const partition of this.partitions.values()) {
      for (const segment of partition.segments) segments += segment.sizeBytes
      for (const segment of partition.externals.values()) segments += segment.sizeBytes
    }
    return segments + this.files.totalBytes + this.maintenance.reserveBytes + this.#sideFiles.sizeBytes
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

  purge(partition: LogPartition): Promise<void> {
    return this.removal.purge(partition)
  }

  deleteSegments(partition: LogPartition, count: number, barrierOffset: bigint | null): Promise<number> {
    return this.removal.deleteSegments(partition, count, barrierOffset)
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

  moved(partition: LogPartition): void {
    this.#moved.add(partition)
  }

  // ---- inside -------------------------------------------------------------------------------------------------------

  /** A partition that no descriptor names: below the first key that was never given it was deleted, else it is kept. */
  #adopted(key: number, durability: Durability, firstUnknownKey: number): LogPartition | undefined {
    if (key < firstUnknownKey) return undefined
    const partition = new LogPartition(this.#options.descriptors.adopt(key, durability), this)
    this.partitions.set(key, partition)
    reportAdopted(partition, this.#options)
    return partition
  }

  #limitsOf(partition: LogPartition): RollLimits {
    const { segment_size, segment_max_age } = this.#options.settings
    return {
      sizeBytes: partition.options.segmentSizeBytes ?? segment_size,
      maxAgeUs: BigInt(segment_max_age) * 1000n,
    }
  }

  #checkpoint(packed: readonly LogPartition[]): void {
    writeCheckpoint(this.producers, this.#options.hints, packed)
  }

  /** Segments went: who waits for room goes on, and retention sees whether more have to go. */
  #roomMade(): void {
    this.maintenance.kick()
    this.#gate?.segmentsChanged()
  }

  #spend(sizeBytes: number, syncCount: number): void {
    const physical = alignUp(sizeBytes, PAGE_SIZE) + syncCount * PAGE_SIZE
    this.journal.counters.writtenBytes += physical
    this.budget.spend(physical, this.#options.clock.monotonicUs())
  }
}
