/**
 * One partition incarnation: gives offsets, keeps its ends, knows where its batches lie. One writer (the journal tells it
 * what became of each batch), many readers.
 */
import type { EdgeError } from '../errors.ts'
import type { RecordBatch } from '../sdk/wire/batch.ts'
import { contentBytesOf } from '../sdk/wire/record-content.ts'
import type { Appended, Partition, ProducerTag, ReadRequest, ReadResult, Receipt, TopicOptions } from './api.ts'
import { BATCH_FLAG, BATCH_KIND } from './core/batch-header.ts'
import { Holes } from './core/holes.ts'
import { IN_MEMORY, JournalIndex } from './core/journal-index.ts'
import type { JournalSegment } from './core/journal-segments.ts'
import { later } from './core/offset.ts'
import { type BatchOwner, PendingBatch } from './core/pending-batch.ts'
import type { PendingReceipt } from './core/pending-receipt.ts'
import { Watermark } from './core/watermark.ts'
import type { ReadablePartition } from './io/partition-reader.ts'
import type { Segment } from './io/segment.ts'
import type { PartitionSpec } from './ports.ts'

/** What a partition asks of the engine. */
export interface PartitionServices {
  /** @throws EDGE_BACKPRESSURE, EDGE_APPEND_FAILED, EDGE_MESSAGE_TOO_LARGE. */
  submit(batch: PendingBatch, partition: LogPartition, recordsView: Uint8Array, tag: ProducerTag | undefined): void
  /** Whether that many bytes of records go into a file of their own. */
  isLarge(sizeBytes: number): boolean
  /** @throws what an append of that size would be refused with, before an offset is given. */
  checkAppend(partition: LogPartition, batch: RecordBatch, tag: ProducerTag | undefined): void
  /** Counts what a full topic gave up instead of storing it. @returns whether it did. */
  dropsNewest(partition: LogPartition, batch: RecordBatch, receipt: Receipt, tag: ProducerTag | undefined): boolean
  read(partition: LogPartition, request: ReadRequest, end: bigint): ReadResult | Promise<ReadResult>
  offsetAt(partition: LogPartition, timeUs: bigint): bigint | Promise<bigint>
  /** Segments that are closed though their messages still lie in the journal. */
  closedInJournal(partition: LogPartition): readonly JournalSegment[]
  purge(partition: LogPartition): Promise<void>
  deleteSegments(partition: LogPartition, count: number, barrierOffset: bigint | null): Promise<number>
  /** The promise of a batch with that tag holds. */
  tagSettled(tag: ProducerTag, seenAtUs: bigint): void
  /** It is on stable storage. */
  tagSynced(tag: ProducerTag, seenAtUs: bigint): void
  damaged(partition: LogPartition, from: bigint, end: bigint, cause: string | EdgeError): void
  /** More of it is durable: a segment may have ended in the journal. */
  grown(partition: LogPartition): void
  /** Listeners are to be called after this write or sync. */
  moved(partition: LogPartition): void
  wallUs(): bigint
  readonly isClockTrusted: boolean
}

const NO_EXTERNALS: ReadonlyMap<bigint, Segment> = new Map()

export class LogPartition implements Partition, BatchOwner, ReadablePartition {
  readonly spec: PartitionSpec
  readonly index = new JournalIndex()
  readonly holesFound = new Holes()
  watermark: Watermark
  foundEnd = 0n
  readonly #services: PartitionServices
  // Of thousands of partitions few have any of these: an empty map for each would take most of their memory.
  #listeners: Set<() => void> | undefined
  /** Of batches that are not synced. */
  #tags: Map<bigint, ProducerTag> | undefined
  #externals: Map<bigint, Segment> | undefined
  #lastReceipt: PendingReceipt | undefined
  options: TopicOptions
  segments: Segment[] = []
  appendedContentBytes = 0
  /** Bytes that became durable since retention was last asked to look. */
  grownBytes = 0
  /** Its listeners are to be called after this write or sync. */
  hasMoved = false
  segmentEnd = 0n
  logStartOffset: bigint
  lastAppendUs = 0n
  isRemoved = false
  /**
   * Names may have been taken from its folder that a power cut brings back, and they would end the segment before them.
   * Also at open: a process that was killed may have taken some.
   */
  areNamesDirty = true
  /** The same of the folder itself, in that of the topic. */
  isFolderNameDirty = true
  /** The same of its refuge, with the folders above that. */
  areRefugeNamesDirty = false
  /** Why nothing is begun in its folder before the next start; undefined where that is worth a try. */
  folderRefusal: EdgeError | undefined
  /** Files of runs that were given up which could not be removed: before they are, or are empty, no run counts. */
  readonly leftovers = new Set<string>()
  /** End of the last batch that was given offsets. */
  #lastEnd: bigint
  /** Offsets that were left out last: the batch behind them may be taken back, and the next stands behind them as well. */
  #gap: { readonly from: bigint; readonly end: bigint } | undefined
  /** A purge is on its way to there: offsets below are not given again, or it would take new messages with it. */
  #purgeEnd = 0n

