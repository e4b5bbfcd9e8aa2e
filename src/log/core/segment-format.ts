/**
 * Bytes of a segment file: header, blocks, and in a sealed one an index and a trailer.
 *
 * File header, 64 bytes: magic `EDGS`, 4 version u16, 6 flags u16, 8 store id (16), 24 key u32, 28 block seed u32,
 * 32 base offset u64, 40 run number u64, 48 created at u64 µs, 56 key id u32, 60 CRC of 0..59.
 *
 * Block header, 80 bytes, at a multiple of 8, or of 4096 where a run begins:
 *
 * | at | field                                    | at | field                                               |
 * |----|------------------------------------------|----|-----------------------------------------------------|
 * | 0  | header CRC of 4..79, seeded by the file  | 32 | end offset u64 (exclusive)                          |
 * | 4  | magic `EDGB`, 8 stored size u32          | 40 | first append time u64 µs                            |
 * | 12 | CRC of the stored body                   | 48 | last append time u64 µs                             |
 * | 16 | raw size u32                             | 56 | run number u64                                      |
 * | 20 | batch count u16, 22 codec u8, 23 flags   | 64 | boot u32, 68 record count u32                       |
 * | 24 | base offset u64                          | 72 | position of the block before u32, 76 own position   |
 *
 * Index: 24 bytes a block (base offset u64, first append time u64, position u32, record count u32), then the trailer, 32
 * bytes: magic `EDGT`, 4 block count u32, 8 index position u32, 12 CRC of the index, 16 last append time u64, 24 record
 * count u32, 28 CRC of 0..27 with the file's seed.
 */
import { type ByteArea, createArea, getSafeU64, setSafeU64 } from './byte-area.ts'
import { type Checksum, crc32 } from './checksum.ts'
import { checkSum, type Decoded, isNear } from './header-sum.ts'
import { INDEX_ENTRY_SIZE, SegmentIndex } from './segment-index.ts'

export const SEGMENT_VERSION = 1
export const SEGMENT_HEADER_SIZE = 64
export const BLOCK_HEADER_SIZE = 80
export const BLOCK_ALIGNMENT = 8
/** Raw bytes gathered into one block: zstd gains little above, and a reader unpacks it in about 0.1 ms. */
export const BLOCK_RAW_SIZE = 64 * 1024
export const SEGMENT_TRAILER_SIZE = 32

const SEGMENT_MAGIC = 0x53474445 // "EDGS"
const BLOCK_MAGIC = 0x42474445 // "EDGB"
const TRAILER_MAGIC = 0x54474445 // "EDGT"

/** `flags` of a block: the time of its last batch came from a clock that was not to be trusted. */
export const BLOCK_FLAG = { isClockUntrusted: 1 } as const
export const BLOCK_CODEC = { plain: 0, zstd: 1 } as const
const LAST_CODEC = 1

export interface SegmentHeader {
  readonly version: number
  readonly storeIdBytes: Uint8Array
  readonly key: number
  /** Random: seeds the CRCs of the block headers. */
  readonly seed: number
  readonly baseOffset: bigint
  readonly runNumber: number
  readonly createdAtUs: bigint
  readonly encryptionKeyId: number
}

export interface BlockHeader {
  readonly storedSize: number
  readonly bodyCrc: number
  readonly rawSize: number
  readonly batchCount: number
  readonly codec: number
  readonly flags: number
  readonly baseOffset: bigint
  readonly endOffset: bigint
  readonly firstTimeUs: bigint
  readonly lastTimeUs: bigint
  readonly runNumber: number
  readonly boot: number
  readonly recordCount: number
  /** 0 for the first block of a file. */
  readonly previousPosition: number
  readonly position: number
}

export interface SegmentTrailer {
  readonly blockCount: number
  readonly indexPosition: number
  readonly indexCrc: number
  readonly lastTimeUs: bigint
  readonly recordCount: number
}

