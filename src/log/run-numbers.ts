/**
 * Numbers of the runs that write segments: they stand in the names of files. Where a file may stay, or come back, whose name
 * would end a segment at a later start, runs go on behind a gap and in other files: so it is told from what was packed since.
 */
import type { EdgeError } from '../errors.ts'
import { folderOf, refugeFolder } from './io/refuge.ts'
import { RUN_GAP } from './io/segment-order.ts'
import type { LogPartition } from './partition.ts'

export class RunNumbers {
  #last: number

  constructor(highest: number) {
    this.#last = highest
  }

  next(): number {
    return ++this.#last
  }

  /**
   * At open, where files stay that the journal holds as well, or folders could not be listed.
   *
   * @param unlisted folders, and why.
   * @param ordinal of this open, above that of every one before: also above runs that nobody can look for.
   */
  overtake(
    partitions: Iterable<LogPartition>,
    stuckPaths: readonly string[],
    unlisted: ReadonlyMap<string, EdgeError>,
    ordinal: number,
  ): void {
    if (stuckPaths.length === 0 && unlisted.size === 0) return
    this.#last = RUN_GAP + Math.max(this.#last, ordinal * RUN_GAP)
    const folders = new Set([...stuckPaths.map(folderOf), ...unlisted.keys()])
    for (const partition of partitions) {
      const { spec, key } = partition
      const refusal = unlisted.get(spec.directory)
      // For a refuge that may be as bad as it no partition's own folder is left.
      if (refusal !== undefined) giveUp(partition, refusal)
      else if (folders.has(spec.directory) || folders.has(refugeFolder(key))) closeLast(partition)
    }
  }

  /** Names in the partition's folder cannot be made or taken for good: it is left as it is, until the next start. */
  giveUpFolder(partition: LogPartition, refusal: EdgeError): void {
    this.#last += RUN_GAP
    giveUp(partition, refusal)
  }
}

function giveUp(partition: LogPartition, refusal: EdgeError): void {
  partition.folderRefusal = refusal
  partition.leftovers.clear()
  closeLast(partition)
}

function closeLast({ segments }: LogPartition): void {
  const last = segments.at(-1)
  if (last !== undefined) last.isClosed = true
}
