/** Durations and sizes: what is taken, what is refused, and where a unit is asked for. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  parseByteText,
  parseDurationText,
  parseDurationWithUnit,
  parseTimeSpan,
  UNLIMITED,
} from '../../../src/runtime/amount-text.ts'

test('durations and sizes are read as people write them', () => {
  assert.equal(parseDurationText('7 days'), 604_800_000_000n)
  assert.equal(parseDurationText('1h30m'), 5_400_000_000n)
  assert.equal(parseDurationText('never'), UNLIMITED)
  assert.equal(parseDurationText('12'), 12n)
  assert.equal(parseDurationText('1.5h'), 5_400_000_000n)
  assert.equal(parseDurationText('0.5 us'), undefined)
  assert.equal(parseDurationText('1 parsec'), undefined)
  assert.equal(parseDurationText(''), undefined)
  assert.equal(parseByteText('2 GiB'), 2_147_483_648n)
  assert.equal(parseByteText('1.5 kb'), 1500n)
  assert.equal(parseByteText('toString'), undefined)
  assert.equal(parseByteText('99999999999 tib'), undefined)
})

test('a duration that people write says its unit, but for 0', () => {
  assert.equal(parseDurationWithUnit('7 days'), 604_800_000_000n)
  assert.equal(parseDurationWithUnit('never'), UNLIMITED)
  assert.equal(parseDurationWithUnit('0'), 0n)
  for (const text of ['86400', '1', '']) assert.equal(parseDurationWithUnit(text), undefined, text)
  for (const text of ['never', '0', '86400', '1h 30']) assert.equal(parseTimeSpan(text), undefined, text)
})
