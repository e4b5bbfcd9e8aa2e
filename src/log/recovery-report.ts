/** What is done and told after recovery: files that are of no use any more, batches that belong to nobody. */
import { formatBytes } from '../byte-text.ts'
import type { EngineOptions } from './engine-options.ts'
import { type FileSystem, isDone, listGiven } from './io/file-system.ts'
import { journalPath } from './io/journal-file.ts'
import type { FoundJournal, UnopenedGroup } from './io/journal-recovery.ts'
import { emptyFile } from './io/refuge.ts'
import type { UnsoundHeader } from './io/segment-recovery.ts'
import type { MissingJournal } from './missing-journal.ts'
import type { LogPartition } from './partition.ts'
import { partitionText, topicText } from './place-text.ts'
import type { ReportFinding } from './ports.ts'
import type { Recovered } from './recovery.ts'

export interface Leftovers {
  /** Files that nothing can be made of, to be set aside. */
  readonly damagedPaths: readonly string[]
  /** Files that were emptied instead of removed: synced they are as good as gone. */
  readonly emptiedPaths: readonly string[]
  /** Files that stay, and do no harm. */
  readonly keptPaths: readonly string[]
  /** Files that the journal holds as well and that stay as they are: what is packed now must overtake them. */
  readonly stuckPaths: readonly string[]
}

/** Removes what the journal holds as well, and what nothing refers to. */
export function clearLeftovers(fileSystem: FileSystem, recovered: Recovered): Leftovers {
  const { damage, orphanPaths, emptyPaths, repeatedPaths, damagedPaths, strayRefuges } = recovered
  const emptiedPaths: string[] = []
  const stuckPaths: string[] = []
  for (const path of repeatedPaths) {
    if (isDone(() => fileSystem.unlink(path))) continue
    if (isDone(() => emptyFile(fileSystem, path))) emptiedPaths.push(path)
    else stuckPaths.push(path)
  }
  // Who emptied one may have died before it was synced.
  emptiedPaths.push(...emptyPaths.filter((path) => !isDone(() => fileSystem.unlink(path))))
  // Where nothing is damaged, a large batch without a reference was never acked.
  const isSound = damage.lostBytes === 0 && damage.damagedBatches === 0
  const strays = strayRefuges.flatMap((folder) =>
    (listGiven(fileSystem, folder) ?? []).map(({ name }) => `${folder}/${name}`),
  )
  const useless = [...(isSound ? orphanPaths : []), ...strays]
  const keptPaths = useless.filter((path) => !isDone(() => fileSystem.unlink(path)))
  for (const folder of strayRefuges) isDone(() => fileSystem.removeDirectory(folder))
  const setAside = isSound ? damagedPaths : [...orphanPaths, ...damagedPaths]
  return { damagedPaths: setAside, emptiedPaths, keptPaths, stuckPaths }
}

/** What is of no use and stays takes its place on the disk, and nothing else. */
export function reportKept(paths: readonly string[], report: ReportFinding): void {
  const [path, ...others] = paths
  if (path === undefined) return
  const text = `${path}${others.length === 0 ? '' : `, and ${others.length} more files,`} could not be removed, the next start does it`
  report({ event: 'log.trash.stuck', level: 'warn', text, fields: { path, file_count: paths.length } })
}

/**
 * Groups whose checksum fits and which their key does not open: nothing that a crash leaves. They are kept aside, since
 * their file is recycled in time, and whoever has the right key may still read them.
 */
