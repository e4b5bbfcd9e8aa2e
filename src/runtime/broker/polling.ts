/** Where a poll starts and what it says of the partition. Pure. */
import type { StoredBatch } from '../../sdk/wire/batch.ts'

/** The ends of a partition that a poll sees. */
export interface VisibleRange {
  readonly logStartOffset: bigint
  readonly visibleEnd: bigint
}

/** What is known before anything is read; a time has been turned into an offset. */
export type StartingPoint =
  | { readonly kind: 'offset'; readonly offset: bigint }
  | { readonly kind: 'first' }
  | { readonly kind: 'last' }
  | { readonly kind: 'next'; readonly storedOffset: bigint | undefined }

/** @returns the offset to read from, never below the oldest kept message; at or above `visibleEnd` there is nothing. */
export function startOffset(point: StartingPoint, range: VisibleRange, count: number): bigint {
  switch (point.kind) {
    case 'offset':
      return atLeast(point.offset, range.logStartOffset)
    case 'first':
      return range.logStartOffset
    case 'last':
      return atLeast(range.visibleEnd - BigInt(count), range.logStartOffset)
    case 'next':
      return point.storedOffset === undefined
        ? range.logStartOffset
        : atLeast(point.storedOffset + 1n, range.logStartOffset)
  }
}

/** Offset of the newest message; 0 for a partition that never had one. */
export function currentOffset(range: VisibleRange): bigint {
  return range.visibleEnd > 0n ? range.visibleEnd - 1n : 0n
}

/** Offset of the last message of a poll; undefined when it has none. */
export function lastOffsetOf(batches: readonly StoredBatch[]): bigint | undefined {
  const last = batches.at(-1)
  return last === undefined ? undefined : last.baseOffset + BigInt(last.skip + last.take - 1)
}

function atLeast(value: bigint, least: bigint): bigint {
  return value < least ? least : value
}
