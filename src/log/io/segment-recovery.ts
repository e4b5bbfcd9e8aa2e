/**
 * The segments of one partition at open: which files count, and where the last one ends.
 *
 * - Files are freed oldest first, so the journal holds everything from its first offset on: whatever segments hold from
 *   there may be unsynced, stale or torn. It is cut off and packed again, except where damage took it from the journal.
 * - A segment ends where the next one's *name* begins, whatever lies behind: a truncation after a failed sync may come back.
 * - Only the last file is opened. Its end is found from behind, since headers name their own place and size. What the headers
 *   of the others say is read with their first block: there may be as many as the disk holds.
 */
import { EdgeError } from '../../errors.ts'
import { alignUp } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import {
  BLOCK_ALIGNMENT,
  BLOCK_HEADER_SIZE,
  BLOCK_RAW_SIZE,
  type BlockHeader,
  decodeBlockHeader,
  formatSegmentName,
  parseSegmentName,
  SEGMENT_HEADER_SIZE,
  type SegmentName,
} from '../core/segment-format.ts'
import { type DirectoryEntry, type FileSystem, isRefused, type LogFile, openToRead } from './file-system.ts'
import { readGivenArea } from './given-pages.ts'
import { type ReadHeading, Segment } from './segment.ts'
import { type DamagedJournal, type FoundBlocks, intactEnd } from './segment-extent.ts'
import { type NamedSegment, type ReadSegmentHeader, readSegmentHeader } from './segment-header.ts'
import { inOrder, overtaken, STRANGE_RUN, withoutTwins } from './segment-order.ts'
import { blocksOf, endOfBlock, isClockTrusted, lastPosition, readBlockHeader, readTrailer } from './segment-scan.ts'
import type { FileCipher, StoreKeys } from './store-keys.ts'

export interface RecoveredSegments {
  readonly segments: readonly Segment[]
  /** Files of one large batch each, which journal batches name. */
  readonly externals: readonly Segment[]
  /** The same, which none names: the reference did not reach the disk, or was damaged. */
  readonly orphanPaths: readonly string[]
  /** Unreadable files, to be set aside. */
  readonly damagedPaths: readonly string[]
  /** Files that hold only what the journal holds too, to be removed or emptied. */
  readonly repeatedPaths: readonly string[]
  /** Files that were emptied, since they could not be removed: as if they were gone. */
  readonly emptyPaths: readonly string[]
  /** Folders and files that the disk does not give: they stay where they are. */
  readonly refused: readonly EdgeError[]
  /** Bytes behind the last intact block that no journal batch explains: offsets may have been given above the end. */
  readonly lostEndSize: number
  /** There may be more behind them, or instead of them, in what is refused. */
  readonly isEndUnknown: boolean
  /** Folders that could not be listed, and why: what lies in one may be older than what is written now, and say otherwise. */
  readonly unlisted: ReadonlyMap<string, EdgeError>
  readonly highestRun: number
  /** From here on the journal counts. */
  readonly journalFrom: bigint | undefined
}

/** There may be a hundred thousand of them: what its name says is kept, not the name. */
class Found implements NamedSegment {
  /** That it lies in. */
  readonly directory: string
  readonly baseOffset: bigint
  readonly runNumber: number
  readonly isExternal: boolean
  /** 0 also where nobody says it. */
  readonly sizeBytes: number

  constructor(directory: string, { baseOffset, runNumber, isExternal }: SegmentName, sizeBytes: number) {
    this.directory = directory
    this.baseOffset = baseOffset
    this.runNumber = runNumber
    this.isExternal = isExternal
    this.sizeBytes = sizeBytes
  }

  get path(): string {
    return `${this.directory}/${formatSegmentName(this)}`
  }
}

/** Where a header comes from that does not stand as it was written. */
export type UnsoundHeader = 'copied' | 'mended'

/** Sizes of the tail that is searched for the last block: most compressed blocks are small. */
const TAIL_SIZES = [4096, 16_384, alignUp(BLOCK_RAW_SIZE + 2 * BLOCK_HEADER_SIZE, 4096)]

export interface SegmentRecoveryOptions {
  readonly fileSystem: FileSystem
  /** The partition's folder, and its refuge. */
  readonly directories: readonly string[]
  readonly key: number
  readonly keys: StoreKeys
  /** First offset that the journal holds of the partition. */
  readonly journalFirst: bigint | undefined
  /** Where it is damaged: segments may hold what it lost. */
  readonly damagedJournal: DamagedJournal | undefined
  readonly checksum: Checksum
  /** Runs that journal batches refer to. */
  readonly externalRuns: ReadonlySet<number>
  /** The header of that file is read from its copy, or has a flipped bit. */
  readonly unsound: (path: string, how: UnsoundHeader) => void
  /** The same of a file that is opened when the log is open. */
  readonly unsoundLater: (path: string, how: UnsoundHeader) => void
  /** Rules left out by a test. */
  readonly isJournalIgnored?: boolean
}

