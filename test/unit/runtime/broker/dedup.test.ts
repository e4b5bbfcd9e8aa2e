import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DedupWindow } from '../../../../src/runtime/broker/dedup.ts'

const LIMITS = { maxEntries: 3, expiryUs: 100n }
const at = (offset: bigint) => ({ partitionId: 0, offset })

test('an id that was seen is found with its place, until it expires', () => {
  const window = new DedupWindow(LIMITS)
  window.add(7n, at(1n), 1000n)
  assert.equal(window.find(7n, 1099n)?.offset, 1n)
  assert.equal(window.find(7n, 1100n), undefined)
  assert.equal(window.find(8n, 1000n), undefined)
})

test('the window keeps the newest ids, as many as it may', () => {
  const window = new DedupWindow(LIMITS)
  for (let id = 1n; id <= 5n; id++) window.add(id, at(id), 1000n)
  assert.equal(window.size, 3)
  assert.deepEqual(
    [1n, 2n, 3n, 4n, 5n].map((id) => window.find(id, 1000n) !== undefined),
    [false, false, true, true, true],
  )
})

test('old ids leave as new ones come, so an idle topic holds nothing it does not need', () => {
  const window = new DedupWindow(LIMITS)
  window.add(1n, at(1n), 1000n)
  window.add(2n, at(2n), 1100n)
  assert.equal(window.size, 1)
})

test('an id that was not stored after all is new again', () => {
  const window = new DedupWindow(LIMITS)
  window.add(1n, at(1n), 1000n)
  window.forget(1n)
  assert.equal(window.find(1n, 1000n), undefined)
})

test('a smaller window lets the oldest go at once', () => {
  const window = new DedupWindow(LIMITS)
  for (let id = 1n; id <= 3n; id++) window.add(id, at(id), 1000n)
  window.resize({ maxEntries: 1, expiryUs: 100n })
  assert.equal(window.size, 1)
  assert.equal(window.find(3n, 1000n)?.offset, 3n)
})
