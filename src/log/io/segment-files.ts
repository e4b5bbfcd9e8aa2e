/**
 * Reads segments: keeps few files open and few blocks decoded, finds blocks by index or by going from header to header.
 *
 * A body is decoded only after its CRC; a block that is damaged costs its own offsets and nothing else.
 */
import { discard } from '../../discard.ts'
import { EdgeError } from '../../errors.ts'
import { sharedKernel } from '../../sdk/wire/kernel/shared-kernel.ts'
import { alignUp, areaOf, type ByteArea, createArea } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import {
  BLOCK_ALIGNMENT,
  BLOCK_FLAG,
  BLOCK_HEADER_SIZE,
  BLOCK_RAW_SIZE,
  type BlockHeader,
  decodeBlockHeader,
  decodeSegmentIndex,
  decodeSegmentTrailer,
  INDEX_ENTRY_SIZE,
  INDEX_POSITION_AT,
  type IndexEntry,
  SEGMENT_HEADER_SIZE,
  SEGMENT_TRAILER_SIZE,
  type SegmentTrailer,
} from '../core/segment-format.ts'
import { BlockCache } from './block-cache.ts'
import type { BlockCodec } from './block-codec.ts'
import type { FileSystem, LogFile } from './file-system.ts'
import { openBlockBody } from './sealed-blocks.ts'
import type { Segment } from './segment.ts'

export interface SegmentFilesOptions {
  readonly fileSystem: FileSystem
  readonly checksum: Checksum
  readonly codec: BlockCodec
  readonly maxOpenFiles: number
  /** How many decoded blocks are kept. */
  readonly decodedBlocks: number
}

/** What to do with a decoded block; unless it is lasting, the view is valid until this returns. */
export type UseBlock = (rawView: Uint8Array, isLasting: boolean) => void

/** Blocks that are decoded at the same time before anybody asked for them: as many as the pool has threads. */
const MAX_READ_AHEAD = 2
/** Bytes looked through at once for the next intact header behind a damaged one. */
const SEARCH_SIZE = 64 * 1024

