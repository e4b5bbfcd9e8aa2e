/** What SQLite gets before a journal file is recycled, and at the end: what only the file knows beside its messages. */
import type { LogPartition } from './partition.ts'
import type { HintStore } from './ports.ts'
import type { Producers } from './producers.ts'

/** @throws EDGE_IO, EDGE_DISK_FULL when the producers' numbers could not be written: the file is kept. */
export function writeCheckpoint(producers: Producers, store: HintStore, packed: readonly LogPartition[]): void {
  producers.checkpoint()
  const hints = packed.map(
    ({ key, durableEnd, segmentEnd, messageCount }) =>
      [key, { nextOffset: durableEnd, segmentEnd, messageCount }] as const,
  )
  store.setHints(new Map(hints))
}
