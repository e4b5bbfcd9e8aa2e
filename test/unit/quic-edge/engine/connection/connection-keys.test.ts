import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AES_128_GCM, type CipherSuite } from '../../../../../src/quic-edge/engine/crypto/cipher-suite.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { echo, QuicPair, readAll } from '../../../../support/quic/quic-pair.ts'

function connected(): QuicPair {
  const pair = new QuicPair()
  pair.server.onStream = echo
  pair.wait(100)
  return pair
}

function mustAnswer(pair: QuicPair): void {
  const stream = pair.open()
  let received = 0
  stream.onData = () => {
    received += readAll(stream).length
  }
  stream.write(new Uint8Array(5000))
  stream.end()
  pair.wait(1000)
  assert.equal(received, 5000)
}

test('either side updates keys, again and again, and the other follows', () => {
  const pair = connected()
  for (let round = 1; round <= 6; round++) {
    const side = round % 2 === 0 ? pair.client : pair.server
    assert.ok(side.updateKeys(), `round ${round}`)
    pair.wait(100)
    mustAnswer(pair)
    assert.equal(pair.client.stats.keyUpdates, round)
    assert.equal(pair.server.stats.keyUpdates, round)
  }
  assert.equal(pair.client.stats.rejectedPackets + pair.server.stats.rejectedPackets, 0)
})

test('both sides may update at the same moment', () => {
  const pair = connected()
  assert.ok(pair.client.updateKeys() && pair.server.updateKeys())
  mustAnswer(pair)
  assert.equal(pair.client.stats.keyUpdates, 1)
  assert.equal(pair.server.stats.keyUpdates, 1)
})

test('a second update waits for an answer to the first', () => {
  const pair = connected()
  assert.equal(pair.client.updateKeys(), true)
  assert.equal(pair.client.updateKeys(), false)
  pair.wait(100)
  assert.equal(pair.client.updateKeys(), true)
})

test('before the handshake is confirmed there is no update', () => {
  const pair = new QuicPair()
  assert.equal(pair.client.updateKeys(), false)
  assert.equal(pair.server.updateKeys(), false)
})

test('too many packets that do not authenticate end the connection', () => {
  const suite: { -readonly [Key in keyof CipherSuite]: CipherSuite[Key] } = AES_128_GCM
  const { openFailureLimit } = suite
  suite.openFailureLimit = 10
  try {
    const pair = connected()
    for (let count = 0; count < 11; count++) {
      assert.equal(pair.server.closeInfo, undefined)
      const bytes = new Uint8Array(50).fill(count)
      bytes[0] = 0x40
      pair.server.receive(bytes, pair.clientAddress, pair.nowMs)
    }
    assert.equal(pair.server.closeInfo?.code, TRANSPORT_ERROR.aeadLimitReached)
  } finally {
    suite.openFailureLimit = openFailureLimit
  }
})

test('packets with a forged phase bit change nothing', () => {
  const pair = connected()
  pair.client.ping()
  pair.flushClient()
  for (const { bytes } of pair.toServer.splice(0)) {
    bytes[0] = (bytes[0] ?? 0) ^ 0x04
    pair.server.receive(bytes, pair.clientAddress, pair.nowMs)
  }
  assert.equal(pair.server.stats.keyUpdates, 0)
  assert.equal(pair.server.stats.rejectedPackets, 1)
  mustAnswer(pair)
})
