/** What SQLite gets before a journal file is recycled: what only the file knows beside its messages. */
import type { Hole } from './core/holes.ts'
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
 * Before any file is prepared anew, at open as well: what it alone tells beside its messages.
 *
 * @throws EDGE_IO, EDGE_DISK_FULL.
 */
export function keepOffsetsToldBy(store: HintStore, partitions: readonly LogPartition[]): void {
  keepOwed(store, partitions)
  keepJumps(store, partitions)
}

/** Damage in the file, or that it is empty and should not be, may be all that tells which offsets are not to be given again. */
function keepOwed(store: HintStore, partitions: readonly LogPartition[]): void {
  const owed = new Map<number, bigint>()
  for (const { key, watermark } of partitions) {
    const { owedOffset } = watermark
    if (owedOffset !== undefined) owed.set(key, owedOffset)
  }
  const kept = store.owedOffsets()
  const isKept = kept.size === owed.size && [...owed].every(([key, offset]) => kept.get(key) === offset)
  if (!isKept) store.keepOwedOffsets(owed)
}

/** In a segment nothing tells offsets that were left out from messages, before it is read. Those dropped since stay noted. */
function keepJumps(store: HintStore, partitions: readonly LogPartition[]): void {
  const jumps = new Map<number, readonly Hole[]>()
  for (const { key, holesFound } of partitions) {
    const list = holesFound.list.filter(({ reason }) => reason === 'jump')
    if (list.length > 0) jumps.set(key, list)
  }
  const kept = store.jumps()
  const isKept = (key: number, hole: Hole): boolean =>
    kept.get(key)?.some(({ from, end }) => end === hole.end && from <= hole.from) === true
  if ([...jumps].some(([key, list]) => !list.every((hole) => isKept(key, hole)))) store.keepJumps(jumps)
}
