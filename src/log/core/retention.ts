/**
 * Decides which segments go. Pure: sizes, times and offsets come in, a plan comes out.
 *
 * Whole segments, oldest first within a partition, and no more than suffices. Three reasons, in this order:
 *   1. expired: the last append of the segment is older than the topic's `messageExpiryUs`. Trusted time only: a clock that
 *      jumped must not delete a topic.
 *   2. topic-size: a `drop-oldest` topic is over its `maxSizeBytes`. Other topics take nothing more until they are below it.
 *   3. disk-budget: everything together is over the budget, or the volume has too little free space. Segments that still
 *      grow count as well: else many small partitions would fill a disk of which nothing could be dropped.
 *
 *   4. disk-budget, where not a segment is left to go and the journal itself is stuck on a full disk: what lies in its oldest
 *      file, all at once, for less would not free it. Only `drop-oldest` topics, and not in vain: where the file holds
 *      messages of others as well, there must be room for those.
 *
 * The barrier: a segment is kept while a consumer, group, device or sync route has not got past its last offset. It holds
 * against 1 and 2, as in Iggy. It does not hold against 3: an abandoned consumer would otherwise stop the gateway. Readings
 * that nobody has read are given up last, after topics that may not drop were told to take no more.
 */
import type { DropReason, OverflowPolicy } from '../api.ts'
import type { JournalHead, SealedSegment } from '../ports.ts'

export type EvictionReason = Exclude<DropReason, 'drop-newest'>

export interface RetentionPartition {
  readonly key: number
  /** Physical bytes, the active segment and the share of the journal included. */
  readonly sizeBytes: number
  /** Oldest first. */
  readonly sealed: readonly SealedSegment[]
  /** Closed ones behind them that still lie in the journal; to drop them frees the files that large batches of theirs have. */
  readonly inJournal: readonly SealedSegment[]
  /** The one that still grows: goes only for the disk budget, and has to be sealed first. */
  readonly active: SealedSegment | null
  /** Lowest stored offset or cursor; null when nobody holds anything back. */
  readonly barrierOffset: bigint | null
  /** What it has in the journal file that a full disk keeps from coming free; null when none is. */
  readonly journalHead: JournalHead | null
}

export interface RetentionTopic {
  readonly overflow: OverflowPolicy
  readonly messageExpiryUs: bigint | null
  readonly maxSizeBytes: bigint | null
  readonly partitions: readonly RetentionPartition[]
}

export interface DiskState {
  /** All files of the log. */
  readonly usedBytes: number
  readonly budgetBytes: number
  /** Of the volume. */
  readonly freeBytes: number
  readonly freeFloorBytes: number
}

export interface RetentionInput {
  readonly nowUs: bigint
  readonly isClockTrusted: boolean
  readonly topics: readonly RetentionTopic[]
  readonly disk: DiskState
}

/** A run of segments at the old end of one partition that go for one reason. */
export interface Eviction {
  readonly key: number
  readonly reason: EvictionReason
  readonly segments: readonly SealedSegment[]
}

/** A partition's oldest messages in the journal go. */
export interface JournalEviction {
  readonly key: number
  readonly reason: EvictionReason
  readonly head: JournalHead
}

export interface RetentionPlan {
  /** In the order in which they are to be carried out. */
  readonly evictions: readonly Eviction[]
  /** Behind the evictions: all of them or none, so that a file comes free. */
  readonly journalEvictions: readonly JournalEviction[]
  /** Partitions that take nothing now, and what happens to what comes. */
  readonly refusals: ReadonlyMap<number, 'reject' | 'drop-newest'>
  /** Bytes over the budget (or under the free-space floor) that no eviction can give back. */
  readonly excessBytes: number
}

export function planRetention(input: RetentionInput): RetentionPlan {
  const planner = new Planner(input)
  for (const topic of planner.topics) {
    planner.expire(topic)
    planner.limitTopic(topic)
  }
  const excessBytes = planner.limitDisk()
  const { evictions, refusals } = planner
  return { evictions, journalEvictions: planner.freeJournal(), refusals, excessBytes }
}

/** A partition and how many of its segments the plan has taken. */
interface Slot {
  readonly partition: RetentionPartition
  readonly overflow: OverflowPolicy
  /** All that are closed. */
  readonly closed: readonly SealedSegment[]
  takenCount: number
}

interface TopicSlots {
  readonly topic: RetentionTopic
  readonly slots: readonly Slot[]
}

interface Candidate {
  readonly slot: Slot
  readonly segment: SealedSegment
}