/** @throws EDGE_STORE_NEWER; EDGE_IO where the machine is short of something. */
export function recoverSegments(options: SegmentRecoveryOptions): RecoveredSegments {
  const { fileSystem, externalRuns } = options
  const [home] = options.directories
  const found: Found[] = []
  const referred: Found[] = []
  const orphanPaths: string[] = []
  const emptyPaths: string[] = []
  let highestRun = 0
  const damagedPaths: string[] = []
  const refused: EdgeError[] = []
  const unlisted = new Map<string, EdgeError>()
  // Of two copies of one file that at home counts, and comes last.
  for (const directory of options.directories.toReversed()) {
    const entries = given<readonly DirectoryEntry[]>(() => fileSystem.list(directory), refused)
    const refusal = entries === undefined ? refused.at(-1) : undefined
    if (refusal !== undefined) unlisted.set(directory, refusal)
    for (const { name, isDirectory } of entries ?? []) {
      const parsed = isDirectory ? undefined : parseSegmentName(name)
      const path = `${directory}/${name}`
      if (parsed === undefined) {
        damagedPaths.push(path)
        continue
      }
      if (parsed.runNumber < STRANGE_RUN) highestRun = Math.max(highestRun, parsed.runNumber)
      const sizeBytes = given(() => fileSystem.sizeOf(path), refused)
      const file = new Found(directory, parsed, sizeBytes ?? 0)
      if (externalRuns.has(parsed.runNumber)) referred.push(file)
      else if (parsed.isExternal) orphanPaths.push(path)
      else if (sizeBytes === 0) emptyPaths.push(path)
      else found.push(file)
    }
  }
  const gone = overtaken(inOrder(found), (file) => endOf(file, options))
  const living = found.filter((file) => !gone.has(file))
  const packed = referred.filter(({ isExternal }) => !isExternal)
  const journalFrom = options.isJournalIgnored ? undefined : countsFrom(inOrder([...living, ...packed]), options)
  const isRepeated = ({ baseOffset }: Found): boolean => journalFrom !== undefined && baseOffset >= journalFrom
  const externals: Segment[] = []
  const copyPaths: string[] = []
  for (const file of referred) {
    const isAway = file.directory !== home
    const original = isAway && referred.find((each) => each.directory === home && each.runNumber === file.runNumber)
    // The original is whole, a copy in the refuge may have been cut short.
    if (original && (!original.isExternal || isRepeated(file))) copyPaths.push(file.path)
    // A large batch that has become a segment, and lies where segments count.
    else if (!file.isExternal && journalFrom !== undefined && !isRepeated(file)) living.push(file)
    else {
      const segment = openExternal(file, options, file.isExternal)
      if (segment === undefined) damagedPaths.push(file.path)
      else externals.push(segment)
    }
  }
  const { kept, losers } = withoutTwins(inOrder(living.filter((each) => !isRepeated(each))), (file) =>
    hasMessages(file, options),
  )
  damagedPaths.push(...losers.map(({ path }) => path))
  const repeatedPaths = [...gone, ...living.filter(isRepeated)].map(({ path }) => path).concat(copyPaths)
  const refusedBefore = refused.length
  const unusable = { damagedPaths, refused }
  const { segments, lostEndSize } = openFromBehind(kept, { ...options, journalFirst: journalFrom }, unusable)
  const isEndUnknown = journalFrom === undefined && (unlisted.size > 0 || refused.length > refusedBefore)
  const paths = { orphanPaths, emptyPaths, damagedPaths, repeatedPaths }
  return { segments, externals, ...paths, refused, lostEndSize, isEndUnknown, unlisted, highestRun, journalFrom }
}

/** What the disk gives; what it does not is noted. */
function given<T>(call: () => T, refused: EdgeError[]): T | undefined {
  try {
    return call()
  } catch (error) {
    if (!isRefused(error)) throw error
    refused.push(error)
    return undefined
  }
}

/** From which offset on the journal counts: its first one, or the end of what segments have where it is damaged. */
function countsFrom(files: readonly Found[], options: SegmentRecoveryOptions): bigint | undefined {
  const { journalFirst, damagedJournal, checksum } = options
  if (journalFirst === undefined || damagedJournal === undefined) return journalFirst
  const distinct = withoutTwins(files, (file) => hasMessages(file, options)).kept
  const first = distinct.findLastIndex(({ baseOffset }) => baseOffset <= journalFirst)
  return intactEnd(opened(distinct.slice(Math.max(0, first)), options), journalFirst, damagedJournal, checksum)
}

