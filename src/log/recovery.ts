/**
 * Puts the partitions back together at open: journal batches above each segment's end, holes where damage took something,
 * jumps where offsets may have been seen that are gone, and what must be written again before anything is shown.
 */

import type { EdgeError } from '../errors.ts'
import { GIB } from '../setting.ts'
import { AgainGroups } from './again-groups.ts'
import type { Durability, ProducerTag } from './api.ts'
import { numberOf } from './catalog/layout.ts'
import { BATCH_FLAG, BATCH_HEADER_SIZE, BATCH_KIND, decodeExternal, EXTERNAL_BODY_SIZE } from './core/batch-header.ts'
import type { Checksum } from './core/checksum.ts'
import { GROUP_FLAG, PAGE_SIZE } from './core/journal-format.ts'
import { earlier, later } from './core/offset.ts'
import type { BatchOwner } from './core/pending-batch.ts'
import { BLOCK_HEADER_SIZE, BLOCK_RAW_SIZE } from './core/segment-format.ts'
import { JUMP } from './core/watermark.ts'
import type { DirectoryEntry, FileSystem } from './io/file-system.ts'
import type { GroupBuilder } from './io/group-buffer.ts'
import { type DamageTally, type FoundBatch, type FoundJournal, visitBatches } from './io/journal-recovery.ts'
import { refugeFolder } from './io/refuge.ts'
import type { DamagedJournal } from './io/segment-extent.ts'
import { type RecoveredSegments, recoverSegments, type UnsoundHeader } from './io/segment-recovery.ts'
import type { StoreKeys } from './io/store-keys.ts'
import { type MissingJournal, missingOf, noteMissing } from './missing-journal.ts'
import type { LogPartition } from './partition.ts'
import type { HintStore, Jump } from './ports.ts'

/**
 * What may lie behind the end that is known of a partition of which a folder or the last file cannot be looked into, and of
 * which the journal has nothing any more. A hint says how far it was packed, unless a power cut took that.
 */
const LARGEST_SEGMENT = GIB

/** Rules left out by a test. */
export interface RecoveryRules {
  readonly isJumpSkipped?: boolean
  readonly isJumpShownUnsynced?: boolean
  readonly isCacheTrusted?: boolean
  readonly isJournalIgnored?: boolean
  readonly isWrittenAgainInParts?: boolean
}

export interface RecoveryOptions {
  readonly fileSystem: FileSystem
  readonly checksum: Checksum
  readonly journal: FoundJournal
  readonly keys: StoreKeys
  readonly partitions: ReadonlyMap<number, LogPartition>
  readonly hints: HintStore
  /** What lies in the refuge, as far as it can be listed. */
  readonly refuges: readonly DirectoryEntry[]
  /** Bytes of one file: what a missing one may have held. */
  readonly journalFileSize: number
  readonly isAllOnDisk: boolean
  /** A sync failed since the machine started: what can be read may be gone with the cache. */
  readonly isCacheDoubtful: boolean
  /** Number of this machine start, above that of every start which left something. */
  readonly bootNumber: (highestSegmentBoot: number) => number
  readonly rules: RecoveryRules
  /** The header of a segment that is looked into later is read from its copy, or has a flipped bit. */
  readonly unsound: (path: string, how: UnsoundHeader) => void
  /** A batch carries a producer's tag. @returns it. */
  readonly tagged: (batch: FoundBatch, isProven: boolean) => ProducerTag | undefined
  /** A batch of a partition that no descriptor names. @returns the partition it gets; undefined when it was deleted. */
  readonly lost: (key: number, durability: Durability) => LogPartition | undefined
  /** Who is to be told when a batch of no partition, a producer's sequence, is written again. */
  readonly sequenceOwner: (tag: ProducerTag | undefined) => BatchOwner
}

