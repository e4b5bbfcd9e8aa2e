/**
 * The little of ELF (64 bit, little-endian) that building an executable needs: its program headers, and a note put into a
 * file so that kernels with pages of up to 64 KiB can map it.
 */

/** Largest page size of the arm64 kernels that gateways run: 4, 16 (Raspberry Pi 5) or 64 KiB. */
export const PAGE_SIZE_MAX = 0x10000

export const SEGMENT_LOAD = 1
export const SEGMENT_NOTE = 4
const SEGMENT_PROGRAM_HEADERS = 6
const READABLE = 4

/** One entry of the program header table. Positions, addresses and sizes in bytes. */
export interface Segment {
  readonly type: number
  readonly flags: number
  readonly position: number
  readonly address: number
  readonly fileSize: number
  readonly memorySize: number
  readonly headerBytes: Uint8Array
}

const HEADER_SIZE = 56
const MAGIC = 0x7f454c46
const CLASS_64_LITTLE = 0x0201

/** @throws {Error} when the bytes are no 64 bit little-endian ELF file. */
export function parseSegments(file: Buffer): Segment[] {
  if (file.length < 64 || file.readUInt32BE(0) !== MAGIC || file.readUInt16BE(4) !== CLASS_64_LITTLE) {
    throw new Error('not an ELF file of 64 bit, little-endian')
  }
  const table = Number(file.readBigUInt64LE(32))
  const count = file.readUInt16LE(56)
  return Array.from({ length: count }, (_, index) => {
    const header = file.subarray(table + index * HEADER_SIZE, table + (index + 1) * HEADER_SIZE)
    return {
      type: header.readUInt32LE(0),
      flags: header.readUInt32LE(4),
      position: Number(header.readBigUInt64LE(8)),
      address: Number(header.readBigUInt64LE(16)),
      fileSize: Number(header.readBigUInt64LE(32)),
      memorySize: Number(header.readBigUInt64LE(40)),
      headerBytes: Buffer.from(header),
    }
  })
}

/** @returns what keeps a kernel of such pages from mapping the file; empty when nothing does. */
export function misalignedSegments(file: Buffer, pageSize: number): string[] {
  return parseSegments(file)
    .filter((segment) => segment.type === SEGMENT_LOAD)
    .filter((segment) => segment.position % pageSize !== segment.address % pageSize)
    .map((segment) => `position 0x${segment.position.toString(16)} at address 0x${segment.address.toString(16)}`)
}

/**
 * Appends `note` to an executable as a note segment that is mapped at a 64 KiB boundary.
 *
 * The program headers must not grow, since code follows them: the slot that describes the table itself, which nothing
 * needs in an executable at fixed addresses, becomes the new load segment, and the slots of the linker's notes (build id)
 * become the new note.
 *
 * @throws {Error} when the table has no slot to give.
 */
export function withMappedNote(executable: Buffer, note: Uint8Array): Buffer {
  const segments = parseSegments(executable)
  const roundUp = (value: number): number => Math.ceil(value / PAGE_SIZE_MAX) * PAGE_SIZE_MAX
  const position = roundUp(executable.length)
  const loads = segments.filter((segment) => segment.type === SEGMENT_LOAD)
  const address = roundUp(Math.max(...loads.map((segment) => segment.address + segment.memorySize)))

  const header = (type: number, alignment: number): Uint8Array => {
    const bytes = Buffer.alloc(HEADER_SIZE)
    bytes.writeUInt32LE(type, 0)
    bytes.writeUInt32LE(READABLE, 4)
    const words = [position, address, address, note.length, note.length, alignment]
    words.forEach((word, index) => {
      bytes.writeBigUInt64LE(BigInt(word), 8 + 8 * index)
    })
    return bytes
  }
  const kept = segments.filter((segment) => segment.type !== SEGMENT_PROGRAM_HEADERS)
  const lastLoad = kept.map((segment) => segment.type).lastIndexOf(SEGMENT_LOAD)
  const table = kept.map((segment) => (segment.type === SEGMENT_NOTE ? header(SEGMENT_NOTE, 4) : segment.headerBytes))
  // Load segments stand in the order of their addresses: the kernel takes the last one's end as the end of the program.
  table.splice(lastLoad + 1, 0, header(SEGMENT_LOAD, PAGE_SIZE_MAX))
  if (table.length !== segments.length || !segments.some((segment) => segment.type === SEGMENT_NOTE)) {
    throw new Error('the program headers have no slot for another segment')
  }
  const result = Buffer.concat([executable, Buffer.alloc(position - executable.length), note])
  Buffer.concat(table).copy(result, Number(executable.readBigUInt64LE(32)))
  return result
}
