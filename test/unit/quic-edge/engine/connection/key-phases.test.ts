import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyPhases } from '../../../../../src/quic-edge/engine/connection/key-phases.ts'
import { PacketSpace } from '../../../../../src/quic-edge/engine/connection/packet-space.ts'
import { AES_128_GCM, type CipherSuite } from '../../../../../src/quic-edge/engine/crypto/cipher-suite.ts'
import { PacketKeys } from '../../../../../src/quic-edge/engine/crypto/packet-keys.ts'
import { LEVEL } from '../../../../../src/quic-edge/engine/tls/api.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'

const PTO_MS = 100

function createPhases(suite: CipherSuite = AES_128_GCM): { phases: KeyPhases; space: PacketSpace } {
  const space = new PacketSpace(LEVEL.application, 25)
  space.sendKeys = new PacketKeys(suite, new Uint8Array(32).fill(1))
  space.receiveKeys = new PacketKeys(suite, new Uint8Array(32).fill(2))
  return { phases: new KeyPhases(space), space }
}

function seal(keys: PacketKeys | undefined, count: number): void {
  const bytes = new Uint8Array(4)
  for (let number = 0; number < count; number++) keys?.seal(number, bytes, bytes, new Uint8Array(20), 0)
}

test('a packet of the next phase moves both directions on; late ones of the old phase still open for a while', () => {
  const { phases, space } = createPhases()
  const { receiveKeys, sendKeys } = space
  const next = phases.keysFor(1, 10)
  assert.ok(next?.isNext)
  assert.equal(space.receiveKeys, receiveKeys, 'nothing moves before a packet was opened')
  phases.opened(next, 10, 0, PTO_MS)
  assert.equal(phases.phase, 1)
  assert.equal(space.receiveKeys, next.keys)
  assert.notEqual(space.sendKeys, sendKeys)
  assert.equal(phases.keysFor(0, 9)?.keys, receiveKeys)
  phases.dropOld(3 * PTO_MS - 1)
  assert.equal(phases.keysFor(0, 9)?.keys, receiveKeys)
  phases.dropOld(3 * PTO_MS)
  assert.equal(phases.keysFor(0, 9), undefined)
  assert.ok(phases.keysFor(0, 11)?.isNext, 'the same bit with a higher number is the phase after')
})

test('after an update of our own, packets of the old phase are opened with the old keys until the peer follows', () => {
  const { phases, space } = createPhases()
  const { receiveKeys } = space
  space.takeNumber()
  space.largestAcknowledged = 0
  assert.ok(phases.update())
  for (const number of [5, 6, 7]) {
    const used = phases.keysFor(0, number)
    assert.deepEqual(used, { keys: receiveKeys, isNext: false })
    if (used !== undefined) phases.opened(used, number, 0, PTO_MS)
  }
  phases.dropOld(1e6)
  assert.equal(phases.keysFor(0, 8)?.keys, receiveKeys, 'the peer may take its time')
  const current = phases.keysFor(1, 9)
  assert.deepEqual(current, { keys: space.receiveKeys, isNext: false })
  if (current !== undefined) phases.opened(current, 9, 1e6, PTO_MS)
  assert.equal(phases.keysFor(0, 8)?.keys, receiveKeys)
  phases.dropOld(1e6 + 3 * PTO_MS)
  assert.equal(phases.keysFor(0, 8), undefined)
})

test('the next update waits until the peer has acknowledged a packet of this phase', () => {
  const { phases, space } = createPhases()
  assert.equal(phases.update(), false)
  space.takeNumber()
  space.largestAcknowledged = 0
  assert.equal(phases.update(), true)
  space.takeNumber()
  assert.equal(phases.update(), false)
  space.largestAcknowledged = 1
  assert.equal(phases.update(), true)
})

test('keys are changed before they have sealed what they may, and the connection ends where the peer prevents it', () => {
  const suite = { ...AES_128_GCM, sealLimit: 20 }
  const { phases, space } = createPhases(suite)
  seal(space.sendKeys, 17)
  phases.keepWithinLimit(true)
  assert.equal(phases.updateCount, 0)
  space.takeNumber()
  space.largestAcknowledged = 0
  seal(space.sendKeys, 1)
  phases.keepWithinLimit(false)
  assert.equal(phases.updateCount, 0)
  phases.keepWithinLimit(true)
  assert.equal(phases.updateCount, 1)
  // Nothing of the new phase is acknowledged.
  seal(space.sendKeys, 19)
  phases.keepWithinLimit(true)
  seal(space.sendKeys, 1)
  assert.throws(() => phases.keepWithinLimit(true), { code: TRANSPORT_ERROR.aeadLimitReached })
})