export interface Recovered {
  /**
   * The last group has no batches: the log was closed, or started after that, and nothing was written since. A start may lie
   * in the cache alone, with the clean stop before it on the disk.
   */
  readonly isMarkLast: boolean
  readonly boot: number
  readonly again: readonly GroupBuilder[]
  readonly highestRun: number
  readonly damage: DamageTally
  /** Bytes of the files that are there in which batches may have lain. */
  readonly unreadableBytes: number
  /** Bytes at the end of partitions' segments that cannot be read and that the journal does not hold. */
  readonly lostEnds: ReadonlyMap<LogPartition, number>
  /** Partitions of which the disk does not give a folder or a file, which stays where it is. */
  readonly refused: ReadonlyMap<LogPartition, readonly EdgeError[]>
  /** Folders of partitions that could not be listed, and why. */
  readonly unlisted: ReadonlyMap<string, EdgeError>
  readonly missing: MissingJournal
  /** Batches of keys that were deleted. */
  readonly unknownKeys: ReadonlyMap<number, number>
  readonly damagedPaths: readonly string[]
  readonly repeatedPaths: readonly string[]
  /** Files of large batches that no journal batch names. */
  readonly orphanPaths: readonly string[]
  readonly emptyPaths: readonly string[]
  /** Folders of partitions that were deleted. */
  readonly strayRefuges: readonly string[]
  /** Of partitions whose segments may hold what only the cache has, and the journal not any more. */
  readonly unsyncedPaths: readonly string[]
  /** Segments whose header was read from its copy, or has a flipped bit. */
  readonly unsoundPaths: Readonly<Record<UnsoundHeader, ReadonlySet<string>>>
}

/** What the journal holds of one partition, gathered batch by batch. */
class Found {
  first: bigint | undefined
  firstHasGap = false
  end = 0n
  lastBoot = 0
  lastSequence = 0
  lastTimeUs = 0n
  /** End of the last batch that is known to be synced. */
  provenEnd: bigint | undefined
  provenBoot: number | undefined
  /** First batch that must be written again, and the start that gave its offset. */
  unproven: { base: bigint; boot: number } | undefined
  /** The first of those that stands behind a jump. */
  unprovenJump: bigint | undefined
  /** A batch whose header could be read and whose body could not: its offsets are gone for good. */
  damagedEnd = 0n
  /** Run numbers of files that large batches refer to. */
  readonly externalRuns = new Map<bigint, number>()
  readonly holes: { from: bigint; end: bigint; reason: 'damage' | 'jump' }[] = []
}

export function recoverPartitions(options: RecoveryOptions): Recovered {
  const found = new Map<number, Found>()
  const unknownKeys = new Map<number, number>()
  const again = new AgainGroups(options.rules.isWrittenAgainInParts === true)
  const damage = visitBatches(options.journal, options.checksum, (batch) => {
    const { header } = batch
    const isProven = batch.isProven || options.isAllOnDisk || options.rules.isCacheTrusted === true
    // Also of partitions that are gone: what is disposed of stays so. A damaged body tells nothing.
    const isTagged = (header.flags & BATCH_FLAG.hasTag) !== 0 && !batch.isDamaged
    const tag = isTagged ? options.tagged(batch, isProven) : undefined
    if (header.kind === BATCH_KIND.sequence) {
      if (!isProven) again.add(batch, options.sequenceOwner(tag))
      return
    }
    const durability = (header.flags & BATCH_FLAG.isBuffered) !== 0 ? 'buffered' : 'durable'
    const partition = options.partitions.get(header.key) ?? options.lost(header.key, durability)
    if (partition === undefined) {
      unknownKeys.set(header.key, (unknownKeys.get(header.key) ?? 0) + 1)
      return
    }
    const state = found.get(header.key) ?? new Found()
    found.set(header.key, state)
    if (batch.isDamaged) noteDamaged(state, batch)
    else if (take(partition, state, batch, isProven) && !isProven) {
      again.add(batch, partition)
      partition.noteTag(header.baseOffset, tag)
    }
  })
  const strayRefuges = knowRefuges(options)
  const unreadableBytes = damage.lostBytes
  const missing = missingOf(options.journal, options.hints.journalFiles())
  noteMissing(damage, missing, options.journalFileSize)
  const segmentsOf = new Map<LogPartition, RecoveredSegments>()
  const unsoundPaths = { copied: new Set<string>(), mended: new Set<string>() }
  const isDamaged = damage.lostBytes > 0 || damage.damagedBatches > 0
  for (const partition of options.partitions.values()) {
    const state = found.get(partition.key)
    const segments = recoverSegments({
      fileSystem: options.fileSystem,
      directories: [partition.spec.directory, refugeFolder(partition.key)],
      key: partition.key,
      keys: options.keys,
      checksum: options.checksum,
      journalFirst: state?.first,
      damagedJournal:
        state !== undefined && isDamaged && !options.isCacheDoubtful
          ? damagedJournal(partition, state, damage)
          : undefined,
      externalRuns: new Set(state?.externalRuns.values()),
      unsound: (path, how) => unsoundPaths[how].add(path),
      unsoundLater: options.unsound,
      isJournalIgnored: options.rules.isJournalIgnored === true,
    })
    segmentsOf.set(partition, segments)
  }
  const all = [...segmentsOf.values()]
  const highestSegmentBoot = all.reduce((most, { segments }) => Math.max(most, segments.at(-1)?.lastBoot ?? 0), 0)
  const boot = options.bootNumber(highestSegmentBoot)
  const isClean = isCleanStop(options.journal)
  const owed = options.hints.owedOffsets()
  const kept = options.hints.jumps()
  for (const [partition, segments] of segmentsOf) {
    const state = found.get(partition.key) ?? new Found()
    const owedOffset = owed.get(partition.key) ?? 0n
    const jumps = kept.get(partition.key) ?? []
    recoverPartition(options, { partition, state, segments, damage, isClean, boot, owedOffset, jumps })
  }
  return {
    isMarkLast: options.journal.scan.chain.at(-1)?.header.batchCount === 0,
    boot,
    again: again.groups(),
    highestRun: all.reduce((most, { highestRun }) => Math.max(most, highestRun), 0),
    damage,
    unreadableBytes,
    lostEnds: lostEndsOf(segmentsOf),
    refused: new Map([...segmentsOf].map(([partition, { refused }]) => [partition, refused])),
    unlisted: new Map(all.flatMap((each) => [...each.unlisted])),
    missing,
    unknownKeys,
    damagedPaths: all.flatMap((each) => each.damagedPaths),
    repeatedPaths: all.flatMap((each) => each.repeatedPaths),
    orphanPaths: all.flatMap((each) => each.orphanPaths),
    emptyPaths: all.flatMap((each) => each.emptyPaths),
    strayRefuges,
    unsoundPaths,
    unsyncedPaths: isDamaged && !options.isAllOnDisk ? [...segmentsOf.keys()].flatMap(unsyncedOf(options.hints)) : [],
  }
}

