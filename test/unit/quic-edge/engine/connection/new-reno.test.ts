import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NewReno, WINDOW_MAX_BYTES } from '../../../../../src/quic-edge/engine/connection/new-reno.ts'

const SIZE = 1200

/** Sends a full window at `sentMs` and acknowledges it. */
function roundTrip(congestion: NewReno, sentMs: number): void {
  let count = 0
  for (; congestion.hasRoom; count++) congestion.sent(SIZE)
  const inFlight = congestion.bytesInFlight
  for (; count > 0; count--) congestion.acknowledged(SIZE, sentMs, inFlight)
}

test('the first window is ten datagrams, and doubles in each round trip that uses it', () => {
  const congestion = new NewReno(SIZE)
  assert.equal(congestion.windowBytes, 12_000)
  roundTrip(congestion, 0)
  assert.equal(congestion.windowBytes, 24_000)
  assert.equal(congestion.bytesInFlight, 0)
})

test('a window that was not used does not grow', () => {
  const congestion = new NewReno(SIZE)
  congestion.sent(SIZE)
  congestion.acknowledged(SIZE, 0, SIZE)
  assert.equal(congestion.windowBytes, 12_000)
})

test('one loss event halves the window once; then it grows by a datagram in a round trip', () => {
  const congestion = new NewReno(SIZE)
  roundTrip(congestion, 0)
  congestion.congested(10, 20)
  congestion.congested(15, 25)
  assert.equal(congestion.windowBytes, 12_000)
  roundTrip(congestion, 18)
  assert.equal(congestion.windowBytes, 12_000, 'packets from before the loss do not count')
  roundTrip(congestion, 30)
  assert.ok(Math.abs(congestion.windowBytes - 13_150) < 60, `${congestion.windowBytes}`)
  congestion.congested(31, 40)
  assert.ok(congestion.windowBytes < 6600)
})

test('the window never falls below two datagrams, nor grows past its cap', () => {
  const congestion = new NewReno(SIZE)
  for (let ms = 1; ms < 20; ms++) congestion.congested(ms * 10, ms * 10 + 1)
  assert.equal(congestion.windowBytes, 2400)
  congestion.reset()
  for (let ms = 0; ms < 20; ms++) roundTrip(congestion, ms)
  assert.equal(congestion.windowBytes, WINDOW_MAX_BYTES)
})

test('after persistent congestion the window starts over', () => {
  const congestion = new NewReno(SIZE)
  roundTrip(congestion, 0)
  congestion.congested(10, 20)
  congestion.persistentlyCongested()
  assert.equal(congestion.windowBytes, 2400)
  roundTrip(congestion, 11)
  assert.equal(congestion.windowBytes, 4800, 'slow start again')
})