class Planner {
  readonly topics: readonly TopicSlots[]
  readonly evictions: { key: number; reason: EvictionReason; segments: SealedSegment[] }[] = []
  readonly refusals = new Map<number, 'reject' | 'drop-newest'>()
  readonly #input: RetentionInput
  #freedBytes = 0

  constructor(input: RetentionInput) {
    this.#input = input
    this.topics = input.topics.map((topic) => ({
      topic,
      slots: topic.partitions.map((partition) => slotOf(partition, topic.overflow)),
    }))
  }

  expire({ topic, slots }: TopicSlots): void {
    const { messageExpiryUs } = topic
    if (messageExpiryUs === null || !this.#input.isClockTrusted) return
    const limitUs = this.#input.nowUs - messageExpiryUs
    for (const slot of slots) {
      let olderEnd = 0
      for (const [index, segment] of slot.closed.entries()) {
        if (index === olderEnd) olderEnd = endOfOlder(slot.closed, index, limitUs)
        if (index === olderEnd || isHeld(slot, segment)) break
        this.#take(slot, segment, 'expired')
      }
    }
  }

  limitTopic({ topic, slots }: TopicSlots): void {
    if (topic.maxSizeBytes === null) return
    let excessBytes = slots.reduce((sum, slot) => sum + keptBytes(slot), 0) - Number(topic.maxSizeBytes)
    if (topic.overflow !== 'drop-oldest') {
      if (excessBytes >= 0) this.#refuse(slots, topic.overflow)
      return
    }
    // Asked before anything is looked at: the time of a segment may cost a read.
    if (excessBytes <= 0) return
    for (const { slot, segment } of oldestFirst(slots, ({ closed }) => closed, isHeld)) {
      if (excessBytes <= 0) return
      this.#take(slot, segment, 'topic-size')
      excessBytes -= segment.sizeBytes
    }
  }

  /** @returns bytes that stay over. */
  limitDisk(): number {
    const isEnough = (): boolean => this.#diskExcess() <= 0
    if (isEnough()) return 0
    const droppable = this.#droppable()
    this.#relieve(droppable, 'disk-budget', isEnough)
    if (isEnough()) return 0
    for (const { topic, slots: own } of this.topics) {
      if (topic.overflow !== 'drop-oldest') this.#refuse(own, topic.overflow)
    }
    this.#relieve(droppable, 'disk-budget-unread', isEnough)
    return Math.max(0, this.#diskExcess())
  }

  freeJournal(): JournalEviction[] {
    const heads = this.topics.flatMap(({ slots }) =>
      slots.flatMap(({ partition, overflow }) => {
        const { key, journalHead: head, barrierOffset } = partition
        const isUnread = head !== null && barrierOffset !== null && barrierOffset < head.endOffset - 1n
        const reason: EvictionReason = isUnread ? 'disk-budget-unread' : 'disk-budget'
        return head === null ? [] : [{ overflow, eviction: { key, reason, head } }]
      }),
    )
    const isDroppable = ({ overflow }: { readonly overflow: OverflowPolicy }): boolean => overflow === 'drop-oldest'
    const kept = heads.filter((each) => !isDroppable(each))
    const keptBytes = kept.reduce((sum, { eviction }) => sum + eviction.head.sizeBytes, 0)
    // What segments give back is tried first, also where the limits see room that the disk has not: a quota, no floor.
    if (this.#freedBytes === 0)
      this.#replaceHeads(heads.reduce((sum, { eviction }) => sum + eviction.head.sizeBytes, 0))
    if (this.#freedBytes > 0 || keptBytes > this.#input.disk.freeBytes) return []
    return heads.filter(isDroppable).map(({ eviction }) => eviction)
  }

  /** Oldest segments, so that as much as this has a place: those that all have read, else the others. */
  #replaceHeads(sizeBytes: number): void {
    const isEnough = (): boolean => this.#freedBytes >= sizeBytes
    this.#relieve(this.#droppable(), 'disk-budget', isEnough)
    this.#relieve(this.#droppable(), 'disk-budget-unread', isEnough)
  }

  #droppable(): readonly Slot[] {
    return this.topics.flatMap((topic) => topic.slots).filter(({ overflow }) => overflow === 'drop-oldest')
  }

  #relieve(slots: readonly Slot[], reason: 'disk-budget' | 'disk-budget-unread', isEnough: () => boolean): void {
    if (isEnough()) return
    const isKept = reason === 'disk-budget' ? isHeld : isNeverHeld
    for (const { slot, segment } of oldestFirst(slots, filesOf, isKept)) {
      if (isEnough()) return
      this.#take(slot, segment, reason)
    }
  }

  #diskExcess(): number {
    const { usedBytes, budgetBytes, freeBytes, freeFloorBytes } = this.#input.disk
    const overBudget = usedBytes - this.#freedBytes - budgetBytes
    const underFloor = freeFloorBytes - (freeBytes + this.#freedBytes)
    return Math.max(overBudget, underFloor)
  }

  #refuse(slots: readonly Slot[], policy: 'reject' | 'drop-newest'): void {
    for (const { partition } of slots) this.refusals.set(partition.key, policy)
  }