/** Names there may be no more durable than in other folders. @returns those of partitions that were deleted. */
function knowRefuges({ refuges, partitions, lost }: RecoveryOptions): string[] {
  const strays: string[] = []
  for (const { name } of refuges) {
    const key = numberOf(name)
    if (key === null) continue
    const partition = partitions.get(key) ?? lost(key, 'durable')
    if (partition === undefined) strays.push(refugeFolder(key))
    else partition.areRefugeNamesDirty = true
  }
  return strays
}

/** Segments that go on above what was packed when the last journal file was recycled. */
const unsyncedOf =
  (hints: HintStore) =>
  ({ key, segments }: LogPartition): readonly string[] =>
    segments.filter(({ endOffset }) => endOffset > (hints.hint(key)?.segmentEnd ?? 0n)).map(({ path }) => path)

function lostEndsOf(segmentsOf: ReadonlyMap<LogPartition, RecoveredSegments>): Map<LogPartition, number> {
  const sizes = [...segmentsOf].map(([partition, { lostEndSize }]) => [partition, lostEndSize] as const)
  return new Map(sizes.filter(([, size]) => size > 0))
}

/** What is not proven is written again, and so counts from the journal. */
function damagedJournal({ index }: LogPartition, state: Found, damage: DamageTally): DamagedJournal {
  const isEndLost = state.lastSequence < damage.lastSequence || state.damagedEnd > state.end
  const lastHole = state.holes.findLast(({ reason }) => reason === 'damage')
  const repaired = isEndLost ? undefined : (lastHole?.end ?? state.first)
  const unproven = state.unproven?.base
  return {
    wholeFrom: repaired === undefined || unproven === undefined ? (repaired ?? unproven) : earlier(repaired, unproven),
    holds: (from, end) => {
      const entry = index.find(end - 1n)
      return entry >= 0 && index.baseOffset(entry) >= from
    },
  }
}

