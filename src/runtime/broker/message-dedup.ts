/**
 * Topics that do not store a message twice: keeps a window of ids per topic and appends what is new.
 *
 * A batch that was sent before is answered as if it were stored now, with the offset its first message has, and not before
 * that message keeps its promise. What is left of a batch goes in without a gap. After a restart the windows are made from
 * the newest messages, so a resend across a crash is recognised too.
 */
import { randomInt } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { EdgeError } from '../../errors.ts'
import type { Durability, Log, Partition, ProducerTag, Receipt, Topic } from '../../log/index.ts'
import type { RecordBatch } from '../../sdk/wire/batch.ts'
import { RecordCursor, RecordWriter } from '../../sdk/wire/kernel/record-cursor.ts'
import { type DedupLimits, DedupWindow, keepTogether, type SeenMessage } from './dedup.ts'

const READ_BACK_BYTES = 256 * 1024
/** Their ids are compared with each other, which takes some 150 bytes of the heap each. */
export const MAX_DEDUP_BATCH = 65_536
/** Whether all windows together hold too much is looked at when so large a part of the bound was added, and so much is made free. */
const CHECKED_SHARE = 16

export interface DedupAppended {
  readonly partitionId: number
  readonly baseOffset: bigint
  readonly promise: Durability
  readonly isDropped: boolean
}

/** A batch whose promise does not hold yet. */
interface Flight {
  readonly partitionId: number
  readonly from: bigint
  readonly end: bigint
  /** Resends of its messages: they are answered with it. */
  readonly waiters: Receipt[]
}

interface TopicWindow {
  readonly window: DedupWindow
  readonly flights: Set<Flight>
}

export class MessageDedup {
  private readonly log: Log
  private readonly clock: Clock
  /** Ids of all topics together. */
  private readonly maxEntries: number
  private addedCount = 0
  private readonly seed = randomInt(2 ** 32)
  /** Not by number: the next topic gets those of a deleted one, and must not take its messages for sent before. */
  private readonly windows = new WeakMap<Topic, TopicWindow>()

  constructor(log: Log, clock: Clock, maxEntries: number) {
    this.log = log
    this.clock = clock
    this.maxEntries = maxEntries
  }

  /**
   * Reads back the windows of all topics that have one. What the disk does not give at this moment holds up no start: ids of
   * messages there are new when they come again.
   */
  async load(): Promise<void> {
    for (const stream of this.log.catalog.streams.values()) {
      for (const topic of stream.topics.values()) {
        const limits = topic.options.dedupWindow
        if (limits !== null) await this.readBack(topic, this.openWindow(topic, limits), limits).catch(throwAllButDisk)
      }
    }
  }

  windowOf(topic: Topic): TopicWindow | undefined {
    const limits = topic.options.dedupWindow
    if (limits === null) return undefined
    return this.windows.get(topic) ?? this.openWindow(topic, limits)
  }

  private openWindow(topic: Topic, limits: DedupLimits): TopicWindow {
    const opened = { window: new DedupWindow(limits, this.seed), flights: new Set<Flight>() }
    this.windows.set(topic, opened)
    return opened
  }

  /** Around a change of the topic's options, which switches its window on or off, resizes it, or leaves it as it is. */
  async change(topic: Topic, limits: DedupLimits | null, apply: () => Promise<void>): Promise<void> {
    const found = this.windows.get(topic)
    if (limits === null || found !== undefined) {
      await apply()
      if (limits === null) this.windows.delete(topic)
      else found?.window.resize(limits)
      return
    }
    // Read back while the topic still stores everything: sends that follow the change find what was sent before.
    const opened = this.openWindow(topic, limits)
    try {
      const ends = await this.readBack(topic, opened, limits)
      await apply()
      await this.readBack(topic, opened, limits, ends)
    } catch (error) {
      // It may have been on all the time, without a send until now: what was sent meanwhile is in it.
      const { dedupWindow: stays } = topic.options
      if (stays === null) this.windows.delete(topic)
      else opened.window.resize(stays)
      throw error
    }
  }

  clear(topic: Topic): void {
    this.windows.get(topic)?.window.clear()
  }

  /** The topic's last partitions are gone, and its messages there: sent again, they are new. */
  partitionsRemoved(topic: Topic): void {
    this.windows.get(topic)?.window.forgetPartitions(topic.partitions.length)
  }

