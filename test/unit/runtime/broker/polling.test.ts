import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerLimit, currentOffset, startOffset } from '../../../../src/runtime/broker/polling.ts'
import { GIB, KIB, MIB } from '../../../../src/setting.ts'

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

test('an answer takes a share of the memory where nobody says, but never less than 8 MiB', () => {
  assert.equal(answerLimit('classic', 'auto', 256 * MIB), 8 * MIB)
  assert.equal(answerLimit('classic', 'auto', 4 * GIB), 64 * MIB)
  assert.equal(answerLimit('classic', 'auto', 64 * GIB), 128 * MIB)
  assert.equal(answerLimit('classic', 64 * KIB, 64 * GIB), 64 * KIB)
})

test('an answer is never larger than what its carrier takes', () => {
  assert.equal(answerLimit('vsr', 'auto', 64 * GIB), 56 * MIB)
  assert.equal(answerLimit('http', 'auto', 64 * GIB), 8 * MIB)
  assert.equal(answerLimit('edge', 100 * MIB, GIB), 8 * MIB)
  assert.equal(answerLimit('vsr', 100 * MIB, GIB), 56 * MIB)
})
