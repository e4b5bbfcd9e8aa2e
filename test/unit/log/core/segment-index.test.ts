import assert from 'node:assert/strict'
import { test } from 'node:test'
import { INDEX_ENTRY_SIZE, SegmentIndex } from '../../../../src/log/core/segment-index.ts'

/** Blocks of ten records each, a hundred bytes and five microseconds apart. */
function indexOfBlocks(count: number): SegmentIndex {
  const index = new SegmentIndex()
  for (let block = 0; block < count; block++) {
    const firstTimeUs = BigInt(5 * block)
    index.push({ baseOffset: BigInt(10 * block), firstTimeUs, position: 64 + 100 * block, recordCount: 10 })
  }
  return index
}

test('an index gives its entries back, from what is stored of it as well', () => {
  const index = indexOfBlocks(1000)
  assert.equal(index.count, 1000)
  assert.equal(index.recordCount, 10_000)
  assert.equal(index.bytesView.length, 1000 * INDEX_ENTRY_SIZE)
  const read = new SegmentIndex(index.bytesView.slice())
  for (const number of [0, 1, 500, 999]) {
    const entry = { baseOffset: BigInt(10 * number), firstTimeUs: BigInt(5 * number), position: 64 + 100 * number }
    assert.deepEqual(index.entry(number), { ...entry, recordCount: 10 })
    assert.deepEqual(read.entry(number), index.entry(number))
  }
  assert.deepEqual([index.entry(-1), index.entry(1000)], [undefined, undefined])
})

test('an index that was read can grow', () => {
  const index = new SegmentIndex(indexOfBlocks(3).bytesView.slice())
  index.push({ baseOffset: 30n, firstTimeUs: 15n, position: 364, recordCount: 10 })
  assert.deepEqual(index.bytesView, indexOfBlocks(4).bytesView)
})

test('the search tells how many blocks begin up to an offset, and before a time', () => {
  const index = indexOfBlocks(100)
  for (let block = 0; block < 100; block++) {
    assert.equal(index.countUpTo(BigInt(10 * block)), block + 1)
    assert.equal(index.countUpTo(BigInt(10 * block + 9)), block + 1)
    assert.equal(index.countBefore(BigInt(5 * block)), block)
    assert.equal(index.countBefore(BigInt(5 * block + 1)), block + 1)
  }
  assert.equal(index.countUpTo(2n ** 64n - 1n), 100)
  assert.equal(new SegmentIndex().countUpTo(5n), 0)
})