/** @returns whether the batch goes on from what was there; else it was written twice. */
function take(partition: LogPartition, state: Found, batch: FoundBatch, isProven: boolean): boolean {
  const { header } = batch
  const end = header.baseOffset + BigInt(header.count)
  const hasGap = (header.flags & BATCH_FLAG.hasGapBefore) !== 0
  if (state.first === undefined) {
    state.first = header.baseOffset
    state.firstHasGap = hasGap
  } else {
    if (header.baseOffset < state.end) return false
    if (header.baseOffset > state.end) {
      state.holes.push({ from: state.end, end: header.baseOffset, reason: hasGap ? 'jump' : 'damage' })
    }
  }
  if (header.kind === BATCH_KIND.external) state.externalRuns.set(header.baseOffset, runOf(batch))
  partition.index.push(header.baseOffset, batch.fileNumber, batch.position, batch.size)
  state.end = end
  state.lastBoot = batch.boot
  state.lastSequence = batch.sequence
  state.lastTimeUs = header.appendTimeUs
  if (isProven) {
    state.provenEnd = end
    state.provenBoot = batch.boot
  } else {
    state.unproven ??= { base: header.baseOffset, boot: batch.boot }
    if (hasGap) state.unprovenJump ??= header.baseOffset
  }
  return true
}

/** Behind the tag, if there is one. */
function runOf({ header, area, position }: FoundBatch): number {
  return decodeExternal(area, position + BATCH_HEADER_SIZE + header.bodySize - EXTERNAL_BODY_SIZE).runNumber
}

function noteDamaged(state: Found, { header }: FoundBatch): void {
  const end = header.baseOffset + BigInt(header.count)
  if (end > state.damagedEnd) state.damagedEnd = end
}

interface PartitionParts {
  readonly partition: LogPartition
  readonly state: Found
  readonly segments: RecoveredSegments
  readonly damage: DamageTally
  readonly isClean: boolean
  readonly boot: number
  /** What was noted before the file that tells of it was recycled. */
  readonly owedOffset: bigint
  readonly jumps: readonly Jump[]
}

function recoverPartition(options: RecoveryOptions, parts: PartitionParts): void {
  const { partition, state, segments } = parts
  const last = segments.segments.at(-1)
  // Damage took the journal's first batches, and the block that holds them goes on beyond: it may not be synced, so the
  // journal counts for what it still has, and the block only serves what nothing else does.
  if (
    last !== undefined &&
    segments.journalFrom !== undefined &&
    segments.journalFrom < last.endOffset &&
    !options.rules.isJournalIgnored
  ) {
    last.endOffset = segments.journalFrom
    last.isClosed = true
  }
  const floor = partition.spec.floorOffset
  const segmentEnd = later(last?.endOffset ?? floor, floor)
  partition.segments = [...segments.segments]
  partition.segmentEnd = segmentEnd
  let repeated = 0
  while (repeated < partition.index.count && partition.index.baseOffset(repeated) < segmentEnd) repeated++
  partition.index.dropFirst(repeated)
  const end = later(segmentEnd, state.end)
  partition.recovered(end)
  partition.logStartOffset = logStart(partition, floor, end)
  partition.lastAppendUs = later(state.lastTimeUs, last?.lastAppendUs ?? 0n)
  for (const [baseOffset, runNumber] of state.externalRuns) {
    const segment = segments.externals.find((each) => each.runNumber === runNumber)
    if (segment !== undefined && baseOffset >= segmentEnd) partition.addExternal(baseOffset, segment)
  }
  noteHoles(parts, segmentEnd)
  noteKeptJumps(parts)
  lowerToProven(options, parts, segmentEnd)
  // Also a batch that was purged tells at which start offsets were given last.
  jump(options, parts, { end, boot: Math.max(state.lastBoot, last?.lastBoot ?? 0) })
  // What was found but not proven may have been seen; while a duty is open it is not shown again before it is synced.
  if (partition.watermark.isOwing) partition.watermark.visibleEnd = partition.watermark.durableEnd
}

/** First offset still there; the end when nothing is. */
function logStart(partition: LogPartition, floor: bigint, end: bigint): bigint {
  const first = partition.segments[0]?.baseOffset ?? (partition.index.count > 0 ? partition.index.baseOffset(0) : end)
  return later(first, floor)
}

