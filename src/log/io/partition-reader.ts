/**
 * Gives a partition's batches back: hot ones from the journal at once, cold ones from segments a little later. What cannot
 * be read is passed over and told as a hole, never as an error: everything before and after it reads.
 */
import { EdgeError, toEdgeError } from '../../errors.ts'
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import type { ReadResult } from '../api.ts'
import {
  BATCH_FLAG,
  BATCH_HEADER_SIZE,
  BATCH_KIND,
  type BatchHeader,
  batchEndAt,
  batchSizeAt,
  decodeBatchHeader,
} from '../core/batch-header.ts'
import { areaOf } from '../core/byte-area.ts'
import type { JournalIndex } from '../core/journal-index.ts'
import { earlier, later } from '../core/offset.ts'
import type { IndexEntry } from '../core/segment-format.ts'
import { type JournalReader, type ReadBatch, recordsStart } from './journal-reader.ts'
import type { Segment } from './segment.ts'
import type { SegmentFiles } from './segment-files.ts'

/** What the reader must know of a partition. */
export interface ReadablePartition {
  readonly idSeed: bigint
  readonly index: JournalIndex
  readonly segments: readonly Segment[]
  readonly externals: ReadonlyMap<bigint, Segment>
  /** Below it segments hold the messages, from it on the journal. */
  readonly segmentEnd: bigint
  /** A range that could not be read. */
  damaged(from: bigint, end: bigint, cause: string | EdgeError): void
}

export interface ReadBounds {
  readonly from: bigint
  /** Exclusive. */
  readonly end: bigint
  readonly maxCount: number
  readonly maxBytes: number
}

/** Where a block lies and which offsets it holds. */
interface BlockPlace {
  readonly segment: Segment
  readonly entry: IndexEntry
  /** The block behind it in the same segment. */
  readonly nextEntry: IndexEntry | undefined
  /** Exclusive. */
  readonly end: bigint
}

export class PartitionReader {
  readonly #journal: JournalReader
  readonly #segments: SegmentFiles

  constructor(journal: JournalReader, segments: SegmentFiles) {
    this.#journal = journal
    this.#segments = segments
  }

  read(partition: ReadablePartition, bounds: ReadBounds): ReadResult | Promise<ReadResult> {
    if (bounds.from < partition.segmentEnd) return this.#readCold(partition, bounds)
    return this.#readHot(partition, bounds)
  }

