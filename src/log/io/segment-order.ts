/**
 * Which of a partition's files count, as far as their names tell. A segment ends where the next one's name begins, so a file
 * that should be gone and is not would end the one before it: it is told by its run.
 */
import type { SegmentName } from '../core/segment-format.ts'

type Named = Pick<SegmentName, 'baseOffset' | 'runNumber'>

/**
 * Runs that are left out at an open at which a file could not be removed that the journal holds as well, or a folder could
 * not be listed that may have one. Files of large batches, which are written before what is packed in front of them, are
 * never so many.
 */
export const RUN_GAP = 2 ** 20

/**
 * No edge gets so far, with a gap at each of its starts. A file of such a name is a stranger's: runs that went on from there
 * would soon have no name that can be read again.
 */
export const STRANGE_RUN = 2 ** 49

export const inOrder = <T extends Named>(files: readonly T[]): T[] =>
  [...files].sort((a, b) => compare(a.baseOffset, b.baseOffset) || a.runNumber - b.runNumber)

/**
 * Files left over from before a gap: what they hold was packed again behind it, from the journal, which had all of it.
 *
 * @param files in order.
 * @param endOf looks into a file: end of its last block. Only those are asked for that stand beside an older one.
 */
export function overtaken<T extends Named>(
  files: readonly T[],
  endOf: (file: T) => bigint | undefined,
): ReadonlySet<T> {
  const gone = new Set<T>()
  const isPassed = (older: T, newer: T): boolean =>
    newer.runNumber - older.runNumber >= RUN_GAP && (endOf(newer) ?? 0n) > older.baseOffset
  let before: T | undefined
  for (const file of files) {
    if (before !== undefined && isPassed(file, before)) {
      gone.add(file)
      continue
    }
    if (before?.baseOffset === file.baseOffset && isPassed(before, file)) gone.add(before)
    before = file
  }
  return gone
}

/**
 * Of files that begin at the same offset the last one with messages counts: the others belong to runs that were given up, or
 * hold nothing but the end of a hole.
 *
 * @param files in order.
 */
export function withoutTwins<T extends Named>(
  files: readonly T[],
  hasMessages: (file: T) => boolean,
): { readonly kept: readonly T[]; readonly losers: readonly T[] } {
  const kept: T[] = []
  const losers: T[] = []
  for (const file of files) {
    const twin = kept.at(-1)
    if (twin?.baseOffset !== file.baseOffset) {
      kept.push(file)
      continue
    }
    const loser = hasMessages(file) || !hasMessages(twin) ? twin : file
    if (loser === twin) kept.splice(-1, 1, file)
    losers.push(loser)
  }
  return { kept, losers }
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)
