import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdleTimer } from '../../../../../src/quic-edge/engine/connection/idle-timer.ts'

test('packets from the peer, and the first of ours after one, start the time anew', () => {
  const idle = new IdleTimer(1000, 0)
  assert.equal(idle.deadlineMs, 1000)
  idle.received(500, 10)
  assert.equal(idle.deadlineMs, 1500)
  idle.sent(600, 10)
  assert.equal(idle.deadlineMs, 1600)
  idle.sent(900, 10)
  assert.equal(idle.deadlineMs, 1600, 'a peer that never answers is given up')
})

test('the shorter of both timeouts holds, but never less than three probe timeouts', () => {
  const idle = new IdleTimer(1000, 0)
  idle.limit(0)
  idle.limit(300)
  idle.limit(5000)
  idle.received(0, 10)
  assert.equal(idle.deadlineMs, 300)
  idle.received(0, 200)
  assert.equal(idle.deadlineMs, 600)
})

test('with no timeout on either side a connection is never idle', () => {
  const idle = new IdleTimer(0, 0)
  idle.received(500, 10)
  assert.equal(idle.deadlineMs, Number.POSITIVE_INFINITY)
  idle.limit(100)
  idle.received(500, 10)
  assert.equal(idle.deadlineMs, 600)
})