  constructor(spec: PartitionSpec, services: PartitionServices) {
    this.spec = spec
    this.options = spec.options
    this.#services = services
    this.logStartOffset = spec.floorOffset
    this.segmentEnd = spec.floorOffset
    this.#lastEnd = spec.floorOffset
    this.watermark = new Watermark(spec.options.durability === 'buffered', spec.floorOffset)
  }

  get key(): number {
    return this.spec.key
  }
  get streamId(): number {
    return this.spec.streamId
  }
  get topicId(): number {
    return this.spec.topicId
  }
  get partitionId(): number {
    return this.spec.partitionId
  }
  get createdAtUs(): bigint {
    return this.spec.createdAtUs
  }
  get idSeed(): bigint {
    return this.spec.idSeed
  }
  get nextOffset(): bigint {
    return this.watermark.nextOffset
  }
  get visibleEnd(): bigint {
    return this.watermark.visibleEnd
  }
  get durableEnd(): bigint {
    return this.watermark.durableEnd
  }
  /** Large batches of the journal by offset: the files that hold their records. */
  get externals(): ReadonlyMap<bigint, Segment> {
    return this.#externals ?? NO_EXTERNALS
  }
  get segmentCount(): number {
    return this.segments.length
  }
  get closedInJournalCount(): number {
    return this.#services.closedInJournal(this).length
  }
  get holes(): Partition['holes'] {
    return this.holesFound.list
  }
  get sizeBytes(): number {
    let size = this.index.sizeBytes
    for (const segment of this.segments) size += segment.sizeBytes
    for (const segment of this.externals.values()) size += segment.sizeBytes
    return size
  }
  get messageCount(): number {
    const span = Number(this.watermark.writtenEnd - this.logStartOffset)
    return Math.max(0, span - this.holesFound.countFrom(this.logStartOffset))
  }

  append(batch: RecordBatch, receipt: Receipt, tag?: ProducerTag): Appended {
    const nowUs = this.#services.wallUs()
    this.#services.checkAppend(this, batch, tag)
    if (this.#services.dropsNewest(this, batch, receipt, tag)) {
      return { baseOffset: this.nextOffset, appendTimeUs: nowUs, promise: this.options.durability, isDropped: true }
    }
    const isClamped = nowUs < this.lastAppendUs
    const appendTimeUs = isClamped ? this.lastAppendUs : nowUs
    // The reader of a later boot must be able to tell a jump from damage.
    const hasGapBefore = this.watermark.nextOffset !== this.#lastEnd
    const baseOffset = this.watermark.give(batch.count)
    if (hasGapBefore) this.#gap = { from: this.#lastEnd, end: baseOffset }
    const endOffset = this.watermark.nextOffset
    this.#lastEnd = endOffset
    const { isBuffered } = this.watermark
    const flags =
      (isBuffered ? BATCH_FLAG.isBuffered : 0) |
      (hasGapBefore ? BATCH_FLAG.hasGapBefore : 0) |
      (this.#services.isClockTrusted ? BATCH_FLAG.isClockTrusted : 0) |
      (isClamped ? BATCH_FLAG.isTimeClamped : 0) |
      (tag === undefined ? 0 : BATCH_FLAG.hasTag)
    const { count, baseOriginUs, recordsView } = batch
    const kind = this.#services.isLarge(recordsView.length) ? BATCH_KIND.external : BATCH_KIND.data
    const fields = { count, baseOffset, appendTimeUs, baseOriginUs, key: this.key, kind, flags }
    const pending = new PendingBatch(this, fields, endOffset, receipt)
    this.inOrder(pending)
    this.lastAppendUs = appendTimeUs
    this.noteTag(baseOffset, tag)
    this.appendedContentBytes += contentBytesOf(recordsView)
    this.#services.submit(pending, this, recordsView, tag)
    const isShown = this.watermark.isShownWhenWritten(endOffset)
    return { baseOffset, appendTimeUs, promise: isShown ? 'buffered' : 'durable', isDropped: false }
  }

  read(request: ReadRequest): ReadResult | Promise<ReadResult> {
    const end = request.upTo === 'durable' ? this.durableEnd : this.visibleEnd
    return this.#services.read(this, request, end)
  }

  offsetAt(timeUs: bigint): bigint | Promise<bigint> {
    return this.#services.offsetAt(this, timeUs)
  }

  onAppended(callback: () => void): () => void {
    this.#listeners ??= new Set()
    this.#listeners.add(callback)
    return () => this.#listeners?.delete(callback)
  }

  purge(): Promise<void> {
    return this.#services.purge(this)
  }

  deleteSegments(count: number, barrierOffset: bigint | null): Promise<number> {
    return this.#services.deleteSegments(this, count, barrierOffset)
  }

  // ---- what became of a batch ---------------------------------------------------------------------------------------

  written(batch: PendingBatch, fileNumber: number, position: number): boolean {
    const { baseOffset } = batch.fields
    if (this.isRemoved || batch.endOffset <= this.logStartOffset) return this.watermark.isBuffered
    // Written again after a failure: its place changes, everything else stands.
    if (this.index.move(baseOffset, fileNumber, position)) return this.watermark.writtenBefore(batch.endOffset)
    this.index.push(baseOffset, fileNumber, position, batch.size)
    const { writtenEnd } = this.watermark
    if (baseOffset > writtenEnd) this.holesFound.add({ from: writtenEnd, end: baseOffset, reason: 'jump' })
    const isShown = this.watermark.written(batch.endOffset)
    if (isShown) this.#settled(batch)
    return isShown
  }

  keptInMemory(batch: PendingBatch): void {
    this.index.move(batch.fields.baseOffset, IN_MEMORY, batch.at)
  }

  writtenBefore(batch: PendingBatch): boolean {
    const isShown = this.watermark.writtenBefore(batch.endOffset)
    if (isShown) this.#settled(batch)
    return isShown
  }

  synced(batch: PendingBatch): void {
    this.watermark.synced(batch.endOffset)
    this.grownBytes += batch.size + (this.externals.get(batch.fields.baseOffset)?.sizeBytes ?? 0)
    this.#services.grown(this)
    const tag = this.#tags?.get(batch.fields.baseOffset)
    if (tag !== undefined) {
      this.#services.tagSynced(tag, batch.fields.appendTimeUs)
      this.#tags?.delete(batch.fields.baseOffset)
    }
    this.#services.moved(this)
  }

  #settled(batch: PendingBatch): void {
    const tag = this.#tags?.get(batch.fields.baseOffset)
    if (tag !== undefined) this.#services.tagSettled(tag, batch.fields.appendTimeUs)
    this.#services.moved(this)
  }