function noteHoles({ partition, state, segments }: PartitionParts, segmentEnd: bigint): void {
  const [refusal] = segments.refused
  const first = partition.index.count > 0 ? partition.index.baseOffset(0) : segmentEnd
  // Also when nothing older is left: what retention and purges took lies below the floor.
  if (first > segmentEnd) {
    const isFirstOfAll = state.first === first
    const isJump = isFirstOfAll
      ? state.firstHasGap
      : state.holes.some(({ end, reason }) => end === first && reason === 'jump')
    if (isJump) partition.holesFound.add({ from: segmentEnd, end: first, reason: 'jump' })
    else partition.damaged(segmentEnd, first, refusal ?? 'batches between segments and journal are missing')
  }
  for (const hole of state.holes) {
    if (hole.end <= segmentEnd) continue
    if (hole.reason === 'jump') partition.holesFound.add(hole)
    else partition.damaged(later(hole.from, segmentEnd), hole.end, 'batches in the journal are missing or damaged')
  }
}

/** The files that told of them were recycled. What lies behind one may be gone, or all before it. */
function noteKeptJumps({ partition, jumps }: PartitionParts): void {
  const { holesFound, logStartOffset, watermark } = partition
  const stillThere = jumps.filter(({ end }) => logStartOffset < end && end <= watermark.writtenEnd)
  for (const jump of stillThere) holesFound.add({ ...jump, reason: 'jump' })
}

/**
 * What no group proves is shown only after it has been written again and synced. Of a buffered partition it was seen
 * already, unless it stands behind a jump of this start: then it had not been shown before a sync that nothing proves.
 */
function lowerToProven(options: RecoveryOptions, { partition, state, boot }: PartitionParts, segmentEnd: bigint): void {
  const { unproven } = state
  const { watermark } = partition
  if (unproven === undefined || state.end <= segmentEnd) return
  watermark.durableEnd = later(state.provenEnd ?? segmentEnd, segmentEnd)
  watermark.visibleEnd = watermark.isBuffered ? watermark.writtenEnd : watermark.durableEnd
  if (!watermark.isBuffered || unproven.boot !== boot || options.rules.isJumpShownUnsynced) return
  // Within one start as well: on a full disk, or behind damage.
  const owedFrom = state.provenBoot === boot ? state.unprovenJump : unproven.base
  if (owedFrom !== undefined) watermark.oweFrom(later(owedFrom, segmentEnd))
}

/** Goes on above every offset that may have been seen and is not there any more. */
function jump(options: RecoveryOptions, parts: PartitionParts, last: { end: bigint; boot: number }): void {
  const { partition, state, segments, damage, isClean, boot, owedOffset } = parts
  const { watermark } = partition
  const isBehindDamage = state.lastSequence < damage.lastSequence
  const lostInJournal = offsetsIn(isBehindDamage ? damage.lostBytes : 0, PAGE_SIZE)
  const lostEndSize = segments.lostEndSize + (segments.isEndUnknown ? LARGEST_SEGMENT : 0)
  const lost = lostInJournal + offsetsIn(lostEndSize, BLOCK_HEADER_SIZE)
  const mayBeLost = watermark.isBuffered && !isClean && last.boot !== boot && !options.rules.isJumpSkipped
  const hinted = options.hints.hint(partition.key)?.nextOffset ?? 0n
  // Only what was synced is ever hinted at: the file that held it is lost as a whole, and nothing else tells of it.
  if (hinted > later(last.end, state.damagedEnd))
    partition.damaged(last.end, hinted, segments.refused[0] ?? 'what the journal held is missing')
  // What was seen without a sync follows what was synced, also where that is missing now.
  const known = later(later(last.end, hinted), state.damagedEnd)
  // What an earlier open went on above counts as it is: added to, it would climb with every start.
  const next = later(mayBeLost || lost > 0n ? known + JUMP + lost : known, owedOffset)
  if (next === last.end) return
  if (options.rules.isJumpShownUnsynced) watermark.nextOffset = next
  else watermark.jumpTo(next)
}

/**
 * Offsets that unreadable bytes may account for: two bytes a record, 64 KiB of them in a compressed block of nearly nothing,
 * and a jump before each start of a session, or each block.
 *
 * @param leastSize bytes that a jump takes at least.
 */
function offsetsIn(sizeBytes: number, leastSize: number): bigint {
  const parts = BigInt(Math.ceil(sizeBytes / leastSize))
  return parts * (JUMP + BigInt(BLOCK_RAW_SIZE / 2)) + BigInt(Math.ceil(sizeBytes / 2))
}

function isCleanStop({ scan }: FoundJournal): boolean {
  const last = scan.chain.at(-1)
  return last !== undefined && (last.header.flags & GROUP_FLAG.isCleanStop) !== 0
}
