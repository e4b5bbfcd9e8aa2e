/**
 * Bit rot for `log-world.ts`: one bit, or the page with the header, of a full journal file or of a synced segment, and which
 * offsets that may cost. One bit of a header costs nothing.
 */
import { createArea } from '../../src/log/core/byte-area.ts'
import {
  decodeGroupHeader,
  FIRST_GROUP_AT,
  GROUP_ALIGNMENT,
  GROUP_HEADER_SIZE,
  type GroupHeader,
  JOURNAL_HEADER_SIZE,
  PAGE_SIZE,
} from '../../src/log/core/journal-format.ts'
import { BLOCK_HEADER_SIZE, SEGMENT_HEADER_SIZE } from '../../src/log/core/segment-format.ts'
import type { IndexEntry } from '../../src/log/core/segment-index.ts'
import type { LogEngine } from '../../src/log/engine.ts'
import type { JournalFile } from '../../src/log/io/journal-file.ts'
import type { Segment } from '../../src/log/io/segment.ts'
import type { LogPartition } from '../../src/log/partition.ts'
import { batchesIn, type Known, type Placed } from './log-world-parts.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { SimDisk } from './sim-disk.ts'

/** A disk that wears out: bits and pages go bad, of headers most of all, and all calls succeed. */
export const WORN = { rotRate: 0.03, syncFailureRate: 0 } as const

export interface DamageParts {
  readonly random: SeededRandom
  readonly disk: SimDisk
  readonly engine: LogEngine
  readonly known: ReadonlyMap<number, Known>
  readonly note: (text: string) => void
  /** Headers of which a bit was flipped already, by file and place. */
  readonly rottenHeaders: Set<string>
  /** Told when something of the journal may be lost. */
  readonly producers: { isJournalDamaged: boolean }
}

/** One bit of the journal or of a segment. @returns whether it did. */
export const rot = (parts: DamageParts): boolean => (parts.random.chance(0.5) ? rotJournal(parts) : rotSegment(parts))

/** Flips a bit in a full journal file whose groups later, synced ones prove. @returns whether it did. */
function rotJournal(parts: DamageParts): boolean {
  const { random, engine } = parts
  const { files, journal } = engine
  const active = files.active
  const sealed = files.all.filter((file) => file.state === 'sealed' && !file.isHeld)
  const file = sealed[random.below(sealed.length)]
  // Without a synced group behind it, damage at the end cannot be told from a torn tail.
  if (file === undefined || active === undefined || !journal.isProvenBy(active)) return false
  const position = 4096 + random.below(Math.max(1, Math.min(file.position, file.size) - 4096))
  markJournal(parts, file, position)
  return rotBit(parts, `journal/${file.number}`, position)
}

/** What a bit at that place of a full journal file may cost. */
function markJournal(parts: DamageParts, file: JournalFile, position: number): void {
  const batches = batchesIn(parts.engine.partitions.values(), file.number)
  const group = groupAround(file, position)
  if (group !== undefined && position < group.position + GROUP_HEADER_SIZE) {
    if (isFirstOf(parts, `journal/${file.number} ${file.generation}`, group.position)) return
    parts.producers.isJournalDamaged = true
    // Its batches are found again by their session's salt, where another group of the session tells it; else they go with it.
    const lost = batches.filter(({ from }) => position < from && from < group.position + group.length)
    for (const { partition, baseOffset } of lost) markDamaged(parts, partition, baseOffset, 1n)
    return
  }
  parts.producers.isJournalDamaged = true
  const sealedGroup = file.groupAt(position)
  const isHit = ({ from, end }: Placed): boolean =>
    sealedGroup === undefined
      ? from <= position && position < end
      : // A sealed group is opened whole or not at all.
        sealedGroup.position <= from && from < sealedGroup.end
  for (const { partition, baseOffset } of batches.filter(isHit)) markDamaged(parts, partition, baseOffset, 1n)
}

