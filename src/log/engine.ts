/**
 * The engine: partitions over one journal and their segments. Opens and recovers them, takes appends, serves reads, repacks
 * full journal files in the background. Names and settings of topics are the catalog's.
 */
import type { Clock } from '../clock.ts'
import { EdgeError, toEdgeError } from '../errors.ts'
import { MAX_PAYLOAD_BYTES, MAX_USER_HEADERS_BYTES, type RecordBatch } from '../sdk/wire/batch.ts'
import type {
  LogStats,
  Partition,
  ProducerTable,
  ProducerTag,
  ReadRequest,
  ReadResult,
  Receipt,
  TopicOptions,
} from './api.ts'
import { MAX_TAG_SIZE } from './core/batch-header.ts'
import { bootNumber, hashBootId, isSameBoot } from './core/boot.ts'
import { alignUp } from './core/byte-area.ts'
import { FlashBudget } from './core/flash-budget.ts'
import { FIRST_GROUP_AT, PAGE_SIZE } from './core/journal-format.ts'
import type { ScanRules } from './core/journal-scan.ts'
import { later } from './core/offset.ts'
import type { PendingBatch } from './core/pending-batch.ts'
import type { RollLimits } from './core/repack-plan.ts'
import { JUMP } from './core/watermark.ts'
import { type BlockCodec, zstdCodec } from './io/block-codec.ts'
import { bodyChecksum } from './io/checksum.ts'
import { clearFailureMark, isFailureMarked, markFailure } from './io/failure-mark.ts'
import type { FileSystem } from './io/file-system.ts'
import { Journal, type JournalRules } from './io/journal.ts'
import type { JournalFile } from './io/journal-file.ts'
import { JournalFiles } from './io/journal-files.ts'
import { JournalReader } from './io/journal-reader.ts'
import { type FoundJournal, readJournal } from './io/journal-recovery.ts'
import { LargeBatches } from './io/large-batches.ts'
import { PartitionReader } from './io/partition-reader.ts'
import { Repacker, type RepackRules } from './io/repacker.ts'
import { SegmentFiles } from './io/segment-files.ts'
import { Maintenance } from './maintenance.ts'
import { LogPartition, type PartitionServices } from './partition.ts'
import type {
  AppendGate,
  DescriptorStore,
  HintStore,
  PartitionHost,
  PartitionSpec,
  ProducerStore,
  ReportFinding,
  SealedSegment,
  SegmentHost,
} from './ports.ts'
import { Producers } from './producers.ts'
import { type Recovered, type RecoveryRules, recoverPartitions } from './recovery.ts'
import type { Scheduler } from './scheduler.ts'
import type { LogSettings } from './settings.ts'

/** Rules that a test leaves out, to see that the simulation notices. */
export interface EngineRules extends ScanRules, JournalRules, RepackRules, RecoveryRules {
  readonly isHoldIgnored?: boolean
  readonly isPrepareOrderIgnored?: boolean
  readonly isUnlinkedBeforeFloor?: boolean
}

export interface EngineOptions {
  readonly fileSystem: FileSystem
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly report: ReportFinding
  readonly settings: LogSettings
  /** 0 is off; what `auto` means was decided before. */
  readonly flashBudgetPerDayBytes: number
  readonly storeIdBytes: Uint8Array
  readonly bootId: string
  readonly descriptors: DescriptorStore
  readonly hints: HintStore
  readonly producerStore: ProducerStore
  readonly randomU64: () => bigint
  readonly isClockTrusted?: () => boolean
  readonly codec?: BlockCodec
  /** Where hot batches are read to; at least the largest batch. */
  readonly readBuffer?: Uint8Array
  readonly rules?: EngineRules
}