  /** Appends what is new of the batch; `receipt` is settled when the promise holds for all of it. */
  append(
    { window, flights }: TopicWindow,
    topic: Topic,
    partition: Partition,
    batch: RecordBatch,
    receipt: Receipt,
    tag: ProducerTag | undefined,
  ): DedupAppended {
    const nowUs = this.nowUs()
    if (batch.count > MAX_DEDUP_BATCH) {
      const found = `expected at most ${MAX_DEDUP_BATCH} messages with deduplication, found ${batch.count}: send it in parts`
      throw new EdgeError('EDGE_BATCH_INVALID', `batch: ${found}`, { details: { count: batch.count } })
    }
    const ids = [...idsOf(batch)]
    // Devices have sequence numbers, which say better what was sent before.
    const seen = tag === undefined ? findSeen(window, ids, nowUs) : ids.map(() => undefined)
    const { partitionId } = partition
    const waits = new Set<Flight>()
    for (const message of seen) {
      if (message === undefined || message === IN_BATCH) continue
      const flight = [...flights].find((each) => isWithin(each, message))
      if (flight !== undefined) waits.add(flight)
    }
    const first = seen[0]
    const isNothingNew = first !== undefined && first !== IN_BATCH && seen.every((message) => message !== undefined)
    const shared = new SharedReceipt(receipt, waits.size + 1)
    if (isNothingNew) {
      for (const flight of waits) flight.waiters.push(shared)
      // Never before this call has returned: the caller needs the answer first.
      queueMicrotask(() => shared.settled(null))
      const { durability: promise } = topic.options
      return { partitionId: first.partitionId, baseOffset: first.offset, promise, isDropped: false }
    }
    const kept = ids.filter((_, index) => seen[index] === undefined)
    const flight: Flight = {
      partitionId,
      from: partition.nextOffset,
      end: partition.nextOffset + BigInt(kept.length),
      waiters: [],
    }
    const own: Receipt = {
      settled(error) {
        // What was dropped has added no ids: those that are there by now are of a resend that was stored.
        const isStored = flights.delete(flight)
        if (error !== null && isStored) for (const id of kept) window.forget(id)
        for (const waiter of [shared, ...flight.waiters]) waiter.settled(error)
      },
    }
    const rest = kept.length === ids.length ? batch : without(batch, seen)
    const { baseOffset, promise, isDropped } = partition.append(rest, own, tag)
    for (const waiting of waits) waiting.waiters.push(shared)
    if (isDropped) return { partitionId, baseOffset, promise, isDropped }
    flights.add(flight)
    for (const [index, id] of kept.entries()) {
      if (id !== 0n) window.add(id, { partitionId, offset: baseOffset + BigInt(index) }, nowUs)
    }
    this.added(kept.length)
    return { partitionId, baseOffset, promise, isDropped }
  }

  private added(count: number): void {
    this.addedCount += count
    const checkedCount = Math.floor(this.maxEntries / CHECKED_SHARE)
    if (this.addedCount < checkedCount) return
    this.addedCount = 0
    keepTogether(this.allWindows(), this.maxEntries - checkedCount, this.nowUs())
  }

  private allWindows(): DedupWindow[] {
    const topics = [...this.log.catalog.streams.values()].flatMap((stream) => [...stream.topics.values()])
    return topics.flatMap((topic) => this.windows.get(topic)?.window ?? [])
  }

  /**
   * Takes in the newest messages of all partitions, in the order they were appended.
   *
   * @param from where an earlier call has come to in each partition.
   * @returns where this one has come to.
   */
  private async readBack(
    topic: Topic,
    { window }: TopicWindow,
    limits: DedupLimits,
    from: ReadonlyMap<Partition, bigint> = new Map(),
  ): Promise<ReadonlyMap<Partition, bigint>> {
    const ends = new Map<Partition, bigint>()
    const maxCount = Math.min(limits.maxEntries, this.maxEntries)
    window.resize({ ...limits, maxEntries: maxCount })
    try {
      for (const partition of topic.partitions)
        ends.set(partition, await this.readPartition(partition, { window, limits, maxCount }, from.get(partition)))
    } finally {
      window.loaded()
      window.resize(limits)
      this.added(window.size)
    }
    return ends
  }

