import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  BATCH_FLAG,
  BATCH_HEADER_SIZE,
  BATCH_KIND,
  batchEndAt,
  batchSize,
  batchSizeAt,
  decodeBatchHeader,
  decodeExternal,
  decodeTag,
  encodeBatchHeader,
  encodeExternal,
  encodeTag,
  isBatchHeaderIntact,
  sealBatchHeader,
  stripBatchHeader,
} from '../../../../src/log/core/batch-header.ts'
import { createArea } from '../../../../src/log/core/byte-area.ts'

const FIELDS = {
  bodyCrc: 0x11223344,
  bodySize: 5,
  count: 2,
  baseOffset: 0x0102030405n,
  appendTimeUs: 1_700_000_000_000_000n,
  baseOriginUs: 1_699_999_999_999_999n,
  key: 7,
  kind: BATCH_KIND.data,
  flags: BATCH_FLAG.isBuffered | BATCH_FLAG.isClockTrusted,
}

test('size and end of a batch are told without the rest of its header, unless it is cut', () => {
  const area = createArea(batchSize(FIELDS.bodySize))
  encodeBatchHeader(area, 0, FIELDS, FIELDS.bodyCrc, FIELDS.bodySize)
  assert.equal(batchSizeAt(area, 0), area.bytes.length)
  assert.equal(batchEndAt(area, 0), 0x0102030407)
  const cut = { ...area, bytes: area.bytes.subarray(0, BATCH_HEADER_SIZE + FIELDS.bodySize - 1) }
  assert.equal(batchSizeAt(cut, 0), undefined)
  assert.equal(batchSizeAt({ ...area, bytes: area.bytes.subarray(0, BATCH_HEADER_SIZE - 1) }, 0), undefined)
})

test('a batch header has the documented bytes', () => {
  const area = createArea(BATCH_HEADER_SIZE)
  encodeBatchHeader(area, 0, FIELDS, FIELDS.bodyCrc, FIELDS.bodySize)
  sealBatchHeader(area, 0, 3, 0xdeadbeef)
  assert.equal(
    area.bytes.toHex(),
    '49eb4277443322110500000002000000050403020100000000401e18240a0600ff3f1e18240a06000700000000050300',
  )
})

test('a header reads as it was written', () => {
  const area = createArea(100)
  encodeBatchHeader(area, 8, FIELDS, FIELDS.bodyCrc, FIELDS.bodySize)
  sealBatchHeader(area, 8, 9, 1)
  assert.ok(isBatchHeaderIntact(area, 8, 1))
  assert.deepEqual(decodeBatchHeader(area, 8, 100), { ...FIELDS, index: 9 })
})

test('a header of another session does not pass', () => {
  const area = createArea(BATCH_HEADER_SIZE)
  encodeBatchHeader(area, 0, FIELDS, FIELDS.bodyCrc, FIELDS.bodySize)
  sealBatchHeader(area, 0, 0, 1)
  assert.equal(isBatchHeaderIntact(area, 0, 2), false)
})

test('every flipped bit of a header is noticed', () => {
  const area = createArea(BATCH_HEADER_SIZE)
  encodeBatchHeader(area, 0, FIELDS, FIELDS.bodyCrc, FIELDS.bodySize)
  sealBatchHeader(area, 0, 0, 1)
  for (let bit = 0; bit < BATCH_HEADER_SIZE * 8; bit++) {
    const copy = createArea(BATCH_HEADER_SIZE)
    copy.bytes.set(area.bytes)
    copy.bytes[bit >> 3] = (copy.bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    assert.equal(isBatchHeaderIntact(copy, 0, 1), false, `bit ${bit}`)
  }
})

test('a body longer than what is there is refused before anything is read', () => {
  const area = createArea(60)
  encodeBatchHeader(area, 0, FIELDS, FIELDS.bodyCrc, 13)
  assert.equal(decodeBatchHeader(area, 0, 60), undefined)
  assert.equal(decodeBatchHeader(area, 0, BATCH_HEADER_SIZE - 1), undefined)
})

test('a batch takes a multiple of eight bytes', () => {
  assert.deepEqual([0, 1, 8, 9].map(batchSize), [48, 56, 56, 64])
})

test('a stripped header holds no checksums', () => {
  const area = createArea(BATCH_HEADER_SIZE)
  encodeBatchHeader(area, 0, FIELDS, FIELDS.bodyCrc, FIELDS.bodySize)
  sealBatchHeader(area, 0, 9, 1)
  stripBatchHeader(area, 0)
  assert.deepEqual(decodeBatchHeader(area, 0, 60 + BATCH_HEADER_SIZE), { ...FIELDS, bodyCrc: 0, index: 0 })
})

test('a tag reads as it was written, and no shorter part of it does', () => {
  const tag = { device: 3, epoch: 4_000_000_000, lane: 1, firstSequence: 2 ** 40, sequenceCount: 300 }
  const bytes = new Uint8Array(64)
  const end = encodeTag(bytes, 2, tag)
  assert.deepEqual(decodeTag(bytes, 2, end), { tag, end })
  for (let cut = 2; cut < end; cut++) assert.equal(decodeTag(bytes, 2, cut), undefined)
})

test('a reference to a file reads as it was written', () => {
  const area = createArea(16)
  encodeExternal(area, 0, 2 ** 40 + 1, 64_000_000)
  assert.deepEqual(decodeExternal(area, 0), { runNumber: 2 ** 40 + 1, fileSize: 64_000_000 })
})
