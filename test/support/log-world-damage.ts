/** Bit rot for `log-world.ts`: one bit of a full journal file or of a synced segment, and which offsets that may cost. */
import { createArea } from '../../src/log/core/byte-area.ts'
import { decodeGroupHeader, GROUP_ALIGNMENT, GROUP_HEADER_SIZE } from '../../src/log/core/journal-format.ts'
import type { LogEngine } from '../../src/log/engine.ts'
import type { JournalFile } from '../../src/log/io/journal-file.ts'
import type { LogPartition } from '../../src/log/partition.ts'
import { batchesIn, type Known } from './log-world-parts.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { SimDisk } from './sim-disk.ts'

export interface DamageParts {
  readonly random: SeededRandom
  readonly disk: SimDisk
  readonly engine: LogEngine
  readonly known: ReadonlyMap<number, Known>
  readonly note: (text: string) => void
}

/** Flips a bit in a full journal file whose groups later, synced ones prove. @returns whether it did. */
export function rotJournal(parts: DamageParts): boolean {
  const { random, disk, engine } = parts
  const { files, journal } = engine
  const active = files.active
  const sealed = files.all.filter((file) => file.state === 'sealed' && !file.isHeld)
  const file = sealed[random.below(sealed.length)]
  // Without a synced group behind it, damage at the end cannot be told from a torn tail.
  if (file === undefined || active === undefined || !journal.isProvenBy(active)) return false
  const position = 4096 + random.below(Math.max(1, Math.min(file.position, file.size) - 4096))
  const batches = batchesIn(engine.partitions.values(), file.number)
  const hit = batches.find(({ from, end }) => from <= position && position < end)
  const sealedGroup = file.groupAt(position)
  // A sealed group is opened whole or not at all.
  if (sealedGroup !== undefined) {
    const lost = batches.filter(({ from }) => sealedGroup.position <= from && from < sealedGroup.end)
    for (const { partition, baseOffset } of lost) markDamaged(parts, partition, baseOffset, 1n)
  } else if (hit !== undefined) markDamaged(parts, hit.partition, hit.baseOffset, 1n)
  // Between batches lies a group's header. Its batches are found again by their session's salt, where another group of
  // the session tells it; else they go with it.
  else {
    const end = groupEnd(file, position)
    const lost = batches.filter(({ from }) => position < from && from < end)
    for (const { partition, baseOffset } of lost) markDamaged(parts, partition, baseOffset, 1n)
  }
  parts.note(`rot journal/${file.number} at ${position}`)
  disk.rot(`journal/${file.number}`, position)
  return true
}

/** The same in a block of a synced segment. */
export function rotSegment(parts: DamageParts): boolean {
  const { random, disk, engine } = parts
  const partitions = [...engine.partitions.values()].filter((each) => each.segments.length > 0)
  const partition = partitions[random.below(partitions.length)]
  const segment = partition?.segments[random.below(partition.segments.length)]
  if (partition === undefined || segment === undefined || segment.entries === undefined) return false
  if (disk.isFileDirty(segment.path) || engine.maintenance.isBusy) return false
  const entry = segment.entries[random.below(segment.entries.length)]
  if (entry === undefined) return false
  const next = segment.entries[segment.entries.indexOf(entry) + 1]
  const end = next?.baseOffset ?? segment.endOffset
  const block = next?.position ?? segment.sizeBytes
  const position = entry.position + random.below(block - entry.position)
  markDamaged(parts, partition, entry.baseOffset, end - entry.baseOffset)
  parts.note(`rot ${segment.path} at ${position}, block at ${entry.position}`)
  engine.segmentFiles.forget(segment.path)
  disk.rot(segment.path, position)
  return true
}

/** Of the group whose header lies at `position`; that itself between groups. */
function groupEnd(file: JournalFile, position: number): number {
  const area = createArea(GROUP_HEADER_SIZE)
  const start = position - (position % GROUP_ALIGNMENT)
  file.handle.read(area.bytes, start)
  return start + (decodeGroupHeader(area, 0, file, start, file.size)?.length ?? 0)
}

function markDamaged({ known }: DamageParts, partition: LogPartition, from: bigint, count: bigint): void {
  known.get(partition.key)?.damaged.push({ from, end: from + count })
}
