/**
 * Bytes of a journal file: one header in its first page, then groups. Batches are in `batch-header.ts`.
 *
 * File header, 64 bytes at 0; groups begin at byte 4096:
 *
 * | at | field                                    | at | field                                               |
 * |----|------------------------------------------|----|-----------------------------------------------------|
 * | 0  | magic `EDGJ`                             | 32 | salt u64, random per preparing                      |
 * | 4  | version u16, 6 flags u16                 | 40 | key floor u32, 44 file size u32                     |
 * | 8  | store id, 16 bytes                       | 48 | encryption key id u32, 52 first sequence u64        |
 * | 24 | generation u64                           | 60 | CRC of 0..59                                        |
 *
 * Group header, 96 bytes at a multiple of 512:
 *
 * | at | field                                    | at | field                                               |
 * |----|------------------------------------------|----|-----------------------------------------------------|
 * | 0  | header CRC of 4..95, seeded by file salt | 48 | header CRC of the group before u32, 52 batch count  |
 * | 4  | magic `EDGG`, 8 length u32, 12 body CRC  | 56 | durable sequence u64: last group known to be synced |
 * | 16 | generation u64                           | 64 | session ordinal u32, 68 boot u32                    |
 * | 24 | own position u32, 28 flags u32           | 72 | first sequence of the session u64                   |
 * | 32 | session salt u64                         | 80 | wall clock u64 µs                                   |
 * | 40 | sequence u64                             | 88 | parent ordinal u32, 92 boot hash u32                |
 */
import { alignUp, type ByteArea, getSafeU64, setSafeU64 } from './byte-area.ts'
import { crc32 } from './checksum.ts'
import { checkSum, type Decoded, isNear } from './header-sum.ts'

export const JOURNAL_VERSION = 1
export const JOURNAL_HEADER_SIZE = 64
export const GROUP_HEADER_SIZE = 96
/** Devices write whole pages; a page that holds a synced byte is not written again before the file is recycled. */
export const PAGE_SIZE = 4096
export const GROUP_ALIGNMENT = 512
export const FIRST_GROUP_AT = PAGE_SIZE

const FILE_MAGIC = 0x4a474445 // "EDGJ"
const GROUP_MAGIC = 0x47474445 // "EDGG"
/** What a search for groups looks for, and where in a group header it lies. */
export const GROUP_MAGIC_TEXT = 'EDGG'
export const GROUP_MAGIC_AT = 4

export const GROUP_FLAG = {
  /** First group of its session: what later ones of the chain are checked against. */
  isFirst: 1,
  /** The log was closed behind this group: everything is synced, nothing can have been lost. */
  isCleanStop: 2,
} as const

export interface JournalHeader {
  readonly version: number
  readonly storeIdBytes: Uint8Array
  /** +1 per preparing, over all files: order of the files, and the age of every group in them. */
  readonly generation: number
  readonly salt: bigint
  /** All partition keys below it have been given: a witness for when the catalog's own record is lost. */
  readonly keyFloor: number
  readonly fileSize: number
  readonly encryptionKeyId: number
  /**
   * Of the oldest group that any file held when this one was prepared, or of the next one to be written: all before it lie
   * in segments. 0: written by a version that did not tell.
   */
  readonly firstSequence: number
}

export interface GroupHeader {
  readonly crc: number
  readonly length: number
  readonly bodyCrc: number
  readonly generation: number
  readonly position: number
  readonly flags: number
  readonly sessionSalt: bigint
  readonly sequence: number
  readonly previousCrc: number
  readonly batchCount: number
  readonly durableSequence: number
  readonly ordinal: number
  readonly boot: number
  readonly sessionFirst: number
  readonly wallUs: bigint
  readonly parent: number
  /** CRC of the kernel's id of the machine start that wrote the group. */
  readonly bootHash: number
}

/** Where the next group begins: at the next 512 bytes, or at the next page when a sync had started. */
export function nextPositions({ position, length }: Pick<GroupHeader, 'position' | 'length'>): readonly number[] {
  return [GROUP_ALIGNMENT, PAGE_SIZE].map((step) => alignUp(position + length, step))
}

/** CRC seed of a salt: its lower half. */
export const seedOf = (salt: bigint): number => Number(salt & 0xffffffffn)

export function encodeJournalHeader(area: ByteArea, header: JournalHeader): void {
  const { view, bytes } = area
  bytes.fill(0, 0, JOURNAL_HEADER_SIZE)
  view.setUint32(0, FILE_MAGIC, true)
  view.setUint16(4, header.version, true)
  bytes.set(header.storeIdBytes, 8)
  setSafeU64(view, 24, header.generation)
  view.setBigUint64(32, header.salt, true)
  view.setUint32(40, header.keyFloor, true)
  view.setUint32(44, header.fileSize, true)
  view.setUint32(48, header.encryptionKeyId, true)
  setSafeU64(view, 52, header.firstSequence)
  view.setUint32(60, crc32(bytes, 0, 60, 0), true)
}