/** One at a time; it ends at one without a header. */
function* opened(files: readonly Found[], options: SegmentRecoveryOptions): Generator<FoundBlocks> {
  for (const [number, file] of files.entries()) {
    const found = look(file, options)
    if (found === undefined || found instanceof EdgeError) return
    try {
      yield { ...found, seed: found.header.seed, endOffset: files[number + 1]?.baseOffset }
    } finally {
      found.handle.close()
    }
  }
}

interface Look {
  readonly handle: LogFile
  readonly header: Header
}

/** @returns the open file; undefined where nothing in it can be read, or why the disk does not give it. */
function look(file: NamedSegment, options: SegmentRecoveryOptions): Look | EdgeError | undefined {
  let handle: LogFile | undefined
  try {
    handle = openToRead(options.fileSystem, file.path)
    const header = readHeader(handle, file, options)
    if (header !== undefined) return { handle, header }
    handle.close()
    return undefined
  } catch (error) {
    handle?.close()
    if (!isRefused(error)) throw error
    return error
  }
}

/** @returns undefined also where it cannot be looked into. */
function lookInto<T>(file: Found, options: SegmentRecoveryOptions, use: (found: Look) => T): T | undefined {
  const found = look(file, options)
  if (found === undefined || found instanceof EdgeError) return undefined
  try {
    return use(found)
  } finally {
    found.handle.close()
  }
}

const hasMessages = (file: Found, options: SegmentRecoveryOptions): boolean =>
  lookInto(file, options, ({ handle, header }) =>
    [...blocksOf(handle, header.seed, handle.size())].some(({ recordCount }) => recordCount > 0),
  ) === true

/** Of its last block, whatever may lie behind. */
const endOf = (file: Found, options: SegmentRecoveryOptions): bigint | undefined =>
  lookInto(file, options, ({ handle, header: { seed } }) => {
    const size = handle.size()
    return lastWithin(handle, { seed, size, limit: undefined }, newestBlock(handle, seed, size))?.endOffset
  })

/** One block, under the name it had before or after it was taken among the segments. */
function openExternal(found: Found, options: SegmentRecoveryOptions, isExternal: boolean): Segment | undefined {
  return lookInto(found, options, ({ handle, header }) => {
    const size = handle.size()
    const block = readBlockHeader(handle, header.seed, SEGMENT_HEADER_SIZE, size)
    if (block === undefined) return undefined
    const segment = new Segment({ ...found, seed: header.seed, cipher: header.cipher })
    segment.isExternal = isExternal
    segment.isClosed = true
    segment.endOffset = block.endOffset
    segment.sizeBytes = size
    segment.messageCount = block.recordCount
    segment.lastAppendUs = block.lastTimeUs
    segment.isClockTrusted = isClockTrusted(block)
    segment.lastBlockPosition = block.position
    segment.lastBoot = block.boot
    return segment
  })
}

/** Looks into files from the last one on, until one has a block; the others are known by their names. */
function openFromBehind(
  found: readonly Found[],
  options: SegmentRecoveryOptions,
  { damagedPaths, refused }: { readonly damagedPaths: string[]; readonly refused: EdgeError[] },
): { segments: Segment[]; lostEndSize: number } {
  let lostEndSize = 0
  let isBehindDamage = false
  const rest = [...found]
  for (let last = rest.pop(); last !== undefined; last = rest.pop()) {
    const opened = openLast(last, options)
    if (opened instanceof EdgeError) {
      refused.push(opened)
      isBehindDamage = true
      continue
    }
    if (opened === undefined) {
      damagedPaths.push(last.path)
      if (options.journalFirst === undefined) lostEndSize += last.sizeBytes
      isBehindDamage = true
      continue
    }
    if (options.journalFirst === undefined) lostEndSize += opened.lostSize
    // The damaged file's name ends this segment, should it not be set aside or a power cut bring it back: no more blocks.
    opened.segment.isClosed ||= isBehindDamage
    const readHeading = headingReader(options)
    const segments = rest.map((each, index) => {
      const segment = new Segment(each, readHeading)
      segment.sizeBytes = each.sizeBytes
      return byName(segment, (rest[index + 1] ?? last).baseOffset)
    })
    return { segments: [...segments, opened.segment], lostEndSize }
  }
  return { segments: [], lostEndSize }
}

/** A file that was not looked into: it ends where the next one begins. */
function byName(segment: Segment, endOffset: bigint): Segment {
  segment.endOffset = endOffset
  segment.messageCount = Number(endOffset - segment.baseOffset)
  segment.isClosed = true
  return segment
}

function headingReader({ fileSystem, key, keys, unsoundLater: unsound }: SegmentRecoveryOptions): ReadHeading {
  return (segment) => {
    const handle = openToRead(fileSystem, segment.path)
    try {
      // Without a header none of its blocks can be read.
      const { seed = 0, cipher } = readHeader(handle, segment, { key, keys, unsound }) ?? {}
      return { seed, cipher }
    } finally {
      handle.close()
    }
  }
}