export function encodeSegmentHeader(area: ByteArea, at: number, header: SegmentHeader): void {
  const { view, bytes } = area
  bytes.fill(0, at, at + SEGMENT_HEADER_SIZE)
  view.setUint32(at, SEGMENT_MAGIC, true)
  view.setUint16(at + 4, header.version, true)
  bytes.set(header.storeIdBytes, at + 8)
  view.setUint32(at + 24, header.key, true)
  view.setUint32(at + 28, header.seed, true)
  view.setBigUint64(at + 32, header.baseOffset, true)
  setSafeU64(view, at + 40, header.runNumber)
  view.setBigUint64(at + 48, header.createdAtUs, true)
  view.setUint32(at + 56, header.encryptionKeyId, true)
  view.setUint32(at + 60, crc32(bytes, at, at + 60, 0), true)
}

/**
 * A flipped bit is put right in the area.
 *
 * @returns undefined when the bytes at `at` are no header; version, store and key are the caller's to check.
 */
export function decodeSegmentHeader(area: ByteArea, at = 0): Decoded<SegmentHeader> | undefined {
  const { view, bytes } = area
  if (at + SEGMENT_HEADER_SIZE > bytes.length || !isNear(view.getUint32(at, true), SEGMENT_MAGIC)) return undefined
  const sum = checkSum(area, at, at + 60, at + 60, 0)
  if (sum === 'bad' || view.getUint32(at, true) !== SEGMENT_MAGIC) return undefined
  return {
    isMended: sum === 'mended',
    version: view.getUint16(at + 4, true),
    storeIdBytes: bytes.slice(at + 8, at + 24),
    key: view.getUint32(at + 24, true),
    seed: view.getUint32(at + 28, true),
    baseOffset: view.getBigUint64(at + 32, true),
    runNumber: getSafeU64(view, at + 40),
    createdAtUs: view.getBigUint64(at + 48, true),
    encryptionKeyId: view.getUint32(at + 56, true),
  }
}

export function encodeBlockHeader(area: ByteArea, at: number, block: BlockHeader, seed: number): void {
  const { view, bytes } = area
  view.setUint32(at + 4, BLOCK_MAGIC, true)
  view.setUint32(at + 8, block.storedSize, true)
  view.setUint32(at + 12, block.bodyCrc, true)
  view.setUint32(at + 16, block.rawSize, true)
  view.setUint16(at + 20, block.batchCount, true)
  view.setUint8(at + 22, block.codec)
  view.setUint8(at + 23, block.flags)
  view.setBigUint64(at + 24, block.baseOffset, true)
  view.setBigUint64(at + 32, block.endOffset, true)
  view.setBigUint64(at + 40, block.firstTimeUs, true)
  view.setBigUint64(at + 48, block.lastTimeUs, true)
  setSafeU64(view, at + 56, block.runNumber)
  view.setUint32(at + 64, block.boot, true)
  view.setUint32(at + 68, block.recordCount, true)
  view.setUint32(at + 72, block.previousPosition, true)
  view.setUint32(at + 76, block.position, true)
  view.setUint32(at, crc32(bytes, at + 4, at + BLOCK_HEADER_SIZE, seed), true)
}

/**
 * A flipped bit is put right in the area.
 *
 * @param position where in the file the bytes at `at` lie: a header names its own place, so that a misdirected write or a
 *   copy inside a payload never passes.
 * @param fileSize a block that would pass it is none.
 */
export function decodeBlockHeader(
  area: ByteArea,
  at: number,
  seed: number,
  position: number,
  fileSize: number,
): Decoded<BlockHeader> | undefined {
  const { view, bytes } = area
  if (at + BLOCK_HEADER_SIZE > bytes.length || !isNear(view.getUint32(at + 4, true), BLOCK_MAGIC)) return undefined
  if (!isNear(view.getUint32(at + 76, true), position)) return undefined
  const sum = checkSum(area, at + 4, at + BLOCK_HEADER_SIZE, at, seed)
  if (sum === 'bad' || view.getUint32(at + 4, true) !== BLOCK_MAGIC || view.getUint32(at + 76, true) !== position)
    return undefined
  const storedSize = view.getUint32(at + 8, true)
  const codec = view.getUint8(at + 22)
  if (storedSize > fileSize - position - BLOCK_HEADER_SIZE || codec > LAST_CODEC) return undefined
  return {
    isMended: sum === 'mended',
    storedSize,
    bodyCrc: view.getUint32(at + 12, true),
    rawSize: view.getUint32(at + 16, true),
    batchCount: view.getUint16(at + 20, true),
    codec,
    flags: view.getUint8(at + 23),
    baseOffset: view.getBigUint64(at + 24, true),
    endOffset: view.getBigUint64(at + 32, true),
    firstTimeUs: view.getBigUint64(at + 40, true),
    lastTimeUs: view.getBigUint64(at + 48, true),
    runNumber: getSafeU64(view, at + 56),
    boot: view.getUint32(at + 64, true),
    recordCount: view.getUint32(at + 68, true),
    previousPosition: view.getUint32(at + 72, true),
    position,
  }
}

