import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Holes, MAX_HOLES } from '../../../../src/log/core/holes.ts'

test('a hole is told once, and ranges that touch become one where their reason is one', () => {
  const holes = new Holes()
  assert.equal(holes.add({ from: 5n, end: 8n, reason: 'jump' }), true)
  assert.equal(holes.add({ from: 6n, end: 7n, reason: 'damage' }), false)
  assert.equal(holes.add({ from: 7n, end: 9n, reason: 'damage' }), true)
  assert.equal(holes.add({ from: 9n, end: 10n, reason: 'damage' }), true)
  assert.deepEqual(holes.list, [
    { from: 5n, end: 8n, reason: 'jump' },
    { from: 8n, end: 10n, reason: 'damage' },
  ])
  assert.equal(holes.countFrom(6n), 4)
})

test('a hole over others counts for what they leave of it', () => {
  const holes = new Holes()
  holes.add({ from: 3n, end: 5n, reason: 'damage' })
  holes.add({ from: 7n, end: 8n, reason: 'damage' })
  assert.equal(holes.add({ from: 0n, end: 10n, reason: 'jump' }), true)
  assert.equal(holes.countFrom(0n), 10)
  assert.equal(holes.list.length, 5)
})

test('an empty range is none', () => {
  assert.equal(new Holes().add({ from: 5n, end: 5n, reason: 'damage' }), false)
})

test('what was dropped is no hole any more', () => {
  const holes = new Holes()
  holes.add({ from: 1n, end: 3n, reason: 'damage' })
  holes.add({ from: 5n, end: 9n, reason: 'damage' })
  holes.dropBelow(6n)
  assert.deepEqual(holes.list, [{ from: 6n, end: 9n, reason: 'damage' }])
})

test('a thousand holes are kept as a bounded list that still covers them', () => {
  const holes = new Holes()
  for (let at = 0n; at < 1000n; at++) holes.add({ from: at * 10n, end: at * 10n + 1n, reason: 'damage' })
  assert.ok(holes.list.length <= MAX_HOLES)
  assert.equal(holes.countFrom(0n), 1000, 'a range that was merged counts what is missing in it')
  assert.equal(holes.list[0]?.from, 0n)
  assert.equal(holes.list.at(-1)?.end, 9991n)
})
