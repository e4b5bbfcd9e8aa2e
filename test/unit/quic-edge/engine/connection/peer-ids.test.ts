import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PEER_IDS_MAX, PeerIds, RETIREMENTS_MAX } from '../../../../../src/quic-edge/engine/connection/peer-ids.ts'
import type { Carried } from '../../../../../src/quic-edge/engine/connection/sent-packets.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { Reader } from '../../../../../src/quic-edge/engine/wire/reader.ts'
import { Writer } from '../../../../../src/quic-edge/engine/wire/writer.ts'
import { frame } from '../../../../support/quic/forged-packets.ts'

const idOf = (sequence: number): Uint8Array => new Uint8Array(8).fill(sequence + 1)
const tokenOf = (sequence: number): Uint8Array => new Uint8Array(16).fill(sequence + 100)

function give(ids: PeerIds, sequence: number, retireBelow = 0, idBytes = idOf(sequence)): void {
  const bytes = frame(sequence, retireBelow, idBytes.length, idBytes, tokenOf(sequence))
  ids.readNewConnectionId(new Reader(bytes))
}

function write(ids: PeerIds): Carried[] {
  const carried: Carried[] = []
  ids.writeFrames(new Writer(new Uint8Array(1200)), carried)
  return carried
}

test('another id is taken when the address changes, and the old one given back once', () => {
  const ids = new PeerIds(idOf(0))
  ids.change()
  assert.deepEqual(ids.currentBytes, idOf(0), 'there is no other')
  give(ids, 1)
  ids.change()
  assert.deepEqual(ids.currentBytes, idOf(1))
  const [retirement] = write(ids)
  assert.equal(ids.hasFrames, false)
  retirement?.lost()
  assert.equal(ids.hasFrames, true)
  retirement?.acknowledged()
  assert.equal(ids.hasFrames, false)
  assert.equal(ids.retiringCount, 0)
})

test('ids that come again are no new ones, not even after they were used up', () => {
  const ids = new PeerIds(idOf(0))
  give(ids, 1)
  give(ids, 1)
  give(ids, 2)
  ids.change()
  ids.change()
  give(ids, 1)
  ids.change()
  assert.deepEqual(ids.currentBytes, idOf(2))
})

test('the peer may ask for its old ids back', () => {
  const ids = new PeerIds(idOf(0))
  give(ids, 1)
  give(ids, 2, 2)
  assert.deepEqual(ids.currentBytes, idOf(2))
  assert.equal(write(ids).length, 2)
  give(ids, 3, 2)
  assert.equal(ids.hasFrames, false, 'once')
})

test('more ids than allowed are a breach', () => {
  const ids = new PeerIds(idOf(0))
  for (let sequence = 1; sequence < PEER_IDS_MAX; sequence++) give(ids, sequence)
  assert.throws(() => give(ids, PEER_IDS_MAX), { code: TRANSPORT_ERROR.connectionIdLimitError })
})

test('retirements that the peer provokes and never acknowledges are bounded', () => {
  const ids = new PeerIds(idOf(0))
  assert.throws(
    () => {
      for (let sequence = 1; sequence < 1000; sequence++) {
        give(ids, sequence, sequence)
        write(ids)
        assert.ok(ids.retiringCount <= RETIREMENTS_MAX)
      }
    },
    { code: TRANSPORT_ERROR.connectionIdLimitError },
  )
})

test('malformed and contradicting ids are refused', () => {
  const encoding = { code: TRANSPORT_ERROR.frameEncodingError }
  const violation = { code: TRANSPORT_ERROR.protocolViolation }
  const ids = new PeerIds(idOf(0))
  assert.throws(() => give(ids, 1, 2), encoding, 'retires more than it gives')
  assert.throws(() => give(ids, 1, 0, new Uint8Array(0)), encoding)
  assert.throws(() => give(ids, 1, 0, new Uint8Array(21)), encoding)
  give(ids, 1)
  assert.throws(() => give(ids, 1, 0, idOf(9)), violation)
  assert.throws(() => give(new PeerIds(new Uint8Array(0)), 1), violation, 'a peer without ids cannot have more')
})

test('a datagram that ends with the token of the id in use is a reset', () => {
  const ids = new PeerIds(idOf(0))
  give(ids, 1)
  const reset = Buffer.concat([new Uint8Array(30), tokenOf(1)])
  assert.equal(ids.isStatelessReset(reset), false)
  ids.change()
  assert.equal(ids.isStatelessReset(reset), true)
  reset[45] = 0
  assert.equal(ids.isStatelessReset(reset), false)
})
