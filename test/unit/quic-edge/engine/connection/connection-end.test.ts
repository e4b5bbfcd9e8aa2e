/** Closing, timeouts and resets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CloseInfo } from '../../../../../src/quic-edge/engine/connection/api.ts'
import { FRAME } from '../../../../../src/quic-edge/engine/wire/frame-type.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { ForgedClient, frame } from '../../../../support/quic/forged-packets.ts'
import { echo, QuicPair } from '../../../../support/quic/quic-pair.ts'

function connected(options: ConstructorParameters<typeof QuicPair>[0] = {}): QuicPair {
  const pair = new QuicPair(options)
  pair.server.onStream = echo
  pair.wait(100)
  assert.ok(pair.server.isConnected)
  return pair
}

test('a close reaches the other side with its code and reason, and both forget the connection soon', () => {
  const pair = connected()
  const closed: CloseInfo[] = []
  pair.client.onClosed = (info) => closed.push(info)
  pair.server.onClosed = (info) => closed.push(info)
  const stream = pair.open()
  stream.onDone = () => assert.fail('streams of a closed connection are silent')
  stream.write(new Uint8Array(100))
  pair.server.close(42, 'enough')
  pair.server.close(43, 'again')
  pair.wait(0)
  const info = { code: 42, reason: 'enough', isApplication: true }
  assert.deepEqual(closed, [
    { ...info, isLocal: true },
    { ...info, isLocal: false },
  ])
  assert.equal(pair.open === undefined || pair.client.openStream('bidirectional'), null)
  pair.wait(2000)
  assert.ok(pair.client.isFinished && pair.server.isFinished)
  assert.deepEqual([pair.clientHost.ids, pair.serverHost.ids], [[], []])
  assert.equal(pair.client.deadlineMs, Number.POSITIVE_INFINITY)
})

test('who missed the close is told again when it speaks, ever more rarely', () => {
  const pair = connected()
  pair.server.close(1, '')
  pair.flushServer()
  pair.toClient.splice(0)
  let answers = 0
  for (let count = 0; count < 20; count++) {
    pair.client.ping()
    pair.flushClient()
    for (const { bytes } of pair.toServer.splice(0)) pair.server.receive(bytes, pair.clientAddress, pair.nowMs)
    pair.flushServer()
    answers += pair.toClient.splice(0).length
  }
  assert.equal(answers, 5)
})

test('who has said that it closed too is told nothing more', () => {
  const pair = connected()
  const client = new ForgedClient(pair)
  pair.server.close(1, '')
  pair.flushServer()
  client.send(frame(FRAME.applicationClose, 0, 0))
  client.send(frame(FRAME.ping))
  client.send(frame(FRAME.ping))
  assert.deepEqual(client.received, [])
  assert.equal(pair.server.closeInfo?.code, 1)
})

test('a close during the handshake hides the code, and is readable with the keys that the peer has', () => {
  const pair = new QuicPair()
  pair.flushClient()
  pair.deliver()
  pair.server.close(42, 'secret')
  pair.run()
  assert.deepEqual(pair.client.closeInfo, {
    code: TRANSPORT_ERROR.applicationError,
    reason: '',
    isApplication: false,
    isLocal: false,
  })
})

test('closing from within a callback ends what is under way', () => {
  const pair = connected()
  pair.server.onStream = (stream) => {
    stream.onData = () => pair.server.close(5, '')
  }
  const client = new ForgedClient(pair)
  client.send(new Uint8Array([...frame(0x0a, 0, 1, 7), ...frame(0x0a, 4, 1, 7)]))
  assert.equal(pair.server.closeInfo?.code, 5)
  assert.equal(pair.server.stats.streamCount, 0)
})

test('a connection that is silent too long is forgotten without a word', () => {
  const pair = connected({ client: { idleTimeoutMs: 5000 }, server: { idleTimeoutMs: 60_000 } })
  const reasons: string[] = []
  pair.server.onClosed = ({ reason }) => reasons.push(reason)
  pair.client.onClosed = ({ reason }) => reasons.push(reason)
  pair.wait(4800)
  assert.equal(reasons.length, 0)
  pair.wait(300)
  assert.deepEqual(reasons, ['idle timeout', 'idle timeout'])
  assert.ok(pair.server.isFinished)
  assert.equal(pair.flush(), false)
})

test('a ping keeps both sides awake', () => {
  const pair = connected({ server: { idleTimeoutMs: 5000 } })
  for (let count = 0; count < 5; count++) {
    pair.wait(4000)
    pair.server.ping()
  }
  pair.wait(1000)
  assert.ok(pair.server.isConnected && pair.client.isConnected)
})

test('a handshake that does not come to an end is given up', () => {
  const pair = new QuicPair({ server: { handshakeTimeoutMs: 3000 } })
  pair.flushClient()
  pair.deliver()
  for (let nowMs = 0; nowMs <= 3000; nowMs += 100) {
    if (pair.server.deadlineMs > nowMs) continue
    pair.server.tick(nowMs)
    pair.server.flush(nowMs, () => {}, 100)
  }
  assert.equal(pair.server.closeInfo?.reason, 'handshake timeout')
  assert.ok(pair.server.isFinished)
})

test('a peer that lost the connection ends it by a reset with the token that it told before', () => {
  const pair = connected()
  const id = Buffer.from(pair.serverHost.ids[0] ?? '', 'hex')
  const token = pair.serverHost.statelessResetToken(id)
  const reset = new Uint8Array(Buffer.concat([Uint8Array.of(0x41), new Uint8Array(30).fill(7), token]))
  pair.client.receive(new Uint8Array(reset).fill(0, -16), pair.clientAddress, pair.nowMs)
  assert.ok(pair.client.isConnected)
  pair.client.receive(reset, pair.clientAddress, pair.nowMs)
  assert.equal(pair.client.closeInfo?.reason, 'stateless reset')
  assert.ok(pair.client.isFinished)
})

test('after the end nothing is taken, sent or due', () => {
  const pair = connected()
  const client = new ForgedClient(pair)
  const late = client.datagram(frame(FRAME.ping))
  pair.server.close(0, '')
  pair.wait(10_000)
  pair.server.receive(late, pair.clientAddress, pair.nowMs)
  pair.server.tick(pair.nowMs)
  pair.server.ping()
  assert.equal(pair.server.updateKeys(), false)
  assert.equal(pair.flush(), false)
})
