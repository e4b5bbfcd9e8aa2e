/**
 * Where segments end among messages that still lie in the journal. A partition's messages may wait there until a file of the
 * journal is full; where its segments are smaller than that, retention and operators must not wait as well. So the rule by
 * which a file is closed is applied to the batches: one that makes a segment as large as `limitBytes` is its last one.
 *
 * Sizes are those in the journal. Compression may make fewer segments of the same messages later. Pure.
 */
import type { JournalIndex } from './journal-index.ts'

/** The file that still grows: what comes from the journal goes on in it. */
export interface GrowingSegment {
  readonly baseOffset: bigint
  readonly sizeBytes: number
}

export interface JournalTail {
  readonly growing: GrowingSegment | undefined
  readonly index: JournalIndex
  /** Sizes of large batches, by offset, whose entry in the index only refers to a file. */
  readonly externals: ReadonlyMap<bigint, { readonly sizeBytes: number }>
  readonly writtenEnd: bigint
  /** Nothing above it is closed: it may still be taken back. */
  readonly durableEnd: bigint
}

export interface JournalSegment {
  readonly baseOffset: bigint
  /** Exclusive. */
  readonly endOffset: bigint
  readonly sizeBytes: number
  /** The part of it that lies in files of its own, and not in the journal. */
  readonly fileBytes: number
}

/** @returns what is closed, oldest first; the first begins with the file that still grows, if there is one. */
export function closedInJournal(tail: JournalTail, limitBytes: number): readonly JournalSegment[] {
  const { index, growing, externals, writtenEnd, durableEnd } = tail
  if (totalBytes(tail) < limitBytes) return []
  const closed: JournalSegment[] = []
  let baseOffset = growing?.baseOffset ?? (index.count > 0 ? index.baseOffset(0) : writtenEnd)
  let sizeBytes = growing?.sizeBytes ?? 0
  let fileBytes = sizeBytes
  for (let entry = 0; ; entry++) {
    if (sizeBytes >= limitBytes) {
      const endOffset = entry < index.count ? index.baseOffset(entry) : writtenEnd
      if (endOffset > durableEnd) return closed
      closed.push({ baseOffset, endOffset, sizeBytes, fileBytes })
      baseOffset = endOffset
      sizeBytes = 0
      fileBytes = 0
    }
    if (entry === index.count) return closed
    // There may be a hundred thousand entries, and hardly ever a large batch.
    const externalBytes = externals.size === 0 ? 0 : (externals.get(index.baseOffset(entry))?.sizeBytes ?? 0)
    sizeBytes += index.size(entry) + externalBytes
    fileBytes += externalBytes
  }
}

/** Mostly it is less than one segment, and no batch has to be looked at. */
function totalBytes({ growing, index, externals }: JournalTail): number {
  let bytes = (growing?.sizeBytes ?? 0) + index.sizeBytes
  for (const { sizeBytes } of externals.values()) bytes += sizeBytes
  return bytes
}
