import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EngineStream } from '../../../../../src/quic-edge/engine/connection/api.ts'
import { LEVEL } from '../../../../../src/quic-edge/engine/tls/api.ts'
import { FRAME } from '../../../../../src/quic-edge/engine/wire/frame-type.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { ForgedClient, frame } from '../../../../support/quic/forged-packets.ts'
import {
  addressOf,
  CLIENT_ADDRESS,
  echo,
  QuicPair,
  readAll,
  SERVER_ADDRESS,
} from '../../../../support/quic/quic-pair.ts'

const REBOUND = addressOf('192.0.2.1', 50_000)
const ELSEWHERE = addressOf('198.51.100.7', 50_000)

function connected(): QuicPair {
  const pair = new QuicPair()
  pair.server.onStream = echo
  pair.wait(100)
  return pair
}

function request(pair: QuicPair, size = 10): { stream: EngineStream; received: () => number } {
  const stream = pair.open()
  let received = 0
  stream.onData = () => {
    received += readAll(stream).length
  }
  stream.write(new Uint8Array(size))
  stream.end()
  return { stream, received: () => received }
}

test('a client behind a NAT that gave it another port goes on, and is asked to prove itself', () => {
  const pair = connected()
  pair.clientAddress = REBOUND
  const { received } = request(pair)
  pair.wait(1000)
  assert.equal(received(), 10)
  assert.equal(pair.server.peer, REBOUND)
  assert.equal(pair.server.stats.migrations, 1)
  const large = request(pair, 500_000)
  pair.wait(10_000)
  assert.equal(large.received(), 500_000, 'proven: no limit any more')
})

test('a client on another host starts with a new congestion window and another id', () => {
  const pair = connected()
  request(pair, 400_000)
  pair.wait(10_000)
  assert.ok(pair.server.stats.congestionWindowBytes > 20_000)
  pair.clientAddress = ELSEWHERE
  const idsBefore = [...pair.clientHost.ids]
  request(pair)
  pair.flushClient()
  for (const { bytes } of pair.toServer.splice(0)) pair.server.receive(bytes, ELSEWHERE, pair.nowMs)
  assert.equal(pair.server.stats.congestionWindowBytes, 12_000)
  pair.wait(1000)
  assert.notDeepEqual(pair.clientHost.ids, idsBefore, 'the server gave the old one back')
})

test('to an address that does not answer go three times what came from it; then the connection returns', () => {
  const pair = connected()
  const client = new ForgedClient(pair)
  const sentTo = new Map<string, number>()
  const flush = () =>
    pair.server.flush(pair.nowMs, (bytes, to) => sentTo.set(to.key, (sentTo.get(to.key) ?? 0) + bytes.length), 1000)
  // Somebody forwards a packet of the client with his own address on it.
  client.sendUnanswered(frame(0x0a, 0, 50, new Uint8Array(50)), LEVEL.application, ELSEWHERE)
  assert.equal(pair.server.peer, ELSEWHERE)
  const endMs = pair.nowMs + 5000
  while (pair.nowMs < endMs) {
    flush()
    pair.nowMs = Math.min(pair.server.deadlineMs, endMs)
    pair.server.tick(pair.nowMs)
    if (pair.server.peer === CLIENT_ADDRESS) break
  }
  assert.ok((sentTo.get(ELSEWHERE.key) ?? 0) <= 3 * 90, `${sentTo.get(ELSEWHERE.key)}`)
  assert.equal(pair.server.peer, CLIENT_ADDRESS)
  assert.equal(pair.server.closeInfo, undefined)
})

test('while nothing may be sent to a new address, no deadline lies in the past', () => {
  const pair = connected()
  const client = new ForgedClient(pair)
  client.sendUnanswered(frame(FRAME.ping), LEVEL.application, ELSEWHERE)
  const endMs = pair.nowMs + 2000
  while (pair.nowMs < endMs) {
    pair.server.tick(pair.nowMs)
    pair.server.flush(
      pair.nowMs,
      (_bytes, to) => assert.notEqual(to, ELSEWHERE, 'three times 29 bytes are too few'),
      10,
    )
    assert.ok(pair.server.deadlineMs > pair.nowMs)
    pair.nowMs = Math.min(pair.server.deadlineMs, endMs)
  }
})