/** Buffers take turns and may both be written again as one group: four of them fit a file. */
const BUFFERS_PER_FILE = 4
const MAX_BUFFER_SIZE = 2 * 1024 * 1024
/** How long an open waits for unproven groups to be written again; then it goes on, with appends refused. */
const AGAIN_WAIT_MS = 10_000
/** How long a stop waits for the last batches; who still waits then is told. */
const CLOSE_WAIT_MS = 5000
/** The largest message that a protocol lets in, with its headers and the record's own numbers. */
const MAX_BATCH_SIZE = MAX_PAYLOAD_BYTES + MAX_USER_HEADERS_BYTES + 64

/** What a name of the journal's files says before anything else is opened: for a store whose descriptor is lost. */
export function journalWitness(fileSystem: FileSystem): { storeId: Uint8Array; nextKey: number } | undefined {
  const found = readJournal({ fileSystem, storeIdBytes: undefined, checksum: bodyChecksum })
  for (const file of found.files) file.handle.close()
  return found.witness
}

export async function openEngine(options: EngineOptions): Promise<LogEngine> {
  const { fileSystem, storeIdBytes, rules = {} } = options
  const found = readJournal({ fileSystem, storeIdBytes, checksum: bodyChecksum, rules })
  // Names seen now may be in the cache alone: made by a process that was killed before it could sync them.
  fileSystem.makeDirectory('journal')
  await fileSystem.syncDirectory('')
  await fileSystem.syncDirectory('journal')
  const engine = new LogEngine(options, found)
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
  readonly #options: EngineOptions
  readonly #reader: PartitionReader
  readonly #moved = new Set<LogPartition>()
  #gate: AppendGate | undefined
  #runNumber: number
  readonly #isAfterCleanStop: boolean
  #isClosed = false
  /** An earlier process left the mark; it is taken away with the first sync, unless one fails here as well. */
  #isFailureMarked: boolean
  appendedMessages = 0
  appendedRecordBytes = 0
  droppedMessages = 0

  constructor(options: EngineOptions, found: FoundJournal) {
    const { fileSystem, settings, clock, scheduler, storeIdBytes, rules = {} } = options
    this.#options = options
    this.budget = new FlashBudget(options.flashBudgetPerDayBytes, clock.monotonicUs())
    this.producers = new Producers(options.producerStore, settings.max_publishers)
    this.segmentFiles = new SegmentFiles({
      fileSystem,
      checksum: bodyChecksum,
      codec: options.codec ?? zstdCodec,
      maxOpenFiles: settings.open_segments,
      maxDecodedBlocks: settings.decoded_blocks,
    })
    for (const spec of options.descriptors.specs()) this.partitions.set(spec.key, new LogPartition(spec, this))
    const bootHash = hashBootId(new TextEncoder().encode(options.bootId))
    const isAllOnDisk = rules.isCacheTrusted === true || !isSameBoot(found.scan.boots, bootHash)
    this.#isFailureMarked = isFailureMarked(fileSystem)
    const recovered = this.#recover(found, bootHash, isAllOnDisk)
    this.#runNumber = recovered.highestRun
    this.#isAfterCleanStop = recovered.isClean
    setFileStates(found, isAllOnDisk)
    this.files = new JournalFiles(
      {
        fileSystem,
        storeIdBytes,
        fileSize: settings.journal_file_size,
        randomU64: options.randomU64,
        keyFloor: () => options.descriptors.nextKey,
        isOrderIgnored: rules.isPrepareOrderIgnored === true,
      },
      found.files,
    )
    const bufferSize = Math.min(MAX_BUFFER_SIZE, alignUp(settings.journal_file_size / BUFFERS_PER_FILE, PAGE_SIZE))
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
      commit: {
        lingerMinUs: settings.linger_min_us,
        lingerShare: settings.linger_share_percent / 100,
        flushIntervalUs: settings.flush_interval * 1000,
        flushSizeBytes: settings.flush_size,
        urgentBytes: bufferSize / 2,
      },
      budget: this.budget,
      retryMs: settings.append_retry,
      clock,
      scheduler,
      checksum: bodyChecksum,
      randomU64: options.randomU64,
      events: {
        fileSealed: () => this.maintenance.kick(),
        settled: () => this.#notifyMoved(),
        startRecorded: () => this.#clearFailureMark(),
        failed: (error, file) => this.#appendFailed(error, file),
        writableAgain: () => this.#writableAgain(),
      },
      rules,
    })
    const readBuffer = options.readBuffer ?? new Uint8Array(bufferSize)
    this.#reader = new PartitionReader(
      new JournalReader(this.journal, this.files, bodyChecksum, readBuffer),
      this.segmentFiles,
    )
    this.#large = new LargeBatches({
      fileSystem,
      scheduler,
      codec: options.codec ?? zstdCodec,
      checksum: bodyChecksum,
      journal: this.journal,
      storeIdBytes,
      nextRunNumber: () => ++this.#runNumber,
      randomU32: () => Number(options.randomU64() & 0xffffffffn),
      maxWaitingBytes: MAX_BATCH_SIZE,
      written: (sizeBytes, syncCount) => this.#spend(sizeBytes, syncCount),
    })
    const repacker = new Repacker({
      fileSystem,
      segments: this.segmentFiles,
      codec: options.codec ?? zstdCodec,
      checksum: bodyChecksum,
      clock,
      storeIdBytes,
      partitions: () => this.partitions.values(),
      limitsOf: (partition) => this.#limitsOf(partition),
      nextRunNumber: () => ++this.#runNumber,
      randomU32: () => Number(options.randomU64() & 0xffffffffn),
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
      repack: (file) => repacker.pack(file),
      checkpoint: (packed) => this.#checkpoint(packed),
      journal: this.journal,
      changed: () => this.#gate?.segmentsChanged(),
      isHoldIgnored: rules.isHoldIgnored === true,
    })
  }

  /** Prepares files and waits until what was not proven is safe again. */
  async start(): Promise<void> {
    await this.maintenance.start()
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
  }

  get refusal(): EdgeError | undefined {
    return this.journal.refusal
  }

  readonly producerTable: ProducerTable = {
    numberOf: (deviceName) => this.producers.numberOf(deviceName),
    have: (device, epoch, lane) => this.producers.have(device, epoch, lane),
    lanes: (device, epoch) => this.producers.lanes(device, epoch),
    record: (tag, receipt) => this.recordSequence(tag, receipt),
  }

  stats(): Omit<LogStats, 'diskBudgetBytes' | 'diskFreeBytes' | 'diskTotalBytes'> {
    const { files, journal, budget } = this
    const partitions = [...this.partitions.values()]
    return {
      journalFileCount: files.all.length,
      journalUsedBytes: files.usedBytes,
      segmentCount: partitions.reduce((sum, partition) => sum + partition.segmentCount, 0),
      diskUsedBytes: this.diskUsedBytes(),
      appendedMessages: this.appendedMessages,
      appendedRecordBytes: this.appendedRecordBytes,
      ...journal.counters,
      lastSyncUs: journal.lastSyncUs,
      droppedMessages: this.droppedMessages,
      flashBudgetPerDayBytes: budget.perDayBytes,
      flashBudgetLeftBytes: budget.leftBytes(this.#options.clock.monotonicUs()),
    }
  }

  hasRoom(sizeBytes: number): boolean {
    if (this.isLarge(sizeBytes)) return this.journal.hasRoom(MAX_TAG_SIZE) && this.#large.hasRoom(sizeBytes)
    return this.journal.hasRoom(sizeBytes + MAX_TAG_SIZE)
  }

  isLarge(sizeBytes: number): boolean {
    return sizeBytes + MAX_TAG_SIZE > this.journal.maxBodySize
  }

  async flush(): Promise<void> {
    await this.#large.settled()
    await this.journal.flush()
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    // Repacking goes on meanwhile: it may be what the last batches wait for.
    await this.#within(CLOSE_WAIT_MS, this.flush())
    await this.maintenance.close()
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
    const segments = this.partitions.get(key)?.segments ?? []
    const sealed = segments.filter((segment, index) => segment.isClosed || index < segments.length - 1)
    return sealed.map((segment) => ({
      baseOffset: segment.baseOffset,
      endOffset: segment.endOffset,
      sizeBytes: segment.sizeBytes,
      messageCount: segment.messageCount,
      lastAppendUs: this.segmentFiles.lastAppendUs(segment),
      isClockTrusted: true,
    }))
  }

  diskUsedBytes(): number {
    let segments = 0
    for (const partition of this.partitions.values()) {
      for (const segment of partition.segments) segments += segment.sizeBytes
    }
    return segments + this.files.totalBytes + this.maintenance.reserveBytes
  }

  // ---- PartitionServices --------------------------------------------------------------------------------------------

  get isClockTrusted(): boolean {
    return this.#options.isClockTrusted?.() ?? true
  }

  wallUs(): bigint {
    return this.#options.clock.wallUs()
  }

  checkAppend(partition: LogPartition, batch: RecordBatch): void {
    if (this.#isClosed) throw new EdgeError('EDGE_SHUTTING_DOWN', 'the log is closing')
    const size = batch.recordsView.length
    const isLater = this.isLarge(size) || this.#large.holds(partition)
    if (isLater ? this.#large.hasRoom(size) && this.journal.refusal === undefined : this.hasRoom(size)) return
    if (this.journal.refusal !== undefined) throw this.journal.refusal
    if (size > MAX_BATCH_SIZE) {
      const text = `a batch of ${size} bytes is above the limit of ${MAX_BATCH_SIZE}`
      throw new EdgeError('EDGE_MESSAGE_TOO_LARGE', text, { details: { sizeBytes: size, limit: MAX_BATCH_SIZE } })
    }
    throw new EdgeError('EDGE_BACKPRESSURE', 'the journal has no room for more: it waits for the disk')
  }

  dropsNewest(partition: LogPartition, batch: RecordBatch, receipt: Receipt, tag: ProducerTag | undefined): boolean {
    const refusal = this.#gate?.refusal(partition.key) ?? null
    if (refusal === null) return false
    if (refusal === 'reject') {
      throw new EdgeError('EDGE_TOPIC_FULL', `topic ${partition.topicId} is full and drops nothing`)
    }
    this.#gate?.droppedNewest(partition.key, partition.nextOffset, batch.count, batch.recordsView.length)
    this.droppedMessages += batch.count
    if (tag === undefined) this.#options.scheduler.nextTurn(() => receipt.settled(null))
    else this.recordSequence(tag, receipt)
    return true
  }

  submit(batch: PendingBatch, partition: LogPartition, recordsView: Uint8Array, tag: ProducerTag | undefined): void {
    this.appendedMessages += batch.fields.count
    this.appendedRecordBytes += recordsView.length
    if (this.isLarge(recordsView.length) || this.#large.holds(partition)) {
      this.#large.append(partition, batch, recordsView, tag)
    } else this.journal.append(batch, partition.watermark.isBuffered, recordsView, tag)
  }

  /** Disposes of sequence numbers without a record. */
  recordSequence(tag: ProducerTag, receipt: Receipt): void {
    if (!this.journal.hasRoom(MAX_TAG_SIZE)) {
      throw this.journal.refusal ?? new EdgeError('EDGE_BACKPRESSURE', 'the journal has no room for more')
    }
    this.journal.append(this.producers.sequenceBatch(tag, receipt, this.wallUs()), false, NO_RECORDS, tag)
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
    const end = partition.nextOffset
    return this.maintenance.exclusive(() => this.#dropBelow(partition, end))
  }

  deleteSegments(partition: LogPartition, count: number, barrierOffset: bigint | null): Promise<number> {
    return this.maintenance.exclusive(async () => {
      const sealed = partition.segments.filter((segment, at) => segment.isClosed || at < partition.segments.length - 1)
      const chosen = sealed.slice(0, count)
      const passing = chosen.findIndex((segment) => barrierOffset !== null && segment.endOffset - 1n > barrierOffset)
      const dropped = passing < 0 ? chosen : chosen.slice(0, passing)
      const last = dropped.at(-1)
      if (last !== undefined) await this.#dropBelow(partition, last.endOffset)
      return dropped.length
    })
  }

  tagSettled(tag: ProducerTag, seenAtUs: bigint): void {
    this.producers.settled(tag, seenAtUs)
  }

  damaged(partition: LogPartition, from: bigint, end: bigint, cause: string): void {
    if (!partition.holesFound.add({ from, end, reason: 'damage' })) return
    this.#options.report({
      event: 'log.hole.found',
      level: 'error',
      text: `offsets ${from} to ${end - 1n} of partition ${partition.partitionId} cannot be read: ${cause}`,
      fields: {
        stream_id: partition.streamId,
        topic_id: partition.topicId,
        partition_id: partition.partitionId,
        base_offset: from,
        message_count: end - from,
      },
    })
  }

  moved(partition: LogPartition): void {
    this.#moved.add(partition)
  }

  // ---- inside -------------------------------------------------------------------------------------------------------

  #recover(found: FoundJournal, bootHash: number, isAllOnDisk: boolean): Recovered {
    const { fileSystem, hints, rules = {}, report, descriptors } = this.#options
    const recovered = recoverPartitions({
      fileSystem,
      checksum: bodyChecksum,
      journal: found,
      partitions: this.partitions,
      hints,
      isAllOnDisk,
      bootNumber: (highestSegmentBoot) =>
        bootNumber(found.scan.boots, bootHash, { hadFailure: this.#isFailureMarked, highestSegmentBoot }),
      rules,
      sequence: (batch) => this.producers.replay(batch),
      tagged: (batch) => void this.producers.replay(batch),
    })
    for (const path of recovered.repeatedPaths) fileSystem.unlink(path)
    // Where nothing is damaged, a large batch without a reference was never acked.
    const isSound = recovered.damage.lostBytes === 0 && recovered.damage.damagedBatches === 0
    if (isSound) for (const path of recovered.orphanPaths) fileSystem.unlink(path)
    // A power cut brought back what retention had dropped.
    for (const partition of this.partitions.values()) this.#unlinkBelow(partition, partition.logStartOffset)
    for (const [key, count] of recovered.unknownKeys) {
      const isDeleted = key < descriptors.nextKey
      report({
        event: isDeleted ? 'log.recovery.deleted_batches' : 'log.recovery.unknown_key',
        level: isDeleted ? 'warn' : 'error',
        text: isDeleted
          ? `${count} journal batches of deleted partition key ${key} were dropped`
          : `${count} journal batches of partition key ${key}, which no descriptor names, were left out`,
        fields: { partition_key: key, batch_count: count },
      })
    }
    const orphanPaths = isSound ? [] : recovered.orphanPaths
    this.damagedPaths = [...orphanPaths, ...recovered.damagedPaths, ...found.strangers.map((name) => `journal/${name}`)]
    return recovered
  }

  /** Files found at open that nothing can be made of, to be set aside. */
  damagedPaths: readonly string[] = []

  #limitsOf(partition: LogPartition): RollLimits {
    const { segment_size, segment_max_age } = this.#options.settings
    return {
      sizeBytes: partition.options.segmentSizeBytes ?? segment_size,
      maxAgeUs: BigInt(segment_max_age) * 1000n,
    }
  }

  /** The floor is durable before the first file goes, else offsets could be given again after a crash. */
  async #dropBelow(partition: LogPartition, offset: bigint): Promise<void> {
    if (offset <= partition.logStartOffset || partition.isRemoved) return
    const { descriptors, rules = {} } = this.#options
    if (!rules.isUnlinkedBeforeFloor) await descriptors.raiseFloor(partition.key, offset)
    if (partition.isRemoved) return
    partition.dropBelow(offset)
    this.#unlinkBelow(partition, offset)
    this.#gate?.segmentsChanged()
    if (rules.isUnlinkedBeforeFloor) await descriptors.raiseFloor(partition.key, offset)
  }

  #unlinkBelow(partition: LogPartition, offset: bigint): void {
    const gone = partition.segments.filter((segment) => segment.endOffset <= offset)
    partition.segments = partition.segments.filter((segment) => segment.endOffset > offset)
    for (const [baseOffset, segment] of partition.externals) {
      if (segment.endOffset > offset) continue
      partition.externals.delete(baseOffset)
      gone.push(segment)
    }
    if (gone.length > 0) partition.areNamesDirty = true
    for (const { path } of gone) {
      this.segmentFiles.forget(path)
      this.#options.fileSystem.unlink(path)
    }
  }

  /** Before a journal file is recycled: what only it knows beside messages. */
  #checkpoint(packed: readonly LogPartition[]): void {
    this.producers.checkpoint()
    const hints = packed.map(
      (partition) =>
        [
          partition.key,
          {
            nextOffset: partition.durableEnd,
            segmentEnd: partition.segmentEnd,
            messageCount: partition.messageCount,
          },
        ] as const,
    )
    this.#options.hints.setHints(new Map(hints))
  }

  #spend(sizeBytes: number, syncCount: number): void {
    const physical = alignUp(sizeBytes, PAGE_SIZE) + syncCount * PAGE_SIZE
    this.journal.counters.writtenBytes += physical
    this.budget.spend(physical, this.#options.clock.monotonicUs())
  }

  #notifyMoved(): void {
    const moved = [...this.#moved]
    this.#moved.clear()
    for (const partition of moved) partition.notify()
  }

  #appendFailed(error: EdgeError, file: JournalFile | undefined): void {
    markFailure(this.#options.fileSystem)
    this.#isFailureMarked = false
    const isRefusing = this.journal.refusal !== undefined
    this.#options.report({
      event: isRefusing ? 'log.append.refused' : 'log.sync.failed',
      level: 'error',
      text: isRefusing
        ? `the disk refuses, appends are refused until it takes them again: ${error.message}`
        : `a sync failed, the file is given up and its last messages are written again: ${error.message}`,
      fields: { error_code: error.code, journal_file: file?.number ?? -1 },
    })
  }

  #clearFailureMark(): void {
    if (!this.#isFailureMarked) return
    this.#isFailureMarked = false
    clearFailureMark(this.#options.fileSystem)
  }

  #writableAgain(): void {
    this.#options.report({
      event: 'log.append.resumed',
      level: 'warn',
      text: 'the disk takes appends again',
      fields: {},
    })
  }
}