/** @returns index and trailer as they stand at `indexPosition`, the end of the last block. */
export function encodeSegmentIndex(
  index: SegmentIndex,
  at: { indexPosition: number; lastTimeUs: bigint; seed: number },
): Uint8Array {
  const indexSize = index.count * INDEX_ENTRY_SIZE
  const { bytes, view } = createArea(indexSize + SEGMENT_TRAILER_SIZE)
  bytes.set(index.bytesView)
  view.setUint32(indexSize, TRAILER_MAGIC, true)
  view.setUint32(indexSize + 4, index.count, true)
  view.setUint32(indexSize + 8, at.indexPosition, true)
  view.setUint32(indexSize + 12, crc32(bytes, 0, indexSize, 0), true)
  view.setBigUint64(indexSize + 16, at.lastTimeUs, true)
  view.setUint32(indexSize + 24, index.recordCount, true)
  view.setUint32(indexSize + 28, crc32(bytes, indexSize, indexSize + 28, at.seed), true)
  return bytes
}

/** Reads the trailer from the last bytes of a file; a flipped bit is put right. @returns undefined when the file was not sealed, or is damaged. */
export function decodeSegmentTrailer(area: ByteArea, seed: number, fileSize: number): SegmentTrailer | undefined {
  const { view, bytes } = area
  if (bytes.length < SEGMENT_TRAILER_SIZE || !isNear(view.getUint32(0, true), TRAILER_MAGIC)) return undefined
  if (checkSum(area, 0, 28, 28, seed) === 'bad' || view.getUint32(0, true) !== TRAILER_MAGIC) return undefined
  const blockCount = view.getUint32(4, true)
  const indexPosition = view.getUint32(8, true)
  if (indexPosition + blockCount * INDEX_ENTRY_SIZE + SEGMENT_TRAILER_SIZE !== fileSize) return undefined
  return {
    blockCount,
    indexPosition,
    indexCrc: view.getUint32(12, true),
    lastTimeUs: view.getBigUint64(16, true),
    recordCount: view.getUint32(24, true),
  }
}

/** @returns undefined when the CRC does not fit: the index is then built from the blocks. */
export function decodeSegmentIndex(
  bytes: Uint8Array,
  trailer: SegmentTrailer,
  checksum: Checksum,
): SegmentIndex | undefined {
  if (checksum(bytes, 0, bytes.length, 0) !== trailer.indexCrc) return undefined
  return new SegmentIndex(bytes)
}

// ---- names -----------------------------------------------------------------------------------------------------------

export interface SegmentName {
  readonly baseOffset: bigint
  readonly runNumber: number
  /** Not yet part of the log: counts only when a journal batch names its run. */
  readonly isExternal: boolean
}

/** As it is formatted, and no other way: files are opened by what it says. Fewer runs than a double counts exactly. */
const NAME = /^(\d{20})\.(0|[1-9]\d{0,14})\.(seg|external)$/

/** `<base offset, 20 digits>.<run number>.seg`: sorted by name is sorted by offset. */
export function formatSegmentName({ baseOffset, runNumber, isExternal }: SegmentName): string {
  return `${baseOffset.toString().padStart(20, '0')}.${runNumber}.${isExternal ? 'external' : 'seg'}`
}

export function parseSegmentName(name: string): SegmentName | undefined {
  const [, offset, run, ending] = NAME.exec(name) ?? []
  if (offset === undefined || run === undefined) return undefined
  return { baseOffset: BigInt(offset), runNumber: Number(run), isExternal: ending === 'external' }
}
