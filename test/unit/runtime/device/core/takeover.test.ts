import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_WATCHED_NAMES, TakeoverGuard } from '../../../../../src/runtime/device/core/takeover.ts'

test('a device that reconnects takes its own name over as often as it likes', () => {
  const guard = new TakeoverGuard()
  for (let atMs = 0; atMs < 10_000; atMs += 100) assert.equal(guard.mayTakeOver('pump', 7, atMs), true)
})

test('two devices with one name are told apart, until a minute has passed', () => {
  const guard = new TakeoverGuard()
  const turns = [0, 1, 2, 3, 4].map((turn) => guard.mayTakeOver('pump', turn % 2, turn * 1000))
  assert.equal(turns.at(-1), false)
  assert.equal(guard.mayTakeOver('pump', 1, 120_000), true)
})

test('of names that were taken over long ago nothing is kept, and never of more than so many', () => {
  const guard = new TakeoverGuard()
  for (let name = 0; name < 3 * MAX_WATCHED_NAMES; name++) guard.mayTakeOver(`device-${name}`, 1, name / 100)
  assert.equal(guard.watchedCount, MAX_WATCHED_NAMES)
  guard.mayTakeOver('last', 1, 200_000)
  assert.equal(guard.watchedCount, 1)
})