  // ---- for the engine -----------------------------------------------------------------------------------------------

  /** Told behind all earlier receipts of the partition. */
  inOrder(receipt: PendingReceipt): void {
    if (this.#lastReceipt !== undefined) receipt.follow(this.#lastReceipt)
    this.#lastReceipt = receipt
  }

  /** The batch at that offset, not synced yet, carries a producer's tag. */
  noteTag(baseOffset: bigint, tag: ProducerTag | undefined): void {
    if (tag === undefined) return
    this.#tags ??= new Map()
    this.#tags.set(baseOffset, tag)
  }

  /** The records of the batch at that offset lie in a file of their own, until a segment has them. */
  addExternal(baseOffset: bigint, segment: Segment): void {
    this.#externals ??= new Map()
    this.#externals.set(baseOffset, segment)
  }

  removeExternal(baseOffset: bigint): void {
    this.#externals?.delete(baseOffset)
  }

  notify(): void {
    if (this.#listeners !== undefined) for (const listener of this.#listeners) listener()
  }

  damaged(from: bigint, end: bigint, cause: string | EdgeError): void {
    // Of a deleted topic files are missing because they are gone.
    if (!this.isRemoved) this.#services.damaged(this, from, end, cause)
  }

  /** What recovery found: everything below `end` is there, or a hole. */
  recovered(end: bigint): void {
    this.watermark = new Watermark(this.watermark.isBuffered, end)
    this.foundEnd = end
    this.#lastEnd = end
  }

  /** A batch and all behind it could not be stored: their offsets were shown to nobody and are given again. */
  takeBack(baseOffset: bigint): void {
    // Never below what a purge has passed meanwhile, or will.
    const { writtenEnd } = this.watermark
    this.watermark.nextOffset = later(later(baseOffset, writtenEnd), this.#purgeEnd)
    this.#lastEnd = later(this.#gap?.end === baseOffset ? this.#gap.from : baseOffset, writtenEnd)
    for (const given of this.#tags?.keys() ?? []) if (given >= baseOffset) this.#tags?.delete(given)
  }

  /** Everything that has an offset now is to go. @returns the end of it. */
  beginPurge(): bigint {
    this.#purgeEnd = this.watermark.nextOffset
    return this.#purgeEnd
  }

  /** Everything below is gone for good. The floor is durable already. */
  dropBelow(offset: bigint): void {
    if (offset <= this.logStartOffset) return
    this.logStartOffset = offset
    this.watermark.dropTo(offset)
    if (this.segmentEnd < offset) this.segmentEnd = offset
    this.holesFound.dropBelow(offset)
    let gone = 0
    while (gone < this.index.count && this.index.baseOffset(gone) < offset) gone++
    this.index.dropFirst(gone)
  }

  /** A repack run has taken the first `count` batches into segments. */
  repacked(count: number, begun: readonly Segment[], segmentEnd: bigint): void {
    this.segments.push(...begun)
    for (const segment of begun) this.removeExternal(segment.baseOffset)
    this.index.dropFirst(count)
    if (segmentEnd > this.segmentEnd) this.segmentEnd = segmentEnd
    if (this.segments.length === 0) return
    const first = this.segments[0]?.baseOffset ?? 0n
    if (first > this.logStartOffset) this.logStartOffset = first
  }
}
