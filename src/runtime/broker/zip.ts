/**
 * Writes a ZIP archive in memory. Pure: compression and CRC come from the caller, so only the layout is here.
 *
 * Entry: local header (30 bytes) + name + data. After all entries the central directory: 46 bytes + name each, then the end
 * record of 22 bytes. No ZIP64: an archive is a diagnosis of some megabytes, and its entries are bounded before they come.
 */
import { assert } from '../../assert.ts'

export interface ZipEntry {
  /** Path with `/`, UTF-8. */
  readonly name: string
  /** As stored: already compressed when `method` says so. */
  readonly dataBytes: Uint8Array
  readonly rawSize: number
  /** CRC-32 of the data before compression. */
  readonly crc32: number
  readonly method: 'stored' | 'deflate'
}

const LOCAL_HEADER_SIZE = 30
const CENTRAL_HEADER_SIZE = 46
const END_RECORD_SIZE = 22
const MAX_ENTRIES = 0xff_ff
const MAX_ARCHIVE_BYTES = 0xff_ff_ff_ff
const METHOD = { stored: 0, deflate: 8 } as const
/** 2.0: the oldest reader that knows deflate. */
const VERSION = 20
/** Names are UTF-8. */
const FLAGS = 0x08_00

/** @param dosTime see `dosTimeOf`; one for all entries. */
export function encodeZip(entries: readonly ZipEntry[], dosTime: number): Uint8Array {
  const names = entries.map((entry) => new TextEncoder().encode(entry.name))
  const nameSize = names.reduce((sum, name) => sum + name.length, 0)
  const dataSize = entries.reduce((sum, entry) => sum + entry.dataBytes.length, 0)
  const directoryPosition = entries.length * LOCAL_HEADER_SIZE + nameSize + dataSize
  const directorySize = entries.length * CENTRAL_HEADER_SIZE + nameSize
  assert(entries.length <= MAX_ENTRIES && directoryPosition + directorySize <= MAX_ARCHIVE_BYTES, 'a ZIP fits 32 bits')

  const bytes = new Uint8Array(directoryPosition + directorySize + END_RECORD_SIZE)
  const view = new DataView(bytes.buffer)
  let position = 0
  let directoryEnd = directoryPosition
  for (const [index, entry] of entries.entries()) {
    const name = names[index] ?? new Uint8Array(0)
    const localPosition = position
    view.setUint32(position, 0x04_03_4b_50, true)
    writeFacts(view, position + 4, entry, name.length, dosTime)
    bytes.set(name, position + LOCAL_HEADER_SIZE)
    bytes.set(entry.dataBytes, position + LOCAL_HEADER_SIZE + name.length)
    position += LOCAL_HEADER_SIZE + name.length + entry.dataBytes.length

    view.setUint32(directoryEnd, 0x02_01_4b_50, true)
    view.setUint16(directoryEnd + 4, VERSION, true)
    writeFacts(view, directoryEnd + 6, entry, name.length, dosTime)
    view.setUint32(directoryEnd + 42, localPosition, true)
    bytes.set(name, directoryEnd + CENTRAL_HEADER_SIZE)
    directoryEnd += CENTRAL_HEADER_SIZE + name.length
  }
  view.setUint32(directoryEnd, 0x06_05_4b_50, true)
  view.setUint16(directoryEnd + 8, entries.length, true)
  view.setUint16(directoryEnd + 10, entries.length, true)
  view.setUint32(directoryEnd + 12, directorySize, true)
  view.setUint32(directoryEnd + 16, directoryPosition, true)
  return bytes
}

/** The 26 bytes that local and central header share: version, flags, method, time, CRC, sizes, name length. */
function writeFacts(view: DataView, position: number, entry: ZipEntry, nameSize: number, dosTime: number): void {
  view.setUint16(position, VERSION, true)
  view.setUint16(position + 2, FLAGS, true)
  view.setUint16(position + 4, METHOD[entry.method], true)
  view.setUint32(position + 6, dosTime, true)
  view.setUint32(position + 10, entry.crc32, true)
  view.setUint32(position + 14, entry.dataBytes.length, true)
  view.setUint32(position + 18, entry.rawSize, true)
  view.setUint16(position + 22, nameSize, true)
}

/** Time and date of MS-DOS in one u32: two-second steps, years from 1980 on. */
export function dosTimeOf(wallUs: bigint): number {
  const date = new Date(Number(wallUs / 1000n))
  const year = Math.max(1980, date.getUTCFullYear())
  const day = ((year - 1980) << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate()
  const time = (date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1)
  return day * 0x1_00_00 + time
}
