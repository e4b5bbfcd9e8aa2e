import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PacketSpace } from '../../../../../src/quic-edge/engine/connection/packet-space.ts'
import { LEVEL } from '../../../../../src/quic-edge/engine/tls/api.ts'

test('numbers are given once, ascending', () => {
  const space = new PacketSpace(LEVEL.initial, 25)
  assert.deepEqual([space.takeNumber(), space.takeNumber(), space.takeNumber()], [0, 1, 2])
  assert.equal(space.wasSent(0, 2), true)
  assert.equal(space.wasSent(2, 3), false)
})

test('a number is left out now and then; a peer that acknowledges it gives itself away', () => {
  const space = new PacketSpace(LEVEL.application, 25, () => Uint8Array.of(4))
  const numbers = Array.from({ length: 45 }, () => space.takeNumber())
  const skipped = Array.from({ length: 46 }, (_, number) => number).filter((number) => !numbers.includes(number))
  assert.deepEqual(skipped, [20, 41].slice(0, skipped.length))
  assert.equal(space.wasSent(21, 40), true)
  assert.equal(space.wasSent(30, 45), false)
  assert.equal(space.wasSent(41, 41), false)
})

test('a discarded space keeps nothing and sends nothing', () => {
  const space = new PacketSpace(LEVEL.initial, 25)
  space.cryptoOut.append(new Uint8Array(1000))
  space.sent.add(space.takeNumber(), 0, 1200, [])
  space.discard()
  assert.equal(space.sent.count, 0)
  assert.equal(space.cryptoOut.bufferedBytes, 0)
  assert.equal(space.canSend, false)
  assert.throws(() => space.takeNumber())
})
