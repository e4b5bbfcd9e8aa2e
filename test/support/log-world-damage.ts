/**
 * Bit rot for `log-world.ts`: one bit, or the page with the header, of a full journal file or of a synced segment, and which
 * offsets that may cost. One bit of a header costs nothing.
 */
import { createArea } from '../../src/log/core/byte-area.ts'
import { decodeGroupHeader, GROUP_ALIGNMENT, GROUP_HEADER_SIZE, PAGE_SIZE } from '../../src/log/core/journal-format.ts'
import { BLOCK_HEADER_SIZE, type IndexEntry, SEGMENT_HEADER_SIZE } from '../../src/log/core/segment-format.ts'
import type { LogEngine } from '../../src/log/engine.ts'
import type { JournalFile } from '../../src/log/io/journal-file.ts'
import type { Segment } from '../../src/log/io/segment.ts'
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
  /** Headers of which a bit was flipped already, by file and place. */
  readonly rottenHeaders: Set<string>
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
  const { random } = parts
  const place = segmentBlock(parts)
  if (place === undefined) return false
  const { segment, entries, number } = place
  const from = entries[number]?.position ?? 0
  const position = from + random.below((entries[number + 1]?.position ?? segment.sizeBytes) - from)
  if (position >= from + BLOCK_HEADER_SIZE || !isFirstOf(parts, segment.path, from)) markBlocks(parts, place, number)
  rotBit(parts, segment, position)
  return true
}

/** In the header of a synced segment or of one of its blocks: one bit, or the whole page. */
export function rotSegmentHeader(parts: DamageParts): boolean {
  const { random, disk } = parts
  const place = segmentBlock(parts)
  if (place === undefined) return false
  const { segment, entries, number } = place
  const isOfBlock = random.chance(0.3)
  const isPage = !isOfBlock && random.chance(0.5)
  const from = isOfBlock ? (entries[number]?.position ?? 0) : 0
  const isMended = !isPage && isFirstOf(parts, segment.path, from)
  if (!isMended && isOfBlock) markBlocks(parts, place, number)
  // Behind the first page there is a copy of the header, and a block of each that goes on there.
  if (!isMended && !isOfBlock) markBlocks(parts, place, ...firstPageOf(entries))
  if (!isPage) rotBit(parts, segment, from + random.below(isOfBlock ? BLOCK_HEADER_SIZE : SEGMENT_HEADER_SIZE))
  else {
    parts.note(`garbage in the first page of ${segment.path}`)
    parts.engine.segmentFiles.forget(segment.path)
    disk.garblePage(segment.path, 0)
  }
  return true
}

interface BlockPlace {
  readonly partition: LogPartition
  readonly segment: Segment
  readonly entries: readonly IndexEntry[]
  readonly number: number
}

/** A block of a segment that is synced. */
function segmentBlock({ random, disk, engine }: DamageParts): BlockPlace | undefined {
  const partitions = [...engine.partitions.values()].filter((each) => each.segments.length > 0)
  const partition = partitions[random.below(partitions.length)]
  const segment = partition?.segments[random.below(partition.segments.length)]
  if (partition === undefined || segment?.entries === undefined) return undefined
  if (disk.isFileDirty(segment.path) || engine.maintenance.isBusy) return undefined
  const { entries } = segment
  return entries.length === 0 ? undefined : { partition, segment, entries, number: random.below(entries.length) }
}

const firstPageOf = (entries: readonly IndexEntry[]): number[] =>
  [...entries.keys()].filter((number) => (entries[number]?.position ?? PAGE_SIZE) < PAGE_SIZE)

function markBlocks(parts: DamageParts, { partition, segment, entries }: BlockPlace, ...numbers: number[]): void {
  for (const number of numbers) {
    const base = entries[number]?.baseOffset ?? segment.endOffset
    markDamaged(parts, partition, base, (entries[number + 1]?.baseOffset ?? segment.endOffset) - base)
  }
}

/** Whether no bit of that header was flipped before: a second one is too much. */
function isFirstOf({ rottenHeaders }: DamageParts, path: string, position: number): boolean {
  const place = `${path} ${position}`
  const isFirst = !rottenHeaders.has(place)
  rottenHeaders.add(place)
  return isFirst
}

function rotBit({ note, engine, disk }: DamageParts, { path }: Segment, position: number): void {
  note(`rot ${path} at ${position}`)
  engine.segmentFiles.forget(path)
  disk.rot(path, position)
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
