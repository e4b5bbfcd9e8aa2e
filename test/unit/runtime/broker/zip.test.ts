import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib'
import { dosTimeOf, encodeZip, type ZipEntry } from '../../../../src/runtime/broker/zip.ts'

const raw = Buffer.from('a reading, '.repeat(50))

function entry(name: string, method: ZipEntry['method']): ZipEntry {
  return {
    name,
    dataBytes: method === 'stored' ? raw : deflateRawSync(raw),
    rawSize: raw.length,
    crc32: crc32(raw),
    method,
  }
}

/** Reads an archive from its end, as programs do. */
function entriesOf(zip: Buffer): { name: string; data: Buffer; crc: number }[] {
  const end = zip.length - 22
  assert.equal(zip.readUInt32LE(end), 0x06054b50)
  let at = zip.readUInt32LE(end + 16)
  return Array.from({ length: zip.readUInt16LE(end + 10) }, () => {
    assert.equal(zip.readUInt32LE(at), 0x02014b50)
    const [method, crc, size, rawSize] = [
      zip.readUInt16LE(at + 10),
      zip.readUInt32LE(at + 16),
      zip.readUInt32LE(at + 20),
      zip.readUInt32LE(at + 24),
    ]
    const nameSize = zip.readUInt16LE(at + 28)
    const name = zip.subarray(at + 46, at + 46 + nameSize).toString()
    const local = zip.readUInt32LE(at + 42)
    assert.equal(zip.readUInt32LE(local), 0x04034b50)
    assert.deepEqual(zip.subarray(local + 4, local + 28), zip.subarray(at + 6, at + 30))
    const stored = zip.subarray(local + 30 + nameSize, local + 30 + nameSize + size)
    at += 46 + nameSize
    const data = method === 8 ? inflateRawSync(stored) : stored
    assert.equal(data.length, rawSize)
    return { name, data, crc }
  })
}

test('stored and compressed entries come out of the archive as they went in', () => {
  const zip = Buffer.from(encodeZip([entry('a.txt', 'stored'), entry('folder/ä.txt', 'deflate')], dosTimeOf(0n)))
  const entries = entriesOf(zip)
  assert.deepEqual(
    entries.map(({ name }) => name),
    ['a.txt', 'folder/ä.txt'],
  )
  for (const { data, crc } of entries) {
    assert.deepEqual(data, raw)
    assert.equal(crc, crc32(data))
  }
})

test('an archive without entries is an archive', () => {
  assert.deepEqual(entriesOf(Buffer.from(encodeZip([], 0))), [])
})

test('times have two seconds and begin in 1980', () => {
  assert.equal(dosTimeOf(0n) >>> 25, 0)
  const date = BigInt(Date.UTC(2026, 10, 29, 12, 34, 56)) * 1000n
  assert.equal(dosTimeOf(date), ((46 << 25) | (11 << 21) | (29 << 16) | (12 << 11) | (34 << 5) | 28) >>> 0)
})
