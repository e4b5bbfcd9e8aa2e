/**
 * Gives a partition's batches back: hot ones from the journal at once, cold ones from segments a little later. What cannot
 * be read is passed over and told as a hole, never as an error: everything before and after it reads. Only where the machine
 * is short of descriptors or memory, or a device refuses what it may give a moment later, the read fails: what is there must
 * not be passed over for that.
 */
import { EdgeError, toEdgeError } from '../../errors.ts'
import type { ReadResult } from '../api.ts'
import { BATCH_KIND, type BatchHeader } from '../core/batch-header.ts'
import type { JournalIndex } from '../core/journal-index.ts'
import { earlier, later } from '../core/offset.ts'
import { BLOCK_RAW_SIZE } from '../core/segment-format.ts'
import { type IndexEntry, SegmentIndex } from '../core/segment-index.ts'
import type { BlockLoader, UseBlock } from './block-loader.ts'
import {
  type BlockPlace,
  batchesOf,
  type DamageListener,
  MISSING_BLOCKS,
  runFrom,
  takeBlock,
  takePlace,
} from './block-place.ts'
import { isShortage } from './file-system.ts'
import type { JournalReader } from './journal-reader.ts'
import type { Segment } from './segment.ts'
import type { SegmentFiles } from './segment-files.ts'
import { type ReadBounds, Taken } from './taken.ts'

/** What the reader must know of a partition. */
export interface ReadablePartition extends DamageListener {
  readonly idSeed: bigint
  readonly index: JournalIndex
  readonly segments: readonly Segment[]
  readonly externals: ReadonlyMap<bigint, Segment>
  /** Below it segments hold the messages, from it on the journal. */
  readonly segmentEnd: bigint
}

export class PartitionReader {
  readonly #journal: JournalReader
  readonly #segments: SegmentFiles

  constructor(journal: JournalReader, segments: SegmentFiles) {
    this.#journal = journal
    this.#segments = segments
  }

  /** From segments, then from the journal, until there is enough or nothing more. */
  read(partition: ReadablePartition, bounds: ReadBounds): ReadResult | Promise<ReadResult> {
    const taken = new Taken(partition.idSeed, bounds)
    let waiting: Promise<void> | undefined
    try {
      waiting = this.#gather(partition, taken)
    } catch (error) {
      return cutShort(taken, error)
    }
    if (waiting !== undefined) return this.#readLater(waiting, partition, taken)
    this.#readAhead(partition, taken)
    return taken.result()
  }

  /** First offset at or after `timeUs` below `end`, or `end`. */
  offsetAt(partition: ReadablePartition, timeUs: bigint, start: bigint, end: bigint): bigint | Promise<bigint> {
    const { index } = partition
    const first = index.count > 0 ? this.#journal.readHeader(index, 0) : undefined
    const isInJournal = first !== undefined && first.appendTimeUs < timeUs
    if (isInJournal || start >= partition.segmentEnd) return later(this.#offsetInJournal(index, timeUs, end), start)
    return this.#offsetInSegments(partition, timeUs, start, end)
  }

  /** Header of the batch in the journal that holds `offset`, if it lies there and can be read. @throws EDGE_IO. */
  headerAt({ index }: Pick<ReadablePartition, 'index'>, offset: bigint): BatchHeader | undefined {
    const entry = index.find(offset)
    return entry < 0 ? undefined : this.#journal.readHeader(index, entry)
  }

  /** @returns what must be waited for before it goes on; undefined at the end. */
  #gather(partition: ReadablePartition, taken: Taken): Promise<void> | undefined {
    while (!taken.isDone) {
      const before = taken.next
      const isCold = taken.next < partition.segmentEnd
      const waiting = isCold ? this.#readCold(partition, taken) : this.#readHot(partition, taken)
      if (waiting !== undefined) return waiting
      if (taken.next === before) return undefined
    }
    return undefined
  }