  #take(slot: Slot, segment: SealedSegment, reason: EvictionReason): void {
    slot.takenCount++
    this.#freedBytes += segment.fileBytes
    const { key } = slot.partition
    const last = this.evictions.findLast((eviction) => eviction.key === key)
    if (last?.reason === reason) last.segments.push(segment)
    else this.evictions.push({ key, reason, segments: [segment] })
  }
}

/**
 * How far the last appends of the segment at `index`, and of those behind it, are surely at or before `limitUs`. A time from a
 * clock that was not trusted says nothing, but such a segment is older than the first one behind it that has a trusted time.
 *
 * @returns `index` when not even that of the first is.
 */
function endOfOlder(sealed: readonly SealedSegment[], index: number, limitUs: bigint): number {
  for (let at = index; at < sealed.length; at++) {
    const segment = sealed[at]
    if (segment?.isClockTrusted) return segment.lastAppendUs <= limitUs ? at + 1 : index
  }
  return index
}

function isHeld(slot: Slot, segment: SealedSegment): boolean {
  const { barrierOffset } = slot.partition
  return barrierOffset !== null && barrierOffset < segment.endOffset - 1n
}

const isNeverHeld = (): boolean => false

/**
 * What frees disk, and what lies before it. The first segment of the journal includes the one that still grows: that goes by
 * itself where no large batch has a file.
 */
function filesOf({ partition: { sealed, inJournal, active } }: Slot): readonly SealedSegment[] {
  const grownBytes = active?.fileBytes ?? 0
  const lastWithFile = inJournal.findLastIndex(({ fileBytes }, at) => fileBytes > (at === 0 ? grownBytes : 0))
  if (lastWithFile >= 0) return [...sealed, ...inJournal.slice(0, lastWithFile + 1)]
  return active === null ? sealed : [...sealed, active]
}

function slotOf(partition: RetentionPartition, overflow: OverflowPolicy): Slot {
  const { sealed, inJournal } = partition
  return { partition, overflow, closed: inJournal.length === 0 ? sealed : [...sealed, ...inJournal], takenCount: 0 }
}

function keptBytes(slot: Slot): number {
  const taken = slot.closed.slice(0, slot.takenCount)
  return taken.reduce((sum, segment) => sum - segment.sizeBytes, slot.partition.sizeBytes)
}

/** The next segment of one partition, if it may go. */
interface Head {
  readonly slot: Slot
  readonly segments: readonly SealedSegment[]
  at: number
  /** Highest last append time so far: even a clock that fell keeps the order of offsets. */
  orderUs: bigint
}

/**
 * What is left of all partitions, by age; within a partition always by offset, and nothing behind what is kept. The caller
 * takes each one it is given. Only the oldest of each partition are looked at: the time of a segment may cost a read.
 */
function* oldestFirst(
  slots: readonly Slot[],
  segmentsOf: (slot: Slot) => readonly SealedSegment[],
  isKept: (slot: Slot, segment: SealedSegment) => boolean,
): Generator<Candidate> {
  const heads = slots.map((slot): Head => ({ slot, segments: segmentsOf(slot), at: slot.takenCount - 1, orderUs: 0n }))
  let left = heads.filter((head) => advance(head, isKept))
  while (left.length > 0) {
    const oldest = left.reduce((best, head) => (isBefore(head, best) ? head : best))
    const segment = oldest.segments[oldest.at]
    if (segment !== undefined) yield { slot: oldest.slot, segment }
    if (!advance(oldest, isKept)) left = left.filter((head) => head !== oldest)
  }
}

/** @returns false when nothing of the partition may go any more. */
function advance(head: Head, isKept: (slot: Slot, segment: SealedSegment) => boolean): boolean {
  head.at++
  const segment = head.segments[head.at]
  if (segment === undefined || isKept(head.slot, segment)) return false
  if (segment.lastAppendUs > head.orderUs) head.orderUs = segment.lastAppendUs
  return true
}

function isBefore(a: Head, b: Head): boolean {
  return a.orderUs === b.orderUs ? a.slot.partition.key < b.slot.partition.key : a.orderUs < b.orderUs
}
