/** What SQLite gets before a journal file is recycled: what only the file knows beside its messages. */
import type { LogPartition } from './partition.ts'
import type { HintStore } from './ports.ts'
import type { Producers } from './producers.ts'

export interface CheckpointParts {
  readonly producers: Producers
  readonly store: HintStore
}

/**
 * When a file was packed, and at the end.
 *
 * @throws EDGE_IO, EDGE_DISK_FULL when what must outlive the file could not be written: the file is kept.
 */
export function writeCheckpoint({ producers, store }: CheckpointParts, packed: readonly LogPartition[]): void {
  producers.checkpoint()
  const hints = packed.map(
    ({ key, durableEnd, segmentEnd, messageCount }) =>
      [key, { nextOffset: durableEnd, segmentEnd, messageCount }] as const,
  )
  store.setHints(new Map(hints))
}

/**
 * Before any file is prepared anew, at open as well: damage in it, or that it is empty and should not be, may be all that
 * tells which offsets are not to be given again.
 *
 * @throws EDGE_IO, EDGE_DISK_FULL.
 */
export function keepOwed(store: HintStore, partitions: Iterable<LogPartition>): void {
  const owed = new Map<number, bigint>()
  for (const { key, watermark } of partitions) {
    const { owedOffset } = watermark
    if (owedOffset !== undefined) owed.set(key, owedOffset)
  }
  const kept = store.owedOffsets()
  const isKept = kept.size === owed.size && [...owed].every(([key, offset]) => kept.get(key) === offset)
  if (!isKept) store.keepOwedOffsets(owed)
}