  /** @returns where it has come to. */
  private async readPartition(
    partition: Partition,
    { window, limits, maxCount }: { window: DedupWindow; limits: DedupLimits; maxCount: number },
    from: bigint | undefined,
  ): Promise<bigint> {
    const { partitionId } = partition
    // Between the clock of the messages and that of the window.
    const aheadUs = this.clock.wallUs() - this.nowUs()
    const oldestUs = window.oldestUs ?? this.nowUs() - limits.expiryUs
    const young = from ?? (await partition.offsetAt(max(oldestUs + aheadUs, 0n)))
    const newest = partition.visibleEnd - BigInt(maxCount)
    let offset = max(max(young, newest), partition.logStartOffset)
    while (offset < partition.visibleEnd) {
      const bounds = { fromOffset: offset, maxCount, maxBytes: READ_BACK_BYTES }
      const reading = partition.read(bounds)
      // What comes at once is used up at once: its views end with the next call of the log.
      const read = reading instanceof Promise ? await reading : reading
      for (const batch of read.batches) {
        let { baseOffset: at, skip } = batch
        const atUs = min(batch.appendTimeUs - aheadUs, this.nowUs())
        for (const id of idsOf(batch)) {
          if (id !== 0n && skip <= 0) window.load(id, { partitionId, offset: at }, atUs)
          at++
          skip--
        }
      }
      if (read.nextOffset <= offset) break
      offset = read.nextOffset
    }
    return offset
  }

  /** Ages are counted by the clock that is never set: a gateway's comes up years behind, and jumps when the network is there. */
  private nowUs(): bigint {
    return BigInt(Math.round(this.clock.monotonicUs()))
  }
}

function throwAllButDisk(error: unknown): void {
  if (!(error instanceof EdgeError) || error.kind !== 'io') throw error
}

/** Settles once all parts have; the first error stands. */
class SharedReceipt implements Receipt {
  private readonly target: Receipt
  private left: number
  private error: EdgeError | null = null

  constructor(target: Receipt, parts: number) {
    this.target = target
    this.left = parts
  }

  settled(error: EdgeError | null): void {
    this.error ??= error
    this.left--
    if (this.left === 0) this.target.settled(this.error)
  }
}

/** Stands for "seen earlier in the same batch". */
const IN_BATCH: SeenMessage = { partitionId: -1, offset: -1n }

function findSeen(window: DedupWindow, ids: readonly bigint[], nowUs: bigint): (SeenMessage | undefined)[] {
  const inBatch = new Set<bigint>()
  return ids.map((id) => {
    if (id === 0n) return undefined
    if (inBatch.has(id)) return IN_BATCH
    inBatch.add(id)
    return window.find(id, nowUs)
  })
}

/** Ids of all records, 0 for those without one. */
function* idsOf(batch: RecordBatch): Generator<bigint> {
  const { recordsView } = batch
  const view = new DataView(recordsView.buffer, recordsView.byteOffset, recordsView.length)
  const cursor = new RecordCursor(recordsView, batch.baseOriginUs)
  for (let index = 0; index < batch.count; index++) {
    if (!cursor.next())
      throw new EdgeError('EDGE_BATCH_INVALID', `record ${index} of ${batch.count} does not lie in its batch`)
    const { idAt } = cursor
    yield idAt < 0 ? 0n : (view.getBigUint64(idAt + 8, true) << 64n) | view.getBigUint64(idAt, true)
  }
}

/** The batch without the records that were seen. */
function without(batch: RecordBatch, seen: readonly (SeenMessage | undefined)[]): RecordBatch {
  const source = batch.recordsView
  const cursor = new RecordCursor(source, batch.baseOriginUs)
  // A record may grow by the few bytes of a wider time difference, when the one before it is gone.
  const target = new Uint8Array(source.length + batch.count * 10)
  const writer = new RecordWriter(target)
  let count = 0
  let baseOriginUs = batch.baseOriginUs
  for (const message of seen) {
    cursor.next()
    if (message !== undefined) continue
    if (count === 0) baseOriginUs = cursor.originUs
    count++
    writer.head(cursor.originLow, cursor.originHigh, source, cursor.idAt, cursor.headersSize, cursor.payloadSize)
    target.set(source.subarray(cursor.bodyAt, cursor.at), writer.at)
    writer.at += cursor.at - cursor.bodyAt
  }
  return { count, baseOriginUs, recordsView: target.subarray(0, writer.at) }
}

function isWithin(flight: Flight, message: SeenMessage): boolean {
  return flight.partitionId === message.partitionId && message.offset >= flight.from && message.offset < flight.end
}

function min(left: bigint, right: bigint): bigint {
  return left < right ? left : right
}

function max(left: bigint, right: bigint): bigint {
  return left > right ? left : right
}
