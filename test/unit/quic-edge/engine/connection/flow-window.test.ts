import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReceiveWindow, SendWindow } from '../../../../../src/quic-edge/engine/connection/flow-window.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'

test('a peer gets the window and not a byte more while nothing is granted back', () => {
  const window = new ReceiveWindow(1000)
  window.receive(1000)
  assert.equal(window.unreadBytes, 1000)
  assert.throws(() => window.receive(1), { code: TRANSPORT_ERROR.flowControlError })
})

test('a new limit is due when half of the window was granted, and is exact', () => {
  const window = new ReceiveWindow(1000)
  window.receive(700)
  window.grant(499)
  assert.equal(window.isUpdateDue, false)
  window.grant(1)
  assert.equal(window.isUpdateDue, true)
  assert.equal(window.update(), 1500)
  assert.equal(window.isUpdateDue, false)
  window.repeatUpdate()
  assert.equal(window.isUpdateDue, true, 'the frame was lost')
  window.receive(800)
  assert.throws(() => window.receive(1))
})

test('limits of the peer only grow', () => {
  const window = new SendWindow()
  assert.equal(window.raise(100), true)
  assert.equal(window.raise(50), false)
  window.send(30)
  assert.equal(window.leftBytes, 70)
})
