import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BLOCK_RAW_SIZE } from '../../../../src/log/core/segment-format.ts'
import { BlockCache } from '../../../../src/log/io/block-cache.ts'
import { Segment } from '../../../../src/log/io/segment.ts'

const segmentAt = (baseOffset: bigint): Segment => new Segment({ directory: 'p', baseOffset, runNumber: 1, seed: 1 })
const FIRST = segmentAt(0n)
const SECOND = segmentAt(100n)

test('the block that was not used for longest goes first', () => {
  const cache = new BlockCache(2)
  const blocks = [1, 2, 3].map((size) => new Uint8Array(size))
  cache.add(FIRST, 0, blocks[0] as Uint8Array)
  cache.add(FIRST, 8, blocks[1] as Uint8Array)
  assert.equal(cache.find(FIRST, 0), blocks[0])
  cache.add(SECOND, 0, blocks[2] as Uint8Array)
  assert.equal(cache.find(FIRST, 8), undefined)
  assert.equal(cache.find(FIRST, 0), blocks[0])
  assert.equal(cache.find(SECOND, 0), blocks[2])
  assert.equal(cache.sizeBytes, 4)
})

test('one large block takes the place of as many as it is large, and one that is too large is not kept', () => {
  const cache = new BlockCache(4)
  for (let position = 0; position < 4; position++) cache.add(FIRST, position, new Uint8Array(BLOCK_RAW_SIZE))
  cache.add(SECOND, 0, new Uint8Array(3 * BLOCK_RAW_SIZE))
  assert.deepEqual(
    [0, 1, 2, 3].filter((position) => cache.find(FIRST, position) !== undefined),
    [3],
  )
  assert.equal(cache.sizeBytes, cache.maxSizeBytes)
  cache.add(SECOND, 8, new Uint8Array(cache.maxSizeBytes + 1))
  assert.equal(cache.find(SECOND, 8), undefined)
  assert.notEqual(cache.find(SECOND, 0), undefined)
})

test('a file that is gone takes its blocks along', () => {
  const cache = new BlockCache(4)
  cache.add(FIRST, 0, new Uint8Array(1))
  cache.add(SECOND, 0, new Uint8Array(2))
  cache.forget(FIRST.path)
  assert.equal(cache.find(FIRST, 0), undefined)
  assert.notEqual(cache.find(SECOND, 0), undefined)
  assert.equal(cache.sizeBytes, 2)
  cache.clear()
  assert.equal(cache.sizeBytes, 0)
})