/** In the header of any journal file, or of one of its groups: one bit, or the first or the last page of the file. */
function rotJournalHeader(parts: DamageParts): boolean {
  const { random, engine } = parts
  const { files, journal } = engine
  const file = files.all[random.below(files.all.length)]
  if (file === undefined || file.generation === 0) return false
  const path = `journal/${file.number}`
  const groups = [...groupsOf(file)]
  const group = groups[random.below(groups.length)]
  if (group !== undefined && random.chance(0.5)) {
    const isFull = file.state === 'sealed' && !file.isHeld && files.active !== undefined
    if (!isFull || !journal.isProvenBy(files.active)) return false
    const position = group.position + random.below(GROUP_HEADER_SIZE)
    markJournal(parts, file, position)
    return rotBit(parts, path, position)
  }
  // It stands there twice, and one of both is enough.
  if (parts.disk.isFileDirty(path) || engine.maintenance.isBusy) return false
  if (!isFirstOf(parts, `${path} ${file.generation}`, 0)) return false
  const page = random.chance(0.5) ? 0 : file.size / PAGE_SIZE - 1
  if (random.chance(0.5)) return garblePage(parts, path, page)
  return rotBit(parts, path, page * PAGE_SIZE + random.below(JOURNAL_HEADER_SIZE))
}

/** The same in a block of a synced segment. */
function rotSegment(parts: DamageParts): boolean {
  const { random } = parts
  const place = segmentBlock(parts)
  if (place === undefined) return false
  const { segment, entries, number } = place
  const from = entries[number]?.position ?? 0
  const position = from + random.below((entries[number + 1]?.position ?? segment.sizeBytes) - from)
  if (position >= from + BLOCK_HEADER_SIZE || !isFirstOf(parts, segment.path, from)) markBlocks(parts, place, number)
  return rotBit(parts, segment.path, position)
}

/** In the header of a synced segment or of one of its blocks: one bit, or the whole page. */
function rotSegmentHeader(parts: DamageParts): boolean {
  const { random } = parts
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
  if (isPage) return garblePage(parts, segment.path, 0)
  const size = isOfBlock ? BLOCK_HEADER_SIZE : SEGMENT_HEADER_SIZE
  return rotBit(parts, segment.path, from + random.below(size))
}

/** Of headers most of all. @returns whether it did. */
export function rotMore(parts: DamageParts): boolean {
  const kinds = [rotJournal, rotJournalHeader, rotSegmentHeader]
  const kind = kinds[parts.random.below(kinds.length)]
  return kind?.(parts) === true
}

/** The folder of a partition takes no files from now on, or takes them again. */
export function turnFolder({ random, disk: { refusing }, engine, note }: DamageParts): void {
  const partitions = [...engine.partitions.values()]
  const folder = partitions[random.below(partitions.length)]?.spec.directory
  if (folder === undefined) return
  const isTaken = refusing.delete(folder)
  if (!isTaken) refusing.add(folder)
  note(`${folder} ${isTaken ? 'takes files again' : 'takes no files'}`)
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
  if (partition === undefined || segment?.index === undefined) return undefined
  if (disk.isFileDirty(segment.path) || engine.maintenance.isBusy) return undefined
  const { index } = segment
  const entries = Array.from({ length: index.count }, (_, number) => index.entry(number)).filter(
    (each) => each !== undefined,
  )
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

function rotBit({ note, engine, disk }: DamageParts, path: string, position: number): true {
  note(`rot ${path} at ${position}`)
  engine.segmentFiles.forget(path)
  disk.rot(path, position)
  return true
}

function garblePage({ note, engine, disk }: DamageParts, path: string, page: number): true {
  note(`garbage in page ${page} of ${path}`)
  engine.segmentFiles.forget(path)
  disk.garblePage(path, page)
  return true
}

function* groupsOf(file: JournalFile): Generator<GroupHeader> {
  const area = createArea(GROUP_HEADER_SIZE)
  for (let at = FIRST_GROUP_AT; at < Math.min(file.position, file.size); at += GROUP_ALIGNMENT) {
    file.handle.read(area.bytes, at)
    const header = decodeGroupHeader(area, 0, file, at, file.size)
    if (header !== undefined) yield header
  }
}

const groupAround = (file: JournalFile, position: number): GroupHeader | undefined =>
  [...groupsOf(file)].find((group) => group.position <= position && position < group.position + group.length)

function markDamaged({ known }: DamageParts, partition: LogPartition, from: bigint, count: bigint): void {
  known.get(partition.key)?.damaged.push({ from, end: from + count })
}
