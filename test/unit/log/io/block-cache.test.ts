import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BlockCache } from '../../../../src/log/io/block-cache.ts'
import { Segment } from '../../../../src/log/io/segment.ts'

const segmentAt = (baseOffset: bigint): Segment => new Segment({ directory: 'p', baseOffset, runNumber: 1, seed: 1 })
const FIRST = segmentAt(0n)
const SECOND = segmentAt(100n)
const SIZE = 1024

const filled = (size: number, value: number): Uint8Array => new Uint8Array(size).fill(value)

/** Puts a block of that size and filling in. @returns where it lies. */
function put(cache: BlockCache, segment: Segment, position: number, size: number, value: number, isAhead = false) {
  const place = cache.claim(size)?.fill(value)
  if (place !== undefined) cache.add(segment, position, place, isAhead)
  return place
}

test('a block is found as it was added, in the memory of the cache', () => {
  const memory = new Uint8Array(SIZE)
  const cache = new BlockCache(memory)
  const added = put(cache, FIRST, 8, 100, 7)
  assert.deepEqual(cache.find(FIRST, 8), filled(100, 7))
  assert.equal(cache.find(FIRST, 8), added)
  assert.equal(added?.buffer, memory.buffer)
  assert.equal(cache.find(FIRST, 16), undefined)
  assert.equal(cache.find(SECOND, 8), undefined)
})

test('a new block takes the place of the oldest ones that it covers, and no other', () => {
  const cache = new BlockCache(new Uint8Array(SIZE))
  for (let position = 0; position < 4; position++) put(cache, FIRST, position, SIZE / 4, position)
  put(cache, SECOND, 0, SIZE / 2, 9)
  const kept = [0, 1, 2, 3].filter((position) => cache.find(FIRST, position) !== undefined)
  assert.deepEqual(kept, [2, 3])
  assert.deepEqual(cache.find(FIRST, 3), filled(SIZE / 4, 3))
  assert.deepEqual(cache.find(SECOND, 0), filled(SIZE / 2, 9))
  assert.equal(cache.sizeBytes, SIZE)
})

test('a block that does not fit behind the last one begins at the front again', () => {
  const cache = new BlockCache(new Uint8Array(SIZE))
  for (let position = 0; position < 3; position++) put(cache, FIRST, position, 400, position)
  assert.equal(cache.find(FIRST, 0), undefined)
  assert.deepEqual(cache.find(FIRST, 1), filled(400, 1))
  assert.deepEqual(cache.find(FIRST, 2), filled(400, 2))
})

test('a block of more than half the memory is not kept', () => {
  const cache = new BlockCache(new Uint8Array(SIZE))
  put(cache, FIRST, 0, 100, 1)
  assert.equal(put(cache, SECOND, 8, SIZE / 2 + 1, 2), undefined)
  assert.equal(cache.find(SECOND, 8), undefined)
  assert.deepEqual(cache.find(FIRST, 0), filled(100, 1))
})

test('a file that is gone takes its blocks along', () => {
  const cache = new BlockCache(new Uint8Array(SIZE))
  put(cache, FIRST, 0, 1, 1)
  put(cache, SECOND, 0, 2, 2)
  cache.forget(FIRST.path)
  assert.equal(cache.find(FIRST, 0), undefined)
  assert.notEqual(cache.find(SECOND, 0), undefined)
  assert.equal(cache.sizeBytes, 2)
  cache.clear()
  assert.equal(cache.sizeBytes, 0)
})

test('reading ahead is worth less once a block goes that nobody has read, and more with each that is read', () => {
  const cache = new BlockCache(new Uint8Array(SIZE), 3)
  assert.equal(cache.aheadCount, 3)
  put(cache, FIRST, 0, SIZE / 2, 1, true)
  put(cache, FIRST, 1, SIZE / 2, 2)
  assert.equal(cache.aheadCount, 3)
  put(cache, FIRST, 2, SIZE / 2, 3)
  assert.equal(cache.aheadCount, 1)
  put(cache, FIRST, 3, SIZE / 2, 4, true)
  assert.equal(cache.has(FIRST, 3), true)
  assert.equal(cache.aheadCount, 1, 'to look whether it is there is not to read it')
  assert.notEqual(cache.find(FIRST, 3), undefined)
  assert.notEqual(cache.find(FIRST, 3), undefined)
  assert.equal(cache.aheadCount, 2, 'read twice, it counts once')
})
