import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JUMP, Watermark } from '../../../../src/log/core/watermark.ts'

test('a durable partition shows and acks what is synced, no more', () => {
  const ends = new Watermark(false, 0n)
  assert.equal(ends.give(3), 0n)
  assert.equal(ends.written(3n), false)
  assert.deepEqual([ends.writtenEnd, ends.visibleEnd, ends.durableEnd], [3n, 0n, 0n])
  ends.synced(3n)
  assert.deepEqual([ends.visibleEnd, ends.durableEnd], [3n, 3n])
})

test('a buffered partition shows and acks what is written', () => {
  const ends = new Watermark(true, 0n)
  ends.give(3)
  assert.equal(ends.written(3n), true)
  assert.deepEqual([ends.visibleEnd, ends.durableEnd], [3n, 0n])
})

test('not more than a jump is seen before it is synced', () => {
  const ends = new Watermark(true, 0n)
  ends.give(Number(JUMP))
  assert.equal(ends.written(JUMP), true)
  ends.give(1)
  assert.equal(ends.written(JUMP + 1n), false)
  assert.equal(ends.visibleEnd, JUMP)
  ends.synced(JUMP)
  assert.equal(ends.writtenBefore(JUMP + 1n), true)
})

test('after a jump nothing is shown before a batch above it is synced', () => {
  const ends = new Watermark(true, 10n)
  ends.jumpTo(20n)
  assert.equal(ends.give(1), 20n)
  assert.equal(ends.written(21n), false)
  ends.give(1)
  assert.equal(ends.written(22n), false)
  assert.equal(ends.visibleEnd, 10n)
  assert.ok(ends.isOwing)
  ends.synced(21n)
  assert.equal(ends.isOwing, false)
  assert.equal(ends.writtenBefore(22n), true)
  assert.equal(ends.visibleEnd, 22n)
})

test('dropping everything counts as synced and never goes back', () => {
  const ends = new Watermark(false, 0n)
  ends.give(5)
  ends.dropTo(5n)
  assert.deepEqual([ends.durableEnd, ends.visibleEnd, ends.nextOffset], [5n, 5n, 5n])
  ends.synced(3n)
  assert.equal(ends.durableEnd, 5n)
})