export class SegmentFiles {
  readonly #options: SegmentFilesOptions
  /** In order of use, the oldest first: a map keeps the order of insertion. */
  readonly #open = new Map<string, LogFile>()
  readonly #decoded: BlockCache
  /** Blocks on their way into memory: who wants the same one waits for it. */
  #reading: {
    readonly segment: Segment
    readonly position: number
    readonly users: UseBlock[]
    readonly ended: Promise<void>
  }[] = []

  constructor(options: SegmentFilesOptions) {
    this.#options = options
    // In the kernels' memory: they read records where these lie.
    this.#decoded = new BlockCache(sharedKernel().reserve(options.decodedBlocks * BLOCK_RAW_SIZE))
  }

  get openCount(): number {
    return this.#open.size
  }

  file(path: string): LogFile {
    const handle = this.#open.get(path) ?? this.#options.fileSystem.open(path, 'existing')
    this.#open.delete(path)
    this.#open.set(path, handle)
    for (const [oldest, each] of this.#open) {
      if (this.#open.size <= this.#options.maxOpenFiles) break
      this.#open.delete(oldest)
      each.close()
    }
    return handle
  }

  /** The file is closed, removed or renamed. */
  forget(path: string): void {
    this.#open.get(path)?.close()
    this.#open.delete(path)
    this.#decoded.forget(path)
  }

  close(): void {
    for (const handle of this.#open.values()) handle.close()
    this.#open.clear()
    this.#decoded.clear()
  }

  /** @returns the raw batches of a block that is decoded already, valid in this turn; else `loadBlock` it. */
  decodedBlock(segment: Segment, position: number): Uint8Array | undefined {
    return this.#decoded.find(segment, position)
  }

  /**
   * Decodes a block and gives its raw batches to `use` before anything else runs.
   *
   * @throws as a rejection EDGE_BATCH_CORRUPT, EDGE_DECRYPT_FAILED, EDGE_IO.
   */
  loadBlock(segment: Segment, position: number, use: UseBlock): Promise<void> {
    const running = this.#reading.find((block) => block.position === position && block.segment === segment)
    if (running !== undefined) {
      running.users.push(use)
      return running.ended
    }
    const users = [use]
    const block = { segment, position, users, ended: this.#load(segment, position, users) }
    this.#reading.push(block)
    const ended = (): void => {
      this.#reading = this.#reading.filter((each) => each !== block)
    }
    block.ended.then(ended, ended)
    return block.ended
  }

  /** Begins to decode what a reader that goes on will want next. */
  readAhead(segment: Segment, position: number): void {
    if (this.#reading.length >= MAX_READ_AHEAD || this.decodedBlock(segment, position) !== undefined) return
    // Whoever comes for it is told what is wrong with it.
    this.loadBlock(segment, position, () => undefined).catch(() => undefined)
  }

  async #load(segment: Segment, position: number, users: readonly UseBlock[]): Promise<void> {
    const raw = await this.#decode(segment, position)
    const kept = this.#decoded.add(segment, position, raw)
    for (const use of users) use(kept ?? raw, kept === undefined)
    if (kept !== undefined) discard(raw)
  }

  async #decode(segment: Segment, position: number): Promise<Uint8Array> {
    const handle = this.file(segment.path)
    const block = readBlockHeader(handle, segment.seed, position, segment.sizeBytes)
    if (block === undefined) throw corrupt(segment, position)
    const bytes = new Uint8Array(block.storedSize)
    const size = await handle.readLater(bytes, position + BLOCK_HEADER_SIZE)
    const { checksum, codec } = this.#options
    if (size !== bytes.length || checksum(bytes, 0, size, 0) !== block.bodyCrc) throw corrupt(segment, position)
    const body = openBlockBody(segment.cipher, block, bytes)
    const raw = await codec.decode({ codec: block.codec, bytes: body }, block.rawSize)
    if (raw.length !== block.rawSize) throw corrupt(segment, position)
    return raw
  }

  /** Where a segment's blocks lie: from its index, or from its block headers when it has none or a damaged one. */
  index(segment: Segment): readonly IndexEntry[] {
    if (segment.entries !== undefined) return segment.entries
    const handle = this.file(segment.path)
    const trailer = readTrailer(handle, segment.seed)
    const entries = trailer === undefined ? undefined : readIndex(handle, trailer, this.#options.checksum)
    segment.entries = entries ?? this.#indexFromBlocks(segment, handle)
    segment.messageCount = segment.entries.reduce((sum, entry) => sum + entry.recordCount, 0)
    return segment.entries
  }

  /** Append time of the last batch: from the last block's header, whose flags say what it is worth. @throws EDGE_IO. */
  lastAppendUs(segment: Segment): bigint {
    if (segment.lastAppendUs !== undefined) return segment.lastAppendUs
    const handle = this.file(segment.path)
    const { seed, sizeBytes } = segment
    const trailer = readTrailer(handle, seed)
    const position = trailer === undefined ? this.index(segment).at(-1)?.position : lastPosition(handle, trailer)
    const last = position === undefined ? undefined : readBlockHeader(handle, seed, position, sizeBytes)
    segment.isClockTrusted = last === undefined || isClockTrusted(last)
    segment.lastAppendUs = last?.lastTimeUs ?? trailer?.lastTimeUs ?? segment.entries?.at(-1)?.firstTimeUs ?? 0n
    return segment.lastAppendUs
  }

  #indexFromBlocks(segment: Segment, handle: LogFile): IndexEntry[] {
    const entries: IndexEntry[] = []
    let end = segment.baseOffset
    for (const block of blocksOf(handle, segment.seed, segment.sizeBytes)) {
      if (block.baseOffset >= segment.endOffset) break
      // Below the running end: a run was repeated after a crash, the first one counts.
      if (block.baseOffset < end) continue
      entries.push(entryOf(block))
      end = block.endOffset
    }
    return entries
  }
}

export const entryOf = (block: BlockHeader): IndexEntry => ({
  baseOffset: block.baseOffset,
  firstTimeUs: block.firstTimeUs,
  position: block.position,
  recordCount: block.recordCount,
})

export const isClockTrusted = ({ flags }: BlockHeader): boolean => (flags & BLOCK_FLAG.isClockUntrusted) === 0

/** Where the next block may begin. */
export const endOfBlock = (block: BlockHeader): number =>
  block.position + alignUp(BLOCK_HEADER_SIZE + block.storedSize, BLOCK_ALIGNMENT)

export function readBlockHeader(
  handle: LogFile,
  seed: number,
  position: number,
  fileSize: number,
): BlockHeader | undefined {
  const area = createArea(BLOCK_HEADER_SIZE)
  if (handle.read(area.bytes, position) < BLOCK_HEADER_SIZE) return undefined
  return decodeBlockHeader(area, 0, seed, position, fileSize)
}

/** All blocks with an intact header, in file order. Behind a damaged one the next intact header is looked for. */
export function* blocksOf(handle: LogFile, seed: number, fileSize: number): Generator<BlockHeader> {
  let position = SEGMENT_HEADER_SIZE
  while (position + BLOCK_HEADER_SIZE <= fileSize) {
    const block =
      readBlockHeader(handle, seed, position, fileSize) ?? nextBlock(handle, seed, position + BLOCK_ALIGNMENT, fileSize)
    if (block === undefined) return
    yield block
    position = endOfBlock(block)
  }
}

function nextBlock(handle: LogFile, seed: number, from: number, fileSize: number): BlockHeader | undefined {
  for (let start = from; start + BLOCK_HEADER_SIZE <= fileSize; start += SEARCH_SIZE) {
    const area = readArea(handle, start, Math.min(SEARCH_SIZE + BLOCK_HEADER_SIZE, fileSize - start))
    const last = Math.min(area.bytes.length - BLOCK_HEADER_SIZE, SEARCH_SIZE - BLOCK_ALIGNMENT)
    for (let at = 0; at <= last; at += BLOCK_ALIGNMENT) {
      const block = decodeBlockHeader(area, at, seed, start + at, fileSize)
      if (block !== undefined) return block
    }
  }
  return undefined
}

export function readTrailer(handle: LogFile, seed: number): SegmentTrailer | undefined {
  const fileSize = handle.size()
  if (fileSize < SEGMENT_HEADER_SIZE + SEGMENT_TRAILER_SIZE) return undefined
  const area = readArea(handle, fileSize - SEGMENT_TRAILER_SIZE, SEGMENT_TRAILER_SIZE)
  return decodeSegmentTrailer(area, seed, fileSize)
}

function readIndex(handle: LogFile, trailer: SegmentTrailer, checksum: Checksum): IndexEntry[] | undefined {
  const area = readArea(handle, trailer.indexPosition, trailer.blockCount * INDEX_ENTRY_SIZE)
  return decodeSegmentIndex(area, trailer, checksum)
}

/** Where the last block lies, as the index says; undefined for a file without blocks. */
export function lastPosition(handle: LogFile, trailer: SegmentTrailer): number | undefined {
  if (trailer.blockCount === 0) return undefined
  const entry = readArea(handle, trailer.indexPosition + (trailer.blockCount - 1) * INDEX_ENTRY_SIZE, INDEX_ENTRY_SIZE)
  return entry.view.getUint32(INDEX_POSITION_AT, true)
}

export function readArea(handle: LogFile, position: number, size: number): ByteArea {
  const bytes = new Uint8Array(size)
  return areaOf(bytes.subarray(0, handle.read(bytes, position)))
}

function corrupt(segment: Segment, position: number): EdgeError {
  return new EdgeError('EDGE_BATCH_CORRUPT', `block at ${position} of ${segment.path} is damaged`, {
    details: { path: segment.path, position },
  })
}
