import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RoundTrip } from '../../../../../src/quic-edge/engine/connection/round-trip.ts'

test('before a measurement the probe timeout is that of RFC 9002: 999 ms', () => {
  assert.equal(new RoundTrip().patienceMs, 999)
})

test('the first sample is taken as it is, further ones are smoothed', () => {
  const roundTrip = new RoundTrip()
  roundTrip.sample(100, 0)
  assert.equal(roundTrip.smoothedMs, 100)
  assert.equal(roundTrip.patienceMs, 300)
  roundTrip.sample(180, 0)
  assert.equal(roundTrip.smoothedMs, 110)
  assert.equal(roundTrip.patienceMs, 110 + 4 * (50 + (80 - 50) / 4))
  assert.equal(roundTrip.slowestMs, 180)
})

test('what the peer says it held back is taken off, but never below the shortest round trip', () => {
  const roundTrip = new RoundTrip()
  roundTrip.sample(100, 0)
  roundTrip.sample(120, 20)
  assert.equal(roundTrip.smoothedMs, 100)
  roundTrip.sample(108, 20)
  assert.equal(roundTrip.smoothedMs, 101)
})

test('a clock that did not move is no round trip of nothing', () => {
  const roundTrip = new RoundTrip()
  roundTrip.sample(0, 0)
  assert.ok(roundTrip.smoothedMs > 0)
})

test('another path starts from nothing', () => {
  const roundTrip = new RoundTrip()
  roundTrip.sample(5, 0)
  roundTrip.reset()
  assert.equal(roundTrip.hasSample, false)
  assert.equal(roundTrip.patienceMs, 999)
})