const NO_RECORDS = new Uint8Array(0)

/**
 * Files with groups that count are sealed; the last one goes on where everything in it is known to be on the disk: behind
 * its last group, or over groups without batches that only the cache may hold.
 */
function setFileStates(found: FoundJournal, isAllOnDisk: boolean): void {
  const { chain, proof, unprovenFileIds } = found.scan
  const living = new Set(chain.map((link) => link.fileId))
  for (const file of found.files) {
    file.isHeld = !isAllOnDisk && unprovenFileIds.has(file.number)
    file.state = living.has(file.number) || file.isHeld ? 'sealed' : 'free'
  }
  const tail = found.files.find((file) => file.number === chain.at(-1)?.fileId)
  if (tail === undefined || (!isAllOnDisk && unprovenFileIds.size > 0)) return
  const kept = isAllOnDisk ? chain : chain.filter((link) => link.header.sequence <= proof)
  const last = kept.findLast((link) => link.fileId === tail.number)?.header
  tail.position = last === undefined ? FIRST_GROUP_AT : alignUp(last.position + last.length, PAGE_SIZE)
  if (tail.position < tail.size - FIRST_GROUP_AT) tail.state = 'active'
}

function lastGroup({ scan }: FoundJournal, isAllOnDisk: boolean) {
  const { chain, proof } = scan
  const last = isAllOnDisk ? chain.at(-1) : chain.findLast((link) => link.header.sequence <= proof)
  if (last === undefined) return { sequence: proof, crc: 0, ordinal: 0 }
  const { sequence, crc, ordinal } = last.header
  return { sequence, crc, ordinal }
}
