import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeviceClock } from '../../../../../src/runtime/device/core/device-clock.ts'
import type { Moment } from '../../../../../src/runtime/device/core/exchange.ts'

const now: Moment = { monotonicMs: 0, wallUs: 1_764_439_200_000_000n, isWallTrusted: true, accuracyMs: 40 }

test('an uptime of this moment places all readings of the boot', () => {
  const clock = new DeviceClock()
  clock.begin(3)
  clock.observe(10_000, now)
  assert.deepEqual(clock.originOf(4_000, now), { originUs: now.wallUs - 6_000_000n, isTrusted: true })
  assert.deepEqual(clock.originOf({ boot: 2, uptimeMs: 4_000 }, now), { originUs: now.wallUs, isTrusted: false })
})

test('uptimes that no device has give the time of arrival, not one that no message can carry', () => {
  const arrival = { originUs: now.wallUs, isTrusted: false }
  const clock = new DeviceClock()
  clock.begin(3)
  clock.observe(Number.MAX_SAFE_INTEGER, now)
  assert.deepEqual(clock.originOf(0, now), arrival)
  clock.observe(0, now)
  assert.deepEqual(clock.originOf(-2 * Number.MAX_SAFE_INTEGER, now), arrival)
  assert.deepEqual(clock.originOf(3 * Number.MAX_SAFE_INTEGER, now), arrival)
})
