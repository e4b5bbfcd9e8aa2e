import assert from 'node:assert/strict'
import { test } from 'node:test'
import { areaOf, type ByteArea, createArea } from '../../../../src/log/core/byte-area.ts'
import { crc32 } from '../../../../src/log/core/checksum.ts'
import {
  BLOCK_HEADER_SIZE,
  decodeBlockHeader,
  decodeSegmentHeader,
  decodeSegmentIndex,
  decodeSegmentTrailer,
  encodeBlockHeader,
  encodeSegmentHeader,
  encodeSegmentIndex,
  formatSegmentName,
  parseSegmentName,
  SEGMENT_HEADER_SIZE,
  SEGMENT_TRAILER_SIZE,
} from '../../../../src/log/core/segment-format.ts'
import { SegmentIndex } from '../../../../src/log/core/segment-index.ts'
import { bitsOf, flipped } from '../../../support/flipped-bits.ts'
import { indexOf } from '../../../support/segment-index.ts'

const SEGMENT = {
  version: 1,
  storeIdBytes: new Uint8Array(16).fill(3),
  key: 4,
  seed: 0xcafe,
  baseOffset: 1000n,
  runNumber: 12,
  createdAtUs: 1_700_000_000_000_000n,
  encryptionKeyId: 0,
}

const BLOCK = {
  storedSize: 100,
  bodyCrc: 0x01020304,
  rawSize: 400,
  batchCount: 5,
  codec: 1,
  flags: 0,
  baseOffset: 1000n,
  endOffset: 1010n,
  firstTimeUs: 5n,
  lastTimeUs: 6n,
  runNumber: 12,
  boot: 2,
  recordCount: 10,
  previousPosition: 0,
  position: 64,
}

test('a segment header has the documented bytes and reads back', () => {
  const area = createArea(SEGMENT_HEADER_SIZE)
  encodeSegmentHeader(area, 0, SEGMENT)
  assert.equal(
    area.bytes.toHex(),
    '454447530100000003030303030303030303030303030303' +
      '04000000feca0000e8030000000000000c0000000000000000401e18240a060000000000ffa5ccb0',
  )
  assert.deepEqual(decodeSegmentHeader(area), { ...SEGMENT, isMended: false })
})

test('a block header has the documented bytes and reads back', () => {
  const area = createArea(BLOCK_HEADER_SIZE)
  encodeBlockHeader(area, 0, BLOCK, SEGMENT.seed)
  assert.equal(
    area.bytes.toHex(),
    '1579068c4544474264000000040302019001000005000100e803000000000000f203000000000000' +
      '050000000000000006000000000000000c00000000000000020000000a0000000000000040000000',
  )
  assert.deepEqual(decodeBlockHeader(area, 0, SEGMENT.seed, 64, 244), { ...BLOCK, isMended: false })
})

test('of the headers of a file and a block, and of a trailer, one flipped bit is put right, two are damage', () => {
  const file = createArea(SEGMENT_HEADER_SIZE)
  encodeSegmentHeader(file, 0, SEGMENT)
  const block = createArea(BLOCK_HEADER_SIZE)
  encodeBlockHeader(block, 0, BLOCK, SEGMENT.seed)
  const trailer = areaOf(
    encodeSegmentIndex(new SegmentIndex(), { indexPosition: 500, lastTimeUs: 9n, seed: SEGMENT.seed }),
  )
  const decodes: [ByteArea, (area: ByteArea) => object | undefined][] = [
    [file, (area) => decodeSegmentHeader(area)],
    [block, (area) => decodeBlockHeader(area, 0, SEGMENT.seed, BLOCK.position, 244)],
    [trailer, (area) => decodeSegmentTrailer(area, SEGMENT.seed, 532)],
  ]
  for (const [sound, decode] of decodes) {
    const header = decode(sound)
    assert.ok(header)
    const mended = 'isMended' in header ? { ...header, isMended: true } : header
    for (const bit of bitsOf(sound)) {
      const area = flipped(sound, bit)
      assert.deepEqual(decode(area), mended, `bit ${bit}`)
      assert.deepEqual(area.bytes, sound.bytes)
      for (const other of bitsOf(sound)) {
        if (other !== bit) assert.equal(decode(flipped(flipped(sound, bit), other)), undefined)
      }
    }
  }
})

test('a block of another file, another place, or longer than the file is none', () => {
  const area = createArea(BLOCK_HEADER_SIZE)
  encodeBlockHeader(area, 0, BLOCK, SEGMENT.seed)
  assert.equal(decodeBlockHeader(area, 0, 1, 64, 244), undefined)
  assert.equal(decodeBlockHeader(area, 0, SEGMENT.seed, 72, 300), undefined)
  assert.equal(decodeBlockHeader(area, 0, SEGMENT.seed, 64, 243), undefined)
})

test('index and trailer read back, and a damaged index is refused', () => {
  const entries = [
    { baseOffset: 1000n, firstTimeUs: 5n, position: 64, recordCount: 10 },
    { baseOffset: 1010n, firstTimeUs: 9n, position: 248, recordCount: 1 },
  ]
  const bytes = encodeSegmentIndex(indexOf(entries), { indexPosition: 500, lastTimeUs: 9n, seed: 7 })
  const trailer = decodeSegmentTrailer(areaOf(bytes.slice(-SEGMENT_TRAILER_SIZE)), 7, 500 + bytes.length)
  assert.ok(trailer)
  assert.deepEqual([trailer.blockCount, trailer.recordCount, trailer.lastTimeUs], [2, 11, 9n])
  const index = bytes.slice(0, -SEGMENT_TRAILER_SIZE)
  const read = decodeSegmentIndex(index, trailer, crc32)
  assert.deepEqual([read?.entry(0), read?.entry(1), read?.entry(2)], [...entries, undefined])
  index[3] = 1
  assert.equal(decodeSegmentIndex(index, trailer, crc32), undefined)
  assert.equal(decodeSegmentTrailer(areaOf(bytes.slice(-SEGMENT_TRAILER_SIZE)), 7, 499 + bytes.length), undefined)
})

test('names sort by offset and read back; others are none', () => {
  const name = { baseOffset: 1234567n, runNumber: 9, isExternal: false }
  assert.equal(formatSegmentName(name), '00000000000001234567.9.seg')
  assert.deepEqual(parseSegmentName('00000000000001234567.9.seg'), name)
  assert.deepEqual(parseSegmentName('00000000000001234567.9.external'), { ...name, isExternal: true })
  for (const other of ['1.9.seg', '00000000000001234567.9.tmp', 'lost+found'])
    assert.equal(parseSegmentName(other), undefined)
})
