/**
 * How far segments hold what damage took from the journal.
 *
 * A crash between the sync of segments and the recycling of a journal file leaves its batches in both, and the journal counts:
 * what segments hold of it may be torn. Where the journal is damaged that would throw the good copy away. So there the blocks
 * count as far as they follow each other with intact bodies; they hold nothing but batches that were synced in the journal.
 */
import type { Checksum } from '../core/checksum.ts'
import { BLOCK_HEADER_SIZE, type BlockHeader } from '../core/segment-format.ts'
import type { LogFile } from './file-system.ts'
import { readGivenArea } from './given-pages.ts'
import { blocksOf } from './segment-scan.ts'

/** A segment file as recovery finds it. */
export interface FoundBlocks {
  readonly handle: LogFile
  readonly seed: number
  /** Where the next file's name says that this one ends; undefined for the last. */
  readonly endOffset: bigint | undefined
}

/** What the journal holds of a partition, where it is damaged. */
export interface DamagedJournal {
  /** From here on the journal holds everything itself; undefined: what it held at its end may be gone. */
  readonly wholeFrom: bigint | undefined
  /** Whether it holds a batch that begins in that range. */
  readonly holds: (from: bigint, end: bigint) => boolean
}

/**
 * @param files in order, from the one on that may hold `first`.
 * @param first offset from which on the journal counted, were it sound.
 * @returns the offset from which on it counts.
 */
export function intactEnd(
  files: Iterable<FoundBlocks>,
  first: bigint,
  { wholeFrom, holds }: DamagedJournal,
  checksum: Checksum,
): bigint {
  let next = first
  for (const { handle, seed, endOffset } of files) {
    for (const block of blocksOf(handle, seed, handle.size())) {
      if (wholeFrom !== undefined && next >= wholeFrom) return wholeFrom
      if (endOffset !== undefined && block.baseOffset >= endOffset) break
      if (block.endOffset <= next) continue
      const isBroken = block.baseOffset > next && holds(next, block.baseOffset)
      if (isBroken || !isBodyIntact(handle, block, checksum)) return next
      next = block.endOffset
    }
  }
  return wholeFrom !== undefined && next > wholeFrom ? wholeFrom : next
}

function isBodyIntact(handle: LogFile, { position, storedSize, bodyCrc }: BlockHeader, checksum: Checksum): boolean {
  const { bytes } = readGivenArea(handle, position + BLOCK_HEADER_SIZE, storedSize)
  return bytes.length === storedSize && checksum(bytes, 0, storedSize, 0) === bodyCrc
}
