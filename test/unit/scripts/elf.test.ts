import assert from 'node:assert/strict'
import { test } from 'node:test'
import { misalignedSegments, PAGE_SIZE_MAX, parseSegments, withMappedNote } from '../../../scripts/executable/elf.ts'

const TABLE = 64
const ENTRY = 56
const LOAD = 1
const NOTE = 4
const TABLE_ITSELF = 6

interface Entry {
  readonly type: number
  readonly position?: number
  readonly address?: number
  readonly size?: number
}

/** The smallest file of that kind: a header, a table, and some bytes. */
function executableOf(entries: readonly Entry[], size = 0x3000): Buffer {
  const bytes = Buffer.alloc(size)
  bytes.writeUInt32BE(0x7f454c46, 0)
  bytes.writeUInt16BE(0x0201, 4)
  bytes.writeBigUInt64LE(BigInt(TABLE), 32)
  bytes.writeUInt16LE(entries.length, 56)
  entries.forEach(({ type, position = 0, address = 0, size: length = 0 }, index) => {
    const at = TABLE + index * ENTRY
    bytes.writeUInt32LE(type, at)
    bytes.writeBigUInt64LE(BigInt(position), at + 8)
    bytes.writeBigUInt64LE(BigInt(address), at + 16)
    bytes.writeBigUInt64LE(BigInt(length), at + 32)
    bytes.writeBigUInt64LE(BigInt(length), at + 40)
  })
  return bytes
}

const plain = executableOf([
  { type: TABLE_ITSELF, position: TABLE, address: 0x400040, size: 4 * ENTRY },
  { type: LOAD, position: 0, address: 0x400000, size: 0x2000 },
  { type: LOAD, position: 0x2000, address: 0x412000, size: 0x1000 },
  { type: NOTE, position: 0x200, address: 0x400200, size: 0x20 },
])

test('a note is added at a boundary that every page size shares, and nothing else moves', () => {
  const note = Buffer.from('the note')
  const result = withMappedNote(plain, note)
  const segments = parseSegments(result)
  assert.deepEqual(
    segments.map(({ type, position, address }) => [type, position, address]),
    [
      [LOAD, 0, 0x400000],
      [LOAD, 0x2000, 0x412000],
      [LOAD, 0x10000, 0x420000],
      [NOTE, 0x10000, 0x420000],
    ],
  )
  assert.deepEqual(result.subarray(0x10000), note)
  assert.deepEqual(result.subarray(TABLE + 4 * ENTRY, plain.length), plain.subarray(TABLE + 4 * ENTRY))
  assert.deepEqual(misalignedSegments(result, PAGE_SIZE_MAX), [])
})

test('a segment that lies at another place in its page than in memory is found', () => {
  const bytes = executableOf([{ type: LOAD, position: 0x1000, address: 0x402000, size: 0x100 }])
  assert.deepEqual(misalignedSegments(bytes, 0x1000), [])
  assert.deepEqual(misalignedSegments(bytes, PAGE_SIZE_MAX), ['position 0x1000 at address 0x402000'])
})

test('a table without a slot to give is refused', () => {
  const withoutTable = executableOf([
    { type: LOAD, position: 0, address: 0x400000, size: 0x1000 },
    { type: NOTE, position: 0x200, address: 0x400200, size: 0x20 },
  ])
  assert.throws(() => withMappedNote(withoutTable, Buffer.from('note')), /no slot/)
})

test('a file of another kind is refused', () => {
  assert.throws(() => parseSegments(Buffer.alloc(100)), /not an ELF file/)
  assert.throws(() => parseSegments(Buffer.alloc(3)), /not an ELF file/)
})
