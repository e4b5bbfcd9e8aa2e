/**
 * Which journal files are missing. Pure.
 *
 * A file that was deleted, or that a file system gave back empty, leaves nothing in the journal itself that tells of it: the
 * chain of groups just ends earlier, as after a torn write. So the generations of all files are noted outside (SQLite) each
 * time one is recycled, and compared at open. The note may be old: files are recycled oldest first, and one that was
 * recycled after the note has a generation above all that it names.
 */

export interface MissingFiles {
  /** Generations that should be there, the oldest first. */
  readonly generations: readonly number[]
  /** All that was noted and all that was found, for the message. */
  readonly noted: readonly number[]
  readonly found: readonly number[]
}

/**
 * @param noted generations by the last note; empty: there is none, and nothing is known to be missing.
 * @param found generations of the files whose header is intact.
 */
export function missingFiles(noted: readonly number[], found: readonly number[]): MissingFiles {
  const newestNoted = noted.reduce((highest, generation) => Math.max(highest, generation), 0)
  const recycledCount = found.filter((generation) => generation > newestNoted).length
  const gone = noted.filter((generation) => !found.includes(generation)).sort((a, b) => a - b)
  return { generations: gone.slice(recycledCount), noted, found: [...found].sort((a, b) => a - b) }
}