test('the next packet from the old address takes the connection back', () => {
  const pair = connected()
  const client = new ForgedClient(pair)
  client.sendUnanswered(frame(FRAME.ping), LEVEL.application, ELSEWHERE)
  assert.equal(pair.server.peer, ELSEWHERE)
  client.sendUnanswered(frame(FRAME.ping))
  assert.equal(pair.server.peer, CLIENT_ADDRESS)
})

test('a packet that only probes moves nothing, and is answered where it came from', () => {
  const pair = connected()
  const client = new ForgedClient(pair)
  const data = new Uint8Array(8).fill(3)
  client.sendUnanswered(
    new Uint8Array([...frame(FRAME.pathChallenge, data), ...new Uint8Array(900)]),
    LEVEL.application,
    ELSEWHERE,
  )
  assert.equal(pair.server.peer, CLIENT_ADDRESS)
  const answered: string[] = []
  pair.server.flush(pair.nowMs, (_bytes, to) => answered.push(to.key), 10)
  assert.ok(answered.includes(ELSEWHERE.key))
})

test('a late packet from an old address moves nothing', () => {
  const pair = connected()
  const client = new ForgedClient(pair)
  const late = client.datagram(frame(FRAME.ping))
  client.sendUnanswered(frame(FRAME.ping), LEVEL.application, REBOUND)
  pair.server.receive(late, ELSEWHERE, pair.nowMs)
  assert.equal(pair.server.peer, REBOUND)
})

test('before the handshake is confirmed no address change is followed', () => {
  const pair = new QuicPair()
  pair.flushClient()
  pair.deliver()
  pair.flushServer()
  pair.clientAddress = REBOUND
  for (const { bytes } of pair.toClient.splice(0)) pair.client.receive(bytes, CLIENT_ADDRESS, pair.nowMs)
  assert.equal(pair.server.peer, CLIENT_ADDRESS)
  pair.wait(5000)
  assert.ok(pair.server.isConnected)
})

test('a handshake that is finished from another address proves nothing of that address', () => {
  const pair = new QuicPair()
  pair.server.onStream = (stream) => stream.write(new Uint8Array(100_000))
  const sentTo = new Map<string, number>()
  const flush = () =>
    pair.server.flush(pair.nowMs, (bytes, to) => sentTo.set(to.key, (sentTo.get(to.key) ?? 0) + bytes.length), 1000)
  pair.flushClient()
  pair.deliver()
  pair.flushServer()
  for (const { bytes } of pair.toClient.splice(0)) pair.client.receive(bytes, SERVER_ADDRESS, pair.nowMs)
  // The client read the answer where it is, and writes somebody else's address on what it sends from now on.
  pair.flushClient()
  let fromElsewhere = 0
  const take = (datagram: Uint8Array) => {
    fromElsewhere += datagram.length
    pair.server.receive(datagram, ELSEWHERE, pair.nowMs)
  }
  for (const { bytes } of pair.toServer.splice(0)) take(bytes)
  assert.ok(pair.server.isConnected)
  const client = new ForgedClient(pair)
  take(client.datagram(frame(0x0b, 0, 10, new Uint8Array(10))))
  assert.equal(pair.server.peer, ELSEWHERE)
  const endMs = pair.nowMs + 5000
  while (pair.nowMs < endMs) {
    flush()
    pair.nowMs = Math.min(pair.server.deadlineMs, endMs)
    pair.server.tick(pair.nowMs)
    if (pair.server.isFinished) break
  }
  assert.ok((sentTo.get(ELSEWHERE.key) ?? 0) <= 3 * fromElsewhere, `${sentTo.get(ELSEWHERE.key)} for ${fromElsewhere}`)
  assert.equal(pair.server.closeInfo?.code, TRANSPORT_ERROR.noViablePath)
})
