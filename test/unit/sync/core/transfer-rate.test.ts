import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TransferRate } from '../../../../src/sync/core/transfer-rate.ts'

const SECOND_US = 1_000_000
const rateOf = () => new TransferRate({ usualBytesPerSecond: 32_000, maxUs: 60 * SECOND_US })

test('a send that never gets through in time is given longer each time, up to a minute', () => {
  const rate = rateOf()
  assert.equal(rate.timeUs(32_000), SECOND_US)
  rate.timedOut()
  assert.equal(rate.timeUs(32_000), 2 * SECOND_US)
  for (let sends = 0; sends < 100; sends++) rate.timedOut()
  assert.equal(rate.timeUs(32_000), 60 * SECOND_US)
  assert.equal(rate.timeUs(0), 0)
})

test('what takes longer than a minute at the usual rate is given that', () => {
  const rate = rateOf()
  for (let sends = 0; sends < 100; sends++) rate.timedOut()
  assert.equal(rate.timeUs(64_000 * 60), 120 * SECOND_US)
})

test('what gets through raises the rate to a part of what was seen, and never above the usual one', () => {
  const rate = rateOf()
  for (let sends = 0; sends < 4; sends++) rate.timedOut()
  rate.carried(16_000, SECOND_US)
  assert.equal(rate.timeUs(16_000), 4 * SECOND_US)
  rate.carried(1_000_000, SECOND_US)
  assert.equal(rate.timeUs(32_000), SECOND_US)
})

test('a small send, whose time is that of a round trip, tells nothing of large ones', () => {
  const rate = rateOf()
  rate.timedOut()
  rate.carried(1000, 1000)
  assert.equal(rate.timeUs(32_000), 2 * SECOND_US)
})