  /** First offset at or after `timeUs` below `end`, or `end`. */
  offsetAt(partition: ReadablePartition, timeUs: bigint, start: bigint, end: bigint): bigint | Promise<bigint> {
    const { index } = partition
    const first = index.count > 0 ? this.#journal.readHeader(index, 0) : undefined
    const isInJournal = first !== undefined && first.appendTimeUs < timeUs
    if (isInJournal || start >= partition.segmentEnd) return later(this.#offsetInJournal(index, timeUs, end), start)
    return this.#offsetInSegments(partition, timeUs, start, end)
  }

  // ---- hot --------------------------------------------------------------------------------------------------------

  #readHot(partition: ReadablePartition, bounds: ReadBounds): ReadResult | Promise<ReadResult> {
    const { index } = partition
    const taken = new Taken(partition.idSeed, bounds)
    this.#journal.restart()
    let entry = Math.max(0, index.find(bounds.from))
    while (entry < index.count && !taken.isFull && index.baseOffset(entry) < bounds.end) {
      const run = this.#journal.readRun(index, entry, lastWanted(index, entry, taken, bounds))
      if (run.length === 0) break
      for (const batch of run) {
        const base = index.baseOffset(entry)
        const nextBase = entry + 1 < index.count ? index.baseOffset(entry + 1) : bounds.end
        entry++
        if (batch !== null && batch.header.baseOffset === base) {
          const isWanted = base + BigInt(batch.header.count) > taken.next
          if (batch.header.kind === BATCH_KIND.external && isWanted) {
            // A read of its own: what was taken before lies in the buffer, and would not outlive the wait.
            if (taken.count > 0) return taken.result()
            return this.#readExternal(partition, { base, end: base + BigInt(batch.header.count) }, taken)
          }
          if (!taken.add(batch)) return taken.result()
          continue
        }
        partition.damaged(base, nextBase, this.#journal.failure ?? 'a batch in the journal does not fit its checksum')
        if (!taken.skipTo(nextBase)) return taken.result()
      }
    }
    return taken.result()
  }

  async #readExternal(
    partition: ReadablePartition,
    range: { base: bigint; end: bigint },
    taken: Taken,
  ): Promise<ReadResult> {
    const segment =
      partition.externals.get(range.base) ?? partition.segments.find((each) => each.baseOffset === range.base)
    try {
      const [entry] = segment === undefined ? [] : this.#segments.index(segment)
      if (segment === undefined || entry === undefined) throw new EdgeError('EDGE_BATCH_CORRUPT', 'its file is missing')
      takeBlock(await this.#segments.readBlock(segment, entry.position), taken)
    } catch (error) {
      partition.damaged(range.base, range.end, toEdgeError(error))
      taken.skipTo(range.end)
    }
    return taken.result()
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

  /** At once as far as blocks are decoded already, else later. Either way decoded blocks stay as they are. */
  #readCold(
    partition: ReadablePartition,
    bounds: ReadBounds,
    taken = new Taken(partition.idSeed, bounds),
  ): ReadResult | Promise<ReadResult> {
    while (!taken.isFull && taken.next < partition.segmentEnd && taken.next < bounds.end) {
      const place = this.#locate(partition, taken.next)
      if (place === undefined) {
        taken.skipTo(earlier(partition.segmentEnd, bounds.end))
        break
      }
      if (place.entry.baseOffset > taken.next && !taken.skipTo(place.entry.baseOffset)) break
      const raw = this.#blockAt(partition, place, taken.next)
      // Who reads from block to block goes on: the next one is decoded meanwhile.
      if (place.entry.baseOffset >= bounds.from) this.#readAhead(place)
      if (raw instanceof Promise) {
        return raw.then((decoded) =>
          takePlace(decoded, place, taken) ? this.#readCold(partition, bounds, taken) : taken.result(),
        )
      }
      if (!takePlace(raw, place, taken)) break
    }
    return taken.result()
  }

  /** @returns undefined when the block cannot be read, which is told. */
  #blockAt(
    partition: ReadablePartition,
    place: BlockPlace,
    from: bigint,
  ): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    const failed = (error: unknown): undefined => {
      // Retention may have dropped the segment meanwhile: not damage, the reader goes on behind it.
      if (!partition.segments.includes(place.segment)) return undefined
      partition.damaged(from, place.end, toEdgeError(error))
    }
    const raw = this.#segments.readBlock(place.segment, place.entry.position)
    return raw instanceof Promise ? raw.catch(failed) : raw
  }

  #readAhead({ segment, nextEntry }: BlockPlace): void {
    if (nextEntry !== undefined) this.#segments.readAhead(segment, nextEntry.position)
  }

  /** The block that holds `offset`, or the next one above it. */
  #locate(partition: ReadablePartition, offset: bigint): BlockPlace | undefined {
    const { segments } = partition
    let at = Math.max(0, countUpTo(segments, offset) - 1)
    for (; at < segments.length; at++) {
      const segment = segments[at]
      if (segment === undefined || segment.endOffset <= offset) continue
      const entries = this.#indexOf(partition, segment)
      const found = Math.max(0, countUpTo(entries, offset) - 1)
      for (let k = found; k < entries.length; k++) {
        const entry = entries[k]
        const nextEntry = entries[k + 1]
        const end = nextEntry?.baseOffset ?? segment.endOffset
        if (entry !== undefined && end > offset) return { segment, entry, nextEntry, end }
      }
    }
    return undefined
  }

  async #rawOrNothing(segment: Segment, entry: IndexEntry): Promise<Uint8Array> {
    try {
      return await this.#segments.readBlock(segment, entry.position)
    } catch {
      return new Uint8Array(0)
    }
  }

  #indexOf(partition: ReadablePartition, segment: Segment): readonly IndexEntry[] {
    try {
      return this.#segments.index(segment)
    } catch (error) {
      partition.damaged(segment.baseOffset, segment.endOffset, toEdgeError(error))
      return []
    }
  }

  async #offsetInSegments(partition: ReadablePartition, timeUs: bigint, start: bigint, end: bigint): Promise<bigint> {
    // From behind: the last block that begins before the time holds the answer, or the one after it begins with it.
    for (let at = partition.segments.length - 1; at >= 0; at--) {
      const segment = partition.segments[at]
      if (segment === undefined) continue
      const entries = this.#indexOf(partition, segment)
      const before = entries.findLastIndex((entry) => entry.firstTimeUs < timeUs)
      const entry = entries[before]
      if (entry === undefined) continue
      const raw = await this.#rawOrNothing(segment, entry)
      const within = [...batchesOf(raw)].find(({ header }) => header.appendTimeUs >= timeUs)
      const next = entries[before + 1]?.baseOffset ?? partition.segments[at + 1]?.baseOffset
      const found = within?.header.baseOffset ?? next ?? this.#offsetInJournal(partition.index, timeUs, end)
      return later(found, start)
    }
    return start
  }
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
function lastWanted(index: JournalIndex, first: number, taken: Taken, bounds: ReadBounds): number {
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

/** Takes what is wanted of a block; one that could not be read is passed over. @returns false when no more is wanted. */
function takePlace(raw: Uint8Array | undefined, place: BlockPlace, taken: Taken): boolean {
  if (raw !== undefined && !takeBlock(raw, taken)) return false
  return taken.isFull || taken.next >= place.end || taken.skipTo(place.end)
}

/** @returns false when no more is wanted. */
function takeBlock(raw: Uint8Array, taken: Taken): boolean {
  for (const batch of batchesOf(raw, taken.next)) if (!taken.add(batch)) return false
  return true
}

/** Batches of a decoded block, which its CRC has vouched for; those that end at or below `from` are left out. */
export function* batchesOf(raw: Uint8Array, from = 0n): Generator<ReadBatch> {
  const area = areaOf(raw)
  const wanted = Number(from)
  let at = 0
  while (at < raw.length) {
    const size = batchSizeAt(area, at)
    if (size === undefined) return
    if (batchEndAt(area, at) > wanted) {
      const header: BatchHeader | undefined = decodeBatchHeader(area, at, raw.length)
      if (header === undefined) return
      const bodyAt = at + BATCH_HEADER_SIZE
      const recordsView = raw.subarray(recordsStart(area, header, bodyAt), bodyAt + header.bodySize)
      yield { header, recordsView }
    }
    at += size
  }
}

/** What a read has gathered so far. */
class Taken {
  readonly #idSeed: bigint
  readonly #bounds: ReadBounds
  readonly #batches: StoredBatch[] = []
  #hole: { from: bigint; end: bigint } | undefined
  next: bigint
  count = 0
  bytes = 0

  constructor(idSeed: bigint, bounds: ReadBounds) {
    this.#idSeed = idSeed
    this.#bounds = bounds
    this.next = bounds.from
  }

  get left(): number {
    return this.#bounds.maxCount - this.count
  }

  get isFull(): boolean {
    return this.left <= 0 || (this.count > 0 && this.bytes >= this.#bounds.maxBytes)
  }

  /** @returns false when the batch was not taken: there is enough, or a second hole lies before it. */
  add({ header, recordsView }: ReadBatch): boolean {
    const end = header.baseOffset + BigInt(header.count)
    if (end <= this.next) return true
    if (this.isFull || header.baseOffset >= this.#bounds.end) return false
    if (this.count > 0 && this.bytes + recordsView.length > this.#bounds.maxBytes) return false
    if (header.baseOffset > this.next && !this.skipTo(header.baseOffset)) return false
    const skip = Number(this.next - header.baseOffset)
    const take = Math.min(header.count - skip, this.left)
    this.#batches.push({
      count: header.count,
      baseOriginUs: header.baseOriginUs,
      recordsView,
      baseOffset: header.baseOffset,
      appendTimeUs: header.appendTimeUs,
      idSeed: this.#idSeed,
      skip,
      take,
      isClockTrusted: (header.flags & BATCH_FLAG.isClockTrusted) !== 0,
    })
    this.count += take
    this.bytes += recordsView.length
    this.next += BigInt(take)
    return true
  }

  /** Passes over a range. @returns false when another hole was told already: the next read goes on from here. */
  skipTo(offset: bigint): boolean {
    if (offset <= this.next) return true
    if (this.#hole !== undefined && this.#hole.end !== this.next) return false
    this.#hole = { from: this.#hole?.from ?? this.next, end: offset }
    this.next = offset
    return true
  }

  result(): ReadResult {
    const result = { batches: this.#batches, nextOffset: this.next, messageCount: this.count }
    return this.#hole === undefined ? result : { ...result, hole: this.#hole }
  }
}
