import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { connectionLimitsOf, TCP_SETTINGS } from '../../../../src/runtime/server/defaults.ts'
import { leastFillRate, type Standing, TimeLimits } from '../../../../src/runtime/server/time-limits.ts'
import { defaultsOf } from '../../../../src/setting.ts'

const LIMITS = connectionLimitsOf(defaultsOf(TCP_SETTINGS))
const QUIET: Standing = {
  hasAsked: true,
  isOutputFull: false,
  unsentBytes: 0,
  unacknowledgedBytes: null,
  isMidRequest: false,
  filling: null,
  isShareAwaited: false,
  mayBeRefused: false,
}
const seconds = (count: number): number => count * 1_000_000

describe('a connection that has ended', () => {
  test('waits a second for its peer, and longer while its last answer is taken', () => {
    const times = new TimeLimits(LIMITS, false, 0)
    times.ended(seconds(1))
    for (let second = 2; second < 100; second++) {
      const standing = { ...QUIET, unsentBytes: 200 - second }
      assert.equal(times.check(standing, seconds(second)), null)
    }
    assert.equal(times.check(QUIET, seconds(100)), null)
    assert.equal(times.check(QUIET, seconds(101)), null)
    assert.equal(times.check(QUIET, seconds(102)), 'end')
  })

  test('is given up when nothing more of its last answer is taken', () => {
    const times = new TimeLimits(LIMITS, false, 0)
    times.ended(0)
    assert.equal(times.check({ ...QUIET, unsentBytes: 5 }, seconds(1)), null)
    assert.equal(times.check({ ...QUIET, unsentBytes: 5 }, seconds(31)), null)
    assert.equal(times.check({ ...QUIET, unsentBytes: 5 }, seconds(32)), 'end')
  })
})

test('a peer that only its acknowledgements show to be there is not given up', () => {
  const times = new TimeLimits(LIMITS, false, 0)
  const look = (second: number, unacknowledgedBytes: number) => {
    const isInDoubt = times.isInDoubt(500, seconds(second))
    const standing = { ...QUIET, isOutputFull: true, unsentBytes: 500 }
    return times.check({ ...standing, unacknowledgedBytes: isInDoubt ? unacknowledgedBytes : null }, seconds(second))
  }
  for (let second = 0; second < 100; second++) assert.equal(look(second, 1000 - second), null)
  let second = 100
  while (look(second, 900) === null && second < 200) second++
  assert.ok(second > 110 && second < 150, `given up after ${second} s`)
})

describe('a large request', () => {
  const filling = (receivedBytes: number, sizeBytes: number): Standing => ({
    ...QUIET,
    isMidRequest: true,
    filling: { sizeBytes, receivedBytes },
    isShareAwaited: true,
  })
  /** @returns the second in which it is given up. */
  const fill = (bytesPerSecond: number, sizeBytes: number): number | null => {
    const times = new TimeLimits(LIMITS, false, 0)
    times.beginsFill()
    for (let second = 0; second < sizeBytes / bytesPerSecond; second++) {
      times.heard(seconds(second))
      const overdue = times.check(filling(second * bytesPerSecond, sizeBytes), seconds(second))
      if (overdue !== null) return overdue === 'fill' ? second : Number.NaN
    }
    return null
  }

  test('has to come with a least rate while others wait, which is more for one that takes much of the budget', () => {
    assert.equal(fill(1, 100_000), 30)
    assert.equal(fill(2048, 1_200_000), null)
    assert.equal(fill(2048, 60_000_000), 30)
    assert.equal(fill(leastFillRate(60_000_000), 60_000_000), null)
  })

  test('may take any time while nobody waits for its share', () => {
    const times = new TimeLimits(LIMITS, false, 0)
    times.beginsFill()
    const look = (second: number, isShareAwaited: boolean) => {
      times.heard(seconds(second))
      return times.check({ ...filling(second, 8_000_000), isShareAwaited }, seconds(second))
    }
    for (let second = 0; second < 90; second++) assert.equal(look(second, false), null)
    // Somebody who does not wait to the end of the 30 s counts.
    assert.equal(look(90, false), null)
    assert.equal(look(91, true), null)
    for (let second = 92; second < 120; second++) assert.equal(look(second, false), null)
    assert.equal(look(120, false), 'fill')
  })

  test('is not measured against the one before it', () => {
    const times = new TimeLimits(LIMITS, false, 0)
    times.beginsFill()
    times.heard(0)
    assert.equal(times.check(filling(90_000, 100_000), 0), null)
    times.beginsFill()
    times.heard(seconds(30))
    assert.equal(times.check(filling(10, 100_000), seconds(30)), null)
    times.heard(seconds(60))
    assert.equal(times.check(filling(10, 100_000), seconds(60)), 'fill')
  })
})