/**
 * A flipped bit is put right in the area.
 *
 * @returns undefined when the bytes are no header; the version is the caller's to check.
 */
export function decodeJournalHeader(area: ByteArea): Decoded<JournalHeader> | undefined {
  const { view, bytes } = area
  if (bytes.length < JOURNAL_HEADER_SIZE || !isNear(view.getUint32(0, true), FILE_MAGIC)) return undefined
  const sum = checkSum(area, 0, 60, 60, 0)
  if (sum === 'bad' || view.getUint32(0, true) !== FILE_MAGIC) return undefined
  return {
    isMended: sum === 'mended',
    version: view.getUint16(4, true),
    storeIdBytes: bytes.slice(8, 24),
    generation: getSafeU64(view, 24),
    salt: view.getBigUint64(32, true),
    keyFloor: view.getUint32(40, true),
    fileSize: view.getUint32(44, true),
    encryptionKeyId: view.getUint32(48, true),
    firstSequence: getSafeU64(view, 52),
  }
}

/** Writes the header of a whole group at `at` and seals it. @returns its CRC, which the next group names. */
export function encodeGroupHeader(area: ByteArea, at: number, group: Omit<GroupHeader, 'crc'>, seed: number): number {
  const { view, bytes } = area
  view.setUint32(at + GROUP_MAGIC_AT, GROUP_MAGIC, true)
  view.setUint32(at + 8, group.length, true)
  view.setUint32(at + 12, group.bodyCrc, true)
  setSafeU64(view, at + 16, group.generation)
  view.setUint32(at + 24, group.position, true)
  view.setUint32(at + 28, group.flags, true)
  view.setBigUint64(at + 32, group.sessionSalt, true)
  setSafeU64(view, at + 40, group.sequence)
  view.setUint32(at + 48, group.previousCrc, true)
  view.setUint32(at + 52, group.batchCount, true)
  setSafeU64(view, at + 56, group.durableSequence)
  view.setUint32(at + 64, group.ordinal, true)
  view.setUint32(at + 68, group.boot, true)
  setSafeU64(view, at + 72, group.sessionFirst)
  view.setBigUint64(at + 80, group.wallUs, true)
  view.setUint32(at + 88, group.parent, true)
  view.setUint32(at + 92, group.bootHash, true)
  const crc = crc32(bytes, at + 4, at + GROUP_HEADER_SIZE, seed)
  view.setUint32(at, crc, true)
  return crc
}

/**
 * Reads the header of a group that belongs to its file: magic, CRC under the file's salt, generation and position fit. A
 * flipped bit is put right in the area.
 *
 * @param position where in the file the bytes at `at` lie.
 * @param limit end of the file: a group that would pass it is none.
 */
export function decodeGroupHeader(
  area: ByteArea,
  at: number,
  file: Pick<JournalHeader, 'generation' | 'salt'>,
  position: number,
  limit: number,
): Decoded<GroupHeader> | undefined {
  const { view } = area
  if (!isNear(view.getUint32(at + GROUP_MAGIC_AT, true), GROUP_MAGIC)) return undefined
  if (!isNear(view.getUint32(at + 24, true), position)) return undefined
  const sum = checkSum(area, at + 4, at + GROUP_HEADER_SIZE, at, seedOf(file.salt))
  if (sum === 'bad') return undefined
  if (view.getUint32(at + GROUP_MAGIC_AT, true) !== GROUP_MAGIC || view.getUint32(at + 24, true) !== position)
    return undefined
  const length = view.getUint32(at + 8, true)
  if (getSafeU64(view, at + 16) !== file.generation) return undefined
  if (length < GROUP_HEADER_SIZE || length > limit - position) return undefined
  return {
    isMended: sum === 'mended',
    crc: view.getUint32(at, true),
    length,
    bodyCrc: view.getUint32(at + 12, true),
    generation: file.generation,
    position,
    flags: view.getUint32(at + 28, true),
    sessionSalt: view.getBigUint64(at + 32, true),
    sequence: getSafeU64(view, at + 40),
    previousCrc: view.getUint32(at + 48, true),
    batchCount: view.getUint32(at + 52, true),
    durableSequence: getSafeU64(view, at + 56),
    ordinal: view.getUint32(at + 64, true),
    boot: view.getUint32(at + 68, true),
    sessionFirst: getSafeU64(view, at + 72),
    wallUs: view.getBigUint64(at + 80, true),
    parent: view.getUint32(at + 88, true),
    bootHash: view.getUint32(at + 92, true),
  }
}
