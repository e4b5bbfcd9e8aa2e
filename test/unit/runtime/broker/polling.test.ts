import assert from 'node:assert/strict'
import { test } from 'node:test'
import { currentOffset, startOffset } from '../../../../src/runtime/broker/polling.ts'

const RANGE = { logStartOffset: 10n, visibleEnd: 20n }

test('an offset below the oldest kept message starts there', () => {
  assert.equal(startOffset({ kind: 'offset', offset: 3n }, RANGE, 5), 10n)
  assert.equal(startOffset({ kind: 'offset', offset: 15n }, RANGE, 5), 15n)
  assert.equal(startOffset({ kind: 'offset', offset: 99n }, RANGE, 5), 99n)
})

test('first is the oldest kept message, last the newest so many', () => {
  assert.equal(startOffset({ kind: 'first' }, RANGE, 5), 10n)
  assert.equal(startOffset({ kind: 'last' }, RANGE, 5), 15n)
  assert.equal(startOffset({ kind: 'last' }, RANGE, 100), 10n)
})

test('next goes on after the stored offset, or begins with the oldest', () => {
  assert.equal(startOffset({ kind: 'next', storedOffset: 14n }, RANGE, 5), 15n)
  assert.equal(startOffset({ kind: 'next', storedOffset: 2n }, RANGE, 5), 10n)
  assert.equal(startOffset({ kind: 'next', storedOffset: undefined }, RANGE, 5), 10n)
})

test('the current offset is the newest one, and 0 for a partition that never had any', () => {
  assert.equal(currentOffset(RANGE), 19n)
  assert.equal(currentOffset({ logStartOffset: 0n, visibleEnd: 0n }), 0n)
})
