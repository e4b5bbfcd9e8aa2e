import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSealedInitial } from '../../../../../src/quic-edge/engine/endpoint/initial-check.ts'
import { readLongHeader } from '../../../../../src/quic-edge/engine/wire/packet-header.ts'
import { SAMPLE_CLIENT_INITIAL } from '../../../../support/quic/sample-packets.ts'

const SAMPLE = Uint8Array.fromHex(SAMPLE_CLIENT_INITIAL)

const isSealed = (datagram: Uint8Array): boolean => {
  const header = readLongHeader(datagram)
  return header !== undefined && isSealedInitial(datagram, header)
}

test('a packet as a client seals it is told from noise, and left as it is', () => {
  for (const datagram of [new Uint8Array(SAMPLE), Buffer.from(SAMPLE)]) {
    assert.equal(isSealed(datagram), true)
    assert.deepEqual(new Uint8Array(datagram), SAMPLE)
  }
})

test('a packet with any byte changed is none', () => {
  for (const at of [0, 6, 17, 18, 21, 100, 1199]) {
    assert.equal(isSealed(SAMPLE.with(at, (SAMPLE[at] ?? 0) ^ 1)), false, `byte ${at}`)
  }
})

test('a packet too short for a packet number, a sample and a tag is none', () => {
  const datagram = new Uint8Array(SAMPLE)
  datagram.set([0x40, 19], 16)
  assert.equal(isSealed(datagram), false)
})