export function reportUnopened(
  unopened: readonly UnopenedGroup[],
  report: ReportFinding,
  setAside: ((origin: string, bytesView: Uint8Array) => void) | undefined,
): void {
  for (const { file, position, length, reason } of unopened) {
    const path = journalPath(file.number)
    report({
      event: 'log.decrypt.failed',
      level: 'error',
      text: `the group at ${position} of ${path} is as it was written and cannot be opened: ${reason}`,
      fields: { path, position, size_bytes: length, error_code: 'EDGE_DECRYPT_FAILED' },
    })
    const isKept = isDone(() => {
      const bytes = new Uint8Array(length)
      file.handle.read(bytes, position)
      setAside?.(path, bytes)
    })
    if (isKept) continue
    const text = `the group at ${position} of ${path} could not be copied into the quarantine: it goes when its file is recycled`
    report({ event: 'log.file.unreadable', level: 'error', text, fields: { path, position } })
  }
}

/** Batches at the end of their partition, and those of partitions unknown, leave no hole that would tell of them. */
export function reportUnreadable({ damage, unreadableBytes }: Recovered, report: ReportFinding): void {
  const { damagedBatches } = damage
  if (unreadableBytes === 0 && damagedBatches === 0) return
  const batches = damagedBatches === 1 ? '1 batch is' : `${damagedBatches} batches are`
  const text = `${batches} damaged, ${formatBytes(unreadableBytes)} that may have held more cannot be read: ${CONSEQUENCE}`
  report({
    event: 'log.journal.damaged',
    level: 'error',
    text: `journal: ${text}`,
    fields: { batch_count: damagedBatches, size_bytes: unreadableBytes, error_code: 'EDGE_BATCH_CORRUPT' },
  })
}

/** The same of segments. */
export function reportLostEnds(
  { lostEnds }: Recovered,
  { report, descriptors }: Pick<EngineOptions, 'report' | 'descriptors'>,
): void {
  for (const [partition, size] of lostEnds) {
    const { streamId, topicId, partitionId } = partition
    const place = partitionText(descriptors, partition)
    report({
      event: 'log.segment.damaged',
      level: 'error',
      text: `${formatBytes(size)} at the end of ${place} cannot be read: messages there are lost; new ones get offsets above theirs`,
      fields: {
        stream_id: streamId,
        topic_id: topicId,
        partition_id: partitionId,
        size_bytes: size,
        error_code: 'EDGE_BATCH_CORRUPT',
      },
    })
  }
}

/** What the disk does not give stays where it is: nobody knows whether it is lost. */
export function reportRefused(
  { refused }: Recovered,
  { report, descriptors }: Pick<EngineOptions, 'report' | 'descriptors'>,
): void {
  for (const [partition, errors] of refused) {
    const [first] = errors
    if (first === undefined) continue
    const { streamId, topicId, partitionId } = partition
    report({
      event: 'log.folder.unreadable',
      level: 'error',
      text: `stored messages of ${partitionText(descriptors, partition)} cannot be read: ${first.message}; they stay where they are for a start that can, new ones get offsets above theirs`,
      fields: { stream_id: streamId, topic_id: topicId, partition_id: partitionId, error_code: first.code },
    })
  }
}

/** All blocks go by them, so there is a copy behind the first page. */
export function reportHeaders(
  { unsoundPaths: { copied, mended } }: Recovered,
  { copiedNames, mendedNames }: FoundJournal,
  report: ReportFinding,
): void {
  const event = 'log.header.unreadable'
  for (const name of copiedNames) {
    const path = `journal/${name}`
    report({ event, level: 'warn', text: `${path} ${JOURNAL_HEADER_COPIED}`, fields: { path } })
  }
  for (const path of copied) reportCopied(path, report)
  const [path, ...others] = [...mendedNames.map((name) => `journal/${name}`), ...mended]
  if (path === undefined) return
  // One line for all: nothing is lost, and it comes again with each start until retention has taken them.
  const text = `${path}${others.length === 0 ? '' : `, and ${others.length} more files,`} ${HEADER_MENDED}`
  report({ event: 'log.header.mended', level: 'warn', text, fields: { path, file_count: 1 + others.length } })
}

