/** Small packets that could make one connection do or hold much: what each of them costs stays bounded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PATH_FRAMES_MAX } from '../../../../../src/quic-edge/engine/connection/paths.ts'
import { LEVEL } from '../../../../../src/quic-edge/engine/tls/api.ts'
import { FRAME } from '../../../../../src/quic-edge/engine/wire/frame-type.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { ForgedClient, frame } from '../../../../support/quic/forged-packets.ts'
import { addressOf, QuicPair } from '../../../../support/quic/quic-pair.ts'

function connected(): { pair: QuicPair; client: ForgedClient } {
  const pair = new QuicPair()
  pair.wait(100)
  assert.ok(pair.server.isConnected)
  return { pair, client: new ForgedClient(pair) }
}

const join = (frames: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(frames))

test('a peer that moves to and fro with every packet and acknowledges nothing is not asked for ever', () => {
  const { pair, client } = connected()
  const addresses = [pair.clientAddress, addressOf('192.0.2.1', 50_000), addressOf('192.0.2.77', 1)]
  const before = pair.server.stats.bytesInFlight
  for (let count = 0; count < 500; count++) {
    client.sendUnanswered(frame(FRAME.ping), LEVEL.application, addresses[count % addresses.length])
    pair.server.flush(pair.nowMs, () => {}, 100)
  }
  assert.ok(pair.server.stats.migrations >= 499)
  assert.ok(pair.server.stats.bytesInFlight - before <= PATH_FRAMES_MAX * 1200)
})

test('path challenges to a peer that acknowledges nothing stop to be answered', () => {
  const { pair, client } = connected()
  const before = pair.server.stats.bytesInFlight
  for (let count = 0; count < 500; count++) client.send(frame(FRAME.pathChallenge, new Uint8Array(8)))
  assert.ok(pair.server.stats.bytesInFlight - before <= PATH_FRAMES_MAX * 1200)
})

test('a packet full of retirements cannot draw new connection ids without end', () => {
  const { pair, client } = connected()
  const added = pair.serverHost.ids.length
  client.sendUnanswered(join(Array.from({ length: 300 }, (_, index) => frame(FRAME.retireConnectionId, index + 1))))
  assert.equal(pair.server.closeInfo?.code, TRANSPORT_ERROR.protocolViolation)
  assert.equal(pair.serverHost.ids.length, added)
})

test('a peer that acknowledges as late as it may cannot make us keep its connection for minutes after the end', () => {
  const { pair } = connected()
  pair.server.ping()
  pair.flushServer()
  pair.nowMs += 25_000
  pair.deliver()
  pair.nowMs += 30
  pair.client.tick(pair.nowMs)
  pair.flushClient()
  pair.deliver()
  assert.ok(pair.server.stats.smoothedRttMs > 3000)
  pair.server.close(0, '')
  assert.ok(pair.server.deadlineMs - pair.nowMs <= 10_000)
})
