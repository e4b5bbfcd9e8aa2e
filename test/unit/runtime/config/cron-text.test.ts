import assert from 'node:assert/strict'
import { test } from 'node:test'
import { validate } from 'node-cron'
import { cronEvery } from '../../../../src/runtime/config/cron-text.ts'

const [SECOND_MS, MINUTE_MS, HOUR_MS] = [1000, 60_000, 3_600_000]

test('an interval becomes the cron expression that comes round as often, or a little more often', () => {
  const cases: readonly (readonly [number, string])[] = [
    [100, '* * * * * *'],
    [SECOND_MS, '* * * * * *'],
    [7 * SECOND_MS, '*/6 * * * * *'],
    [10 * SECOND_MS, '*/10 * * * * *'],
    [MINUTE_MS, '* * * * *'],
    [90 * SECOND_MS, '* * * * *'],
    [5 * MINUTE_MS, '*/5 * * * *'],
    [50 * MINUTE_MS, '*/30 * * * *'],
    [HOUR_MS, '0 * * * *'],
    [7 * HOUR_MS, '0 */6 * * *'],
    [30 * HOUR_MS, '0 0 * * *'],
  ]
  for (const [everyMs, expected] of cases) {
    assert.equal(cronEvery(everyMs), expected)
    assert.ok(validate(expected))
  }
})