  async #readLater(first: Promise<void>, partition: ReadablePartition, taken: Taken): Promise<ReadResult> {
    try {
      for (let waiting: Promise<void> | undefined = first; waiting !== undefined; ) {
        // Other reads use the buffer meanwhile.
        taken.keep()
        await waiting
        waiting = this.#gather(partition, taken)
      }
    } catch (error) {
      taken.keep()
      return cutShort(taken, error)
    }
    taken.keep()
    this.#readAhead(partition, taken)
    return taken.result()
  }

  // ---- hot --------------------------------------------------------------------------------------------------------

  #readHot(partition: ReadablePartition, taken: Taken): Promise<void> | undefined {
    const { index } = partition
    const { bounds } = taken
    const { refusals } = this.#segments
    this.#restart(taken)
    let entry = Math.max(0, index.find(taken.next))
    while (entry < index.count && !taken.isDone && index.baseOffset(entry) < bounds.end) {
      let run = this.#journal.readRun(index, entry, lastWanted(index, entry, taken))
      if (run.length === 0) {
        this.#restart(taken)
        run = this.#journal.readRun(index, entry, entry)
      }
      if (run.length === 0) return undefined
      if (!refusals.isEmpty && run[0] !== null)
        refusals.given(this.#journal.lifeOf(index, entry), index.position(entry))
      for (const batch of run) {
        const base = index.baseOffset(entry)
        const nextBase = entry + 1 < index.count ? index.baseOffset(entry + 1) : bounds.end
        entry++
        if (batch !== null && batch.header.baseOffset === base) {
          const end = base + BigInt(batch.header.count)
          if (batch.header.kind === BATCH_KIND.external && end > taken.next) {
            return this.#readExternal(partition, { base, end }, taken)
          }
          if (!taken.add(batch)) return undefined
          continue
        }
        this.#checkRefusal(index, entry - 1)
        partition.damaged(base, nextBase, this.#journal.failure ?? 'a batch in the journal does not fit its checksum')
        if (!taken.skipTo(nextBase)) return undefined
      }
    }
    return undefined
  }

  /** Of a batch that is missing. @throws EDGE_IO while the device may give it a moment later. */
  #checkRefusal(index: JournalIndex, entry: number): void {
    const { failure } = this.#journal
    if (failure !== undefined) {
      const life = this.#journal.lifeOf(index, entry)
      this.#segments.refusals.check(life, index.position(entry), failure)
    }
  }

  /** The buffer is used from its start: what was taken from it is kept elsewhere. */
  #restart(taken: Taken): void {
    taken.keep()
    this.#journal.restart()
  }

  /** @returns undefined when the batch is left for the next read. */
  #readExternal(
    partition: ReadablePartition,
    range: { base: bigint; end: bigint },
    taken: Taken,
  ): Promise<void> | undefined {
    const segment =
      partition.externals.get(range.base) ?? partition.segments.find((each) => each.baseOffset === range.base)
    // Not read in vain: decoded it is hardly smaller than it lies there.
    if (segment !== undefined && !taken.hasRoomFor(segment.sizeBytes)) return undefined
    return this.#takeExternal(partition, range, segment, taken)
  }

  async #takeExternal(
    partition: ReadablePartition,
    range: { base: bigint; end: bigint },
    segment: Segment | undefined,
    taken: Taken,
  ): Promise<void> {
    try {
      const entry = segment === undefined ? undefined : this.#segments.index(segment).entry(0)
      if (segment === undefined || entry === undefined) throw new EdgeError('EDGE_BATCH_CORRUPT', 'its file is missing')
      await this.#loaded(segment, [{ position: entry.position, end: undefined }], (raw, isLasting) => {
        takeBlock(raw, taken, isLasting)
        taken.keep()
      })
      // Else it would be read again and again.
      if (!taken.isDone && taken.next < range.end) throw new EdgeError('EDGE_BATCH_CORRUPT', 'its file holds others')
    } catch (error) {
      if (isShortage(error)) throw error
      partition.damaged(range.base, range.end, toEdgeError(error))
      taken.skipTo(range.end)
    }
  }

  #offsetInJournal(index: JournalIndex, timeUs: bigint, end: bigint): bigint {
    let low = 0
    let high = index.count
    while (low < high) {
      const middle = (low + high) >>> 1
      const header = this.#journal.readHeader(index, middle)
      if (header !== undefined && header.appendTimeUs < timeUs) low = middle + 1
      else high = middle
    }
    return low < index.count ? earlier(index.baseOffset(low), end) : end
  }

  // ---- cold -------------------------------------------------------------------------------------------------------

  /** At once as far as blocks are decoded already, else later. */
  #readCold(partition: ReadablePartition, taken: Taken): Promise<void> | undefined {
    const { bounds } = taken
    while (!taken.isDone && taken.next < partition.segmentEnd) {
      const place = this.#locate(partition, taken.next)
      if (place === undefined) {
        const end = earlier(partition.segmentEnd, bounds.end)
        if (partition.segments.length > 0) partition.damaged(taken.next, end, MISSING_BLOCKS)
        taken.skipTo(end)
        return undefined
      }
      const from = taken.next
      if (place.entry.baseOffset > taken.next && !taken.skipTo(place.entry.baseOffset)) return undefined
      const decoded = this.#segments.blocks.decoded(place.segment, place.entry.position)
      const waiting = decoded === undefined ? this.#takeLater(partition, place, from, taken) : undefined
      if (waiting !== undefined) return waiting
      const block = decoded === undefined ? undefined : { raw: decoded, isLasting: false }
      if (!takePlace(partition, place, from, block, taken)) return undefined
    }
    return undefined
  }

  /** What cannot be read is told and passed over. */
  async #takeLater(partition: ReadablePartition, place: BlockPlace, from: bigint, taken: Taken): Promise<void> {
    try {
      const wanted = Number(taken.next - place.entry.baseOffset) + taken.left
      const run = runFrom(place, wanted, this.#blocksFor(taken.bounds.maxBytes - taken.bytes))
      await this.#loaded(place.segment, run, (raw, isLasting) => {
        takePlace(partition, place, from, { raw, isLasting }, taken)
        taken.keep()
      })
    } catch (error) {
      if (isShortage(error)) throw error
      // Retention may have dropped the segment meanwhile: not damage, the reader goes on behind it.
      if (partition.segments.includes(place.segment)) partition.damaged(taken.next, place.end, toEdgeError(error))
      takePlace(partition, place, from, undefined, taken)
    }
  }

  /** @throws as `BlockLoader.load`; as a shortage while the device may give the first block a moment later. */
  async #loaded(segment: Segment, run: Parameters<BlockLoader['load']>[1], use: UseBlock): Promise<void> {
    const { blocks, refusals } = this.#segments
    const [{ position }] = run
    try {
      await blocks.load(segment, run, use)
    } catch (error) {
      refusals.check(segment.path, position, error)
      throw error
    }
    refusals.given(segment.path, position)
  }

  /** Who reads from block to block goes on: what it will want next is decoded meanwhile. */
  #readAhead(partition: ReadablePartition, { bounds, next }: Taken): void {
    if (next >= partition.segmentEnd) return
    const place = this.#locate(partition, next)
    if (place === undefined || place.entry.baseOffset <= bounds.from) return
    const wanted = Number(next - place.entry.baseOffset) + bounds.maxCount
    // In small steps the block is read for a while: the one behind it is wanted then.
    const run = runFrom(place, Math.max(wanted, place.entry.recordCount + 1), 1 + this.#blocksFor(bounds.maxBytes))
    this.#segments.blocks.readAhead(place.segment, run)
  }

  /** How many blocks are worth one read where so many bytes are wanted. */
  #blocksFor(sizeBytes: number): number {
    return Math.min(Math.max(1, Math.ceil(sizeBytes / BLOCK_RAW_SIZE)), this.#segments.blocks.maxRun)
  }

  /** The block that holds `offset`, or the next one above it. */
  #locate(partition: ReadablePartition, offset: bigint): BlockPlace | undefined {
    const { segments } = partition
    let at = Math.max(0, countUpTo(segments, offset) - 1)
    for (; at < segments.length; at++) {
      const segment = segments[at]
      if (segment === undefined || segment.endOffset <= offset) continue
      const index = this.#indexOf(partition, segment)
      const found = Math.max(0, index.countUpTo(offset) - 1)
      for (let k = found; k < index.count; k++) {
        const entry = index.entry(k)
        if (entry === undefined || entry.baseOffset >= segment.endOffset) break
        // A block has no gap inside: what lies between it and the next one is missing, or was never given.
        const end = earlier(entry.baseOffset + BigInt(entry.recordCount), segment.endOffset)
        const isFirst = at === 0 && k === 0
        if (end > offset) return { segment, entry, index, number: k, end, isFirst }
      }
    }
    return undefined
  }

  /** Offset of the first batch of a block that was appended at `timeUs` or later; undefined also when it cannot be read. */
  async #offsetInBlock(segment: Segment, entry: IndexEntry, timeUs: bigint): Promise<bigint | undefined> {
    let found: bigint | undefined
    const look = (raw: Uint8Array): void => {
      found = [...batchesOf(raw)].find(({ header }) => header.appendTimeUs >= timeUs)?.header.baseOffset
    }
    const decoded = this.#segments.blocks.decoded(segment, entry.position)
    if (decoded !== undefined) look(decoded)
    else await this.#loaded(segment, [{ position: entry.position, end: undefined }], look).catch(throwShortage)
    return found
  }

  #indexOf(partition: ReadablePartition, segment: Segment): SegmentIndex {
    try {
      return this.#segments.index(segment)
    } catch (error) {
      if (isShortage(error)) throw error
      partition.damaged(segment.baseOffset, segment.endOffset, toEdgeError(error))
      return new SegmentIndex()
    }
  }

  /**
   * How many segments begin before `timeUs`, those among them that cannot be read included: times never fall within a
   * partition. There may be thousands, and to look into all of them would take seconds.
   */
  #countBegunBefore(partition: ReadablePartition, timeUs: bigint): number {
    const timeOf = (segment: Segment): bigint | undefined =>
      segment.firstAppendUs ?? this.#indexOf(partition, segment).entry(0)?.firstTimeUs
    let low = 0
    let high = partition.segments.length
    while (low < high) {
      const middle = (low + high) >>> 1
      let at = middle
      let firstTimeUs: bigint | undefined
      // One that cannot be read goes with the one before it.
      for (; at >= low; at--) {
        const segment = partition.segments[at]
        firstTimeUs = segment && timeOf(segment)
        if (firstTimeUs !== undefined) break
      }
      if (firstTimeUs === undefined || firstTimeUs < timeUs) low = middle + 1
      else high = at
    }
    return low
  }

  async #offsetInSegments(partition: ReadablePartition, timeUs: bigint, start: bigint, end: bigint): Promise<bigint> {
    // The last block that begins before the time holds the answer, or the one after it begins with it.
    for (let at = this.#countBegunBefore(partition, timeUs) - 1; at >= 0; at--) {
      const segment = partition.segments[at]
      if (segment === undefined) continue
      const index = this.#indexOf(partition, segment)
      const before = index.countBefore(timeUs) - 1
      const entry = index.entry(before)
      if (entry === undefined) continue
      // Before the wait: meanwhile segments go, and batches of the journal become blocks.
      const next =
        index.entry(before + 1)?.baseOffset ??
        partition.segments[at + 1]?.baseOffset ??
        this.#offsetInJournal(partition.index, timeUs, end)
      return later((await this.#offsetInBlock(segment, entry, timeUs)) ?? next, start)
    }
    return start
  }
}

/** What was read before is given; who goes on from there is told. */
function cutShort(taken: Taken, error: unknown): ReadResult {
  if (!isShortage(error) || taken.count === 0) throw error
  return taken.result()
}

function throwShortage(error: unknown): void {
  if (isShortage(error)) throw error
}

/** How many of a sorted list begin at or below `offset`. */
function countUpTo(list: readonly { readonly baseOffset: bigint }[], offset: bigint): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((list[middle]?.baseOffset ?? 0n) <= offset) low = middle + 1
    else high = middle
  }
  return low
}

/** Last entry that can still be wanted: the offsets between entries say how many records lie there at most. */
function lastWanted(index: JournalIndex, first: number, taken: Taken): number {
  const { bounds } = taken
  const until = earlier(taken.next + BigInt(taken.left), bounds.end)
  let bytes = 0
  let last = first
  while (last + 1 < index.count && index.baseOffset(last + 1) < until) {
    bytes += index.size(last)
    if (bytes >= bounds.maxBytes - taken.bytes) break
    last++
  }
  return last
}