/** Of a segment that the start did not look into. */
export function reportLateHeader(path: string, how: UnsoundHeader, report: ReportFinding): void {
  if (how === 'copied') reportCopied(path, report)
  else {
    const text = `${path} ${HEADER_MENDED}`
    const event = 'log.header.mended'
    // One line for all that are met, as at the start.
    report({ event, series: event, level: 'warn', text, fields: { path, file_count: 1 } })
  }
}

function reportCopied(path: string, report: ReportFinding): void {
  const fields = { path, error_code: 'EDGE_BATCH_CORRUPT' }
  report({ event: 'log.header.unreadable', level: 'error', text: `${path} ${SEGMENT_HEADER_COPIED}`, fields })
}

/** Nothing else tells of them: who reads goes on above all offsets that they may have given. */
export function reportMissingFiles({ missing }: Recovered, report: ReportFinding): void {
  for (const { level, path, text } of describeMissing(missing)) {
    report({ event: 'log.journal.file_missing', level, text: `${path} ${text}`, fields: { path } })
  }
}

export interface MissingFinding {
  readonly level: 'error' | 'warn'
  /** In the data folder. */
  readonly path: string
  /** Goes on from the path. */
  readonly text: string
}

const HEADER_COPIED = 'begins with something else than its header, which is read from its copy'
/** They go on from the path. */
export const HEADER_MENDED = 'has a flipped bit in a header, which is put right at each read: nothing is lost'
export const SEGMENT_HEADER_COPIED = `${HEADER_COPIED}: messages in blocks that begin in its first 4 KiB are lost`
export const JOURNAL_HEADER_COPIED = `${HEADER_COPIED}: nothing of it is lost, and the file is made anew in its turn`

const CONSEQUENCE = 'messages acknowledged since the last repack may be lost; new ones get offsets above theirs'

export function describeMissing(missing: MissingJournal): MissingFinding[] {
  const { generations, noted, found, garbledNames, cutShort } = missing
  const findings = cutShort.map(({ name, expectedSize, foundSize }): MissingFinding => {
    const path = `journal/${name}`
    const text = `is cut short, ${formatBytes(expectedSize - foundSize)} of ${formatBytes(expectedSize)} are missing: ${CONSEQUENCE}`
    return { level: 'error', path, text }
  })
  if (generations.length === 0) return findings
  const expected = `generations ${noted.join(', ')} were noted, ${found.join(', ') || 'none'} found`
  const isPerhapsRecycled = generations.length <= garbledNames.length
  const what = isPerhapsRecycled
    ? `has no readable header (${expected}): unless a power cut came while it was recycled`
    : `lacks the files of generations ${generations.join(', ')}, deleted or overwritten (${expected})`
  const path = isPerhapsRecycled ? `journal/${garbledNames.join(', journal/')}` : 'journal'
  return [...findings, { level: isPerhapsRecycled ? 'warn' : 'error', path, text: `${what}: ${CONSEQUENCE}` }]
}

export function reportUnknownKeys({ unknownKeys }: Recovered, report: ReportFinding): void {
  if (unknownKeys.size === 0) return
  // One line for all: topics that come and go leave some at every kill.
  const batchCount = [...unknownKeys.values()].reduce((sum, count) => sum + count, 0)
  report({
    event: 'log.recovery.deleted_batches',
    level: 'warn',
    text: `${batchCount} journal batches of ${unknownKeys.size} deleted partitions were dropped`,
    fields: { batch_count: batchCount, partition_count: unknownKeys.size },
  })
}

export function reportAdopted(
  { key, streamId, topicId }: LogPartition,
  { report, descriptors }: Pick<EngineOptions, 'report' | 'descriptors'>,
): void {
  const place = topicText(descriptors, { streamId, id: topicId })
  report({
    event: 'log.recovery.unknown_key',
    level: 'error',
    text: `there are messages of partition key ${key}, which no descriptor names: they are kept in ${place}`,
    fields: { partition_key: key, stream_id: streamId, topic_id: topicId },
  })
}
