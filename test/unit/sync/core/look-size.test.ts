import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LookSize } from '../../../../src/sync/core/look-size.ts'

test('pages hold as many messages as are carried in a while, going by the largest seen', () => {
  const size = new LookSize(500)
  assert.equal(size.pageCount, 256)
  size.seen(1, 16 * 1024)
  assert.equal(size.pageCount, 16)
  size.seen(1, 8 * 1024 * 1024)
  assert.equal(size.pageCount, 1)
  assert.equal(size.expectedBytes(1), 8 * 1024 * 1024)
})

test('a look that comes too late asks for less, down to one message, which is then expected larger', () => {
  const size = new LookSize(500)
  size.timedOut(16)
  assert.deepEqual([size.pageCount, size.expectedBytes(1)], [8, 1024])
  for (const count of [8, 4, 2]) size.timedOut(count)
  assert.equal(size.pageCount, 1)
  for (let looks = 0; looks < 100; looks++) size.timedOut(1)
  assert.equal(size.expectedBytes(1), 64 * 1024 * 1024)
})

test('after a search what was seen stays expected, and pages grow again', () => {
  const size = new LookSize(500)
  size.tooLarge(500)
  for (let looks = 0; looks < 5; looks++) size.timedOut(1)
  size.seen(1, 4096)
  size.finished()
  assert.deepEqual([size.expectedBytes(1), size.pageCount], [4096, 64])
  size.finished()
  assert.equal(size.expectedBytes(1), 1024)
  assert.equal(size.pageCount, 256)
})