/** @returns undefined where nothing in it can be read, or why the disk does not give it. */
function openLast(
  found: Found,
  options: SegmentRecoveryOptions,
): { segment: Segment; lostSize: number } | EdgeError | undefined {
  const opened = look(found, options)
  if (opened === undefined || opened instanceof EdgeError) return opened
  const { handle, header } = opened
  try {
    const size = handle.size()
    const newest = newestBlock(handle, header.seed, size)
    const last = lastWithin(handle, { seed: header.seed, size, limit: options.journalFirst }, newest)
    if (last === undefined) return undefined
    const segment = new Segment({ ...found, seed: header.seed, cipher: header.cipher })
    const isWhole = last.position === newest?.position
    segment.endOffset = last.endOffset
    segment.messageCount = Number(last.endOffset - found.baseOffset)
    segment.lastAppendUs = last.lastTimeUs
    segment.isClockTrusted = isClockTrusted(last)
    segment.lastBlockPosition = last.position
    segment.lastBoot = last.boot
    segment.sizeBytes = isWhole ? size : endOfBlock(last)
    // Cut or not: it takes no more blocks. Appending behind bytes that may come back would need rules of its own. What
    // nothing else tells of stays: the next open must know of it too.
    if (!isWhole && options.journalFirst !== undefined) truncateQuietly(handle, segment.sizeBytes)
    // Nor does one of another key: blocks of one file are sealed with one key, or are all plain.
    segment.isClosed = !isWhole || endOfBlock(last) !== size || header.encryptionKeyId !== options.keys.currentId
    return { segment, lostSize: isWhole ? 0 : size - segment.sizeBytes }
  } finally {
    handle.close()
  }
}

/** A stale tail does no harm: the next file's name says where this one ends. */
function truncateQuietly(handle: LogFile, size: number): void {
  try {
    handle.truncate(size)
  } catch {
    // Left as it is.
  }
}

/** The last block of a file that ends as it should: with an index and trailer, or with a block. */
function newestBlock(handle: LogFile, seed: number, size: number): BlockHeader | undefined {
  const trailer = readTrailer(handle, seed)
  if (trailer === undefined) return blockAtEnd(handle, seed, size)
  const position = lastPosition(handle, trailer)
  return position === undefined ? undefined : readBlockHeader(handle, seed, position, size)
}

/** Back from the newest block to the first below the limit; from the front where that way is cut. */
function lastWithin(
  handle: LogFile,
  file: { seed: number; size: number; limit: bigint | undefined },
  newest: BlockHeader | undefined,
): BlockHeader | undefined {
  const isWithin = ({ baseOffset }: BlockHeader): boolean => file.limit === undefined || baseOffset < file.limit
  let block = newest
  while (block !== undefined && !isWithin(block)) {
    if (block.previousPosition === 0) return undefined
    block = readBlockHeader(handle, file.seed, block.previousPosition, file.size)
  }
  return block ?? lastFromFront(handle, file.seed, file.size, isWithin)
}

/** The block that ends exactly where the data does. */
function blockAtEnd(handle: LogFile, seed: number, dataEnd: number): BlockHeader | undefined {
  for (const tailSize of TAIL_SIZES) {
    const start = Math.max(SEGMENT_HEADER_SIZE, dataEnd - tailSize)
    const area = readGivenArea(handle, start, dataEnd - start)
    const highest = Math.floor((area.bytes.length - BLOCK_HEADER_SIZE) / BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT
    for (let at = highest; at >= 0; at -= BLOCK_ALIGNMENT) {
      const block = decodeBlockHeader(area, at, seed, start + at, dataEnd)
      if (block !== undefined && endOfBlock(block) === dataEnd) return block
    }
  }
  return undefined
}

function lastFromFront(
  handle: LogFile,
  seed: number,
  dataEnd: number,
  isWithin: (block: BlockHeader) => boolean,
): BlockHeader | undefined {
  let last: BlockHeader | undefined
  for (const block of blocksOf(handle, seed, dataEnd)) {
    if (!isWithin(block)) break
    if (last === undefined || block.baseOffset >= last.endOffset) last = block
  }
  return last
}

type Header = ReadSegmentHeader & { readonly cipher: FileCipher | undefined }

function readHeader(
  handle: LogFile,
  found: NamedSegment,
  { key, keys, unsound }: Pick<SegmentRecoveryOptions, 'key' | 'keys' | 'unsound'>,
): Header | undefined {
  const header = readSegmentHeader(handle, found, key)
  if (header?.isCopy) unsound(found.path, 'copied')
  if (header?.isMended) unsound(found.path, 'mended')
  return header && { ...header, cipher: keys.cipherFor(header.bytes, header.encryptionKeyId) }
}
