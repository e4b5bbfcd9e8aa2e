import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Moment } from '../../../../../src/runtime/device/core/exchange.ts'
import { LaneRates } from '../../../../../src/runtime/device/core/lane-rates.ts'

const LIVE = 1
const at = (monotonicMs: number): Moment => ({ monotonicMs, wallUs: 0n, isWallTrusted: true, accuracyMs: 0 })

test('what is refused for its bytes costs no readings, and the wait is that of the slower of the two', () => {
  const rates = new LaneRates({ readingsPerSecond: 10, bytesPerSecond: 1000 }, 0)
  assert.equal(rates.waitMs(LIVE, 1, 2000, at(0)), 0)
  for (let attempt = 0; attempt < 100; attempt++) assert.equal(rates.waitMs(LIVE, 10, 500, at(0)), 500)
  assert.equal(rates.waitMs(LIVE, 10, 500, at(500)), 0)
  assert.equal(rates.waitMs(LIVE, 20, 100, at(500)), 1000)
})
