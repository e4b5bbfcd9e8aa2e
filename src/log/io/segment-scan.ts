/**
 * Reads what a segment says of itself: block headers one after another, and the index and trailer of a closed one.
 */
import { alignUp, type ByteArea } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import type { Decoded } from '../core/header-sum.ts'
import {
  BLOCK_ALIGNMENT,
  BLOCK_FLAG,
  BLOCK_HEADER_SIZE,
  type BlockHeader,
  decodeBlockHeader,
  decodeSegmentIndex,
  decodeSegmentTrailer,
  SEGMENT_HEADER_SIZE,
  SEGMENT_TRAILER_SIZE,
  type SegmentTrailer,
} from '../core/segment-format.ts'
import { INDEX_ENTRY_SIZE, INDEX_POSITION_AT, type IndexEntry, type SegmentIndex } from '../core/segment-index.ts'
import { type Readable, readGivenArea } from './given-pages.ts'

/** Bytes looked through at once for the next intact header behind a damaged one. */
const SEARCH_SIZE = 64 * 1024

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
  handle: Readable,
  seed: number,
  position: number,
  fileSize: number,
): Decoded<BlockHeader> | undefined {
  const area = readGivenArea(handle, position, BLOCK_HEADER_SIZE)
  if (area.bytes.length < BLOCK_HEADER_SIZE) return undefined
  return decodeBlockHeader(area, 0, seed, position, fileSize)
}

/**
 * All blocks with an intact header, in file order. Behind a damaged one the next intact header is looked for, and behind what
 * the disk does not give.
 */
export function* blocksOf(handle: Readable, seed: number, fileSize: number): Generator<Decoded<BlockHeader>> {
  let position = SEGMENT_HEADER_SIZE
  while (position + BLOCK_HEADER_SIZE <= fileSize) {
    const block =
      decodeBlockHeader(readGivenArea(handle, position, BLOCK_HEADER_SIZE), 0, seed, position, fileSize) ??
      nextBlock(handle, seed, position + BLOCK_ALIGNMENT, fileSize)
    if (block === undefined) return
    yield block
    position = endOfBlock(block)
  }
}

/** The first block with an intact header that begins at `from` or behind it. */
export function nextBlock(
  handle: Readable,
  seed: number,
  from: number,
  fileSize: number,
): Decoded<BlockHeader> | undefined {
  return searched(handle, { from, end: fileSize, length: BLOCK_HEADER_SIZE }, (area, at, position) =>
    decodeBlockHeader(area, at, seed, position, fileSize),
  )
}

/** @returns the first that `decode` makes of `length` bytes at any of the places where blocks may begin. */
export function searched<T>(
  handle: Readable,
  { from, end, length }: { readonly from: number; readonly end: number; readonly length: number },
  decode: (area: ByteArea, at: number, position: number) => T | undefined,
): T | undefined {
  for (let start = from; start + length <= end; start += SEARCH_SIZE) {
    const area = readGivenArea(handle, start, Math.min(SEARCH_SIZE + length, end - start))
    const last = Math.min(area.bytes.length - length, SEARCH_SIZE - BLOCK_ALIGNMENT)
    for (let at = 0; at <= last; at += BLOCK_ALIGNMENT) {
      const found = decode(area, at, start + at)
      if (found !== undefined) return found
    }
  }
  return undefined
}

export function readTrailer(handle: Readable, seed: number): SegmentTrailer | undefined {
  const fileSize = handle.size()
  if (fileSize < SEGMENT_HEADER_SIZE + SEGMENT_TRAILER_SIZE) return undefined
  const area = readGivenArea(handle, fileSize - SEGMENT_TRAILER_SIZE, SEGMENT_TRAILER_SIZE)
  return decodeSegmentTrailer(area, seed, fileSize)
}

export function readIndex(handle: Readable, trailer: SegmentTrailer, checksum: Checksum): SegmentIndex | undefined {
  const { bytes } = readGivenArea(handle, trailer.indexPosition, trailer.blockCount * INDEX_ENTRY_SIZE)
  return decodeSegmentIndex(bytes, trailer, checksum)
}

/** Where the last block lies, as the index says; undefined for a file without blocks. */
export function lastPosition(handle: Readable, trailer: SegmentTrailer): number | undefined {
  if (trailer.blockCount === 0) return undefined
  const entry = readGivenArea(
    handle,
    trailer.indexPosition + (trailer.blockCount - 1) * INDEX_ENTRY_SIZE,
    INDEX_ENTRY_SIZE,
  )
  return entry.view.getUint32(INDEX_POSITION_AT, true)
}
