/** One block on the way of a reader: where it lies, what is wanted of it, and what lies behind it. */
import type { EdgeError } from '../../errors.ts'
import {
  BATCH_FLAG,
  BATCH_HEADER_SIZE,
  type BatchHeader,
  batchEndAt,
  batchSizeAt,
  decodeBatchHeader,
} from '../core/batch-header.ts'
import { areaOf } from '../core/byte-area.ts'
import { later } from '../core/offset.ts'
import type { IndexEntry, SegmentIndex } from '../core/segment-index.ts'
import { type BlockRange, MAX_RUN_SIZE } from './block-loader.ts'
import { type ReadBatch, recordsStart } from './journal-reader.ts'
import type { Segment } from './segment.ts'
import type { Taken } from './taken.ts'

/** Where a block lies and which offsets it holds. */
export interface BlockPlace {
  readonly segment: Segment
  readonly entry: IndexEntry
  /** All blocks of the segment, and which of them this is. */
  readonly index: SegmentIndex
  readonly number: number
  /** Exclusive. */
  readonly end: bigint
  /** The oldest block there is. */
  readonly isFirst: boolean
}

/** Who is told of a range that could not be read. */
export interface DamageListener {
  damaged(from: bigint, end: bigint, cause: string | EdgeError): void
}

export const MISSING_BLOCKS = 'blocks of its segments are missing or damaged'

/** The block and those behind it, until they hold so many records or are so many. */
export function runFrom(
  { segment, entry, index, number }: BlockPlace,
  recordCount: number,
  maxCount: number,
): [BlockRange, ...BlockRange[]] {
  const rangeOf = ({ position }: IndexEntry, next: IndexEntry | undefined): BlockRange => {
    // The last one ends with what counts of the file.
    const end = next?.position ?? segment.sizeBytes
    // Where blocks in between are missing, that does not tell how large this one is.
    return { position, end: end > position && end - position <= MAX_RUN_SIZE ? end : undefined }
  }
  const run: [BlockRange, ...BlockRange[]] = [rangeOf(entry, index.entry(number + 1))]
  let count = entry.recordCount
  for (let at = number + 1; count < recordCount && run.length < maxCount; at++) {
    const each = index.entry(at)
    if (each === undefined || each.baseOffset >= segment.endOffset) break
    run.push(rangeOf(each, index.entry(at + 1)))
    count += each.recordCount
  }
  return run
}

/**
 * Where offsets before the block begin that were lost: not those that retention dropped, nor those a jump never gave.
 *
 * @returns undefined when none were.
 */
function missingBefore(
  { segment, entry, isFirst }: BlockPlace,
  from: bigint,
  raw: Uint8Array | undefined,
): bigint | undefined {
  // What lies below the oldest segment was dropped, perhaps while it was read.
  const start = isFirst ? later(from, segment.baseOffset) : from
  if (entry.baseOffset <= start) return undefined
  const header = raw === undefined ? undefined : decodeBatchHeader(areaOf(raw), 0, raw.length)
  return header !== undefined && (header.flags & BATCH_FLAG.hasGapBefore) !== 0 ? undefined : start
}

/** Takes what is wanted of a block; one that could not be read is passed over. @returns false when no more is wanted. */
export function takePlace(
  partition: DamageListener,
  place: BlockPlace,
  from: bigint,
  block: { readonly raw: Uint8Array; readonly isLasting: boolean } | undefined,
  taken: Taken,
): boolean {
  const missing = missingBefore(place, from, block?.raw)
  if (missing !== undefined) partition.damaged(missing, place.entry.baseOffset, MISSING_BLOCKS)
  if (block !== undefined && !takeBlock(block.raw, taken, block.isLasting)) return false
  return taken.isFull || taken.next >= place.end || taken.skipTo(place.end)
}

/** @returns false when no more is wanted. */
export function takeBlock(raw: Uint8Array, taken: Taken, isLasting: boolean): boolean {
  for (const batch of batchesOf(raw, taken.next)) if (!taken.add(batch, isLasting)) return false
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
