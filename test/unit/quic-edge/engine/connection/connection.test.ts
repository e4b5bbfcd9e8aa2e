import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305 } from '../../../../../src/quic-edge/engine/crypto/cipher-suite.ts'
import { GROUP } from '../../../../../src/quic-edge/engine/crypto/key-exchange.ts'
import { LEVEL } from '../../../../../src/quic-edge/engine/tls/api.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import {
  encodeTransportParameters,
  TRANSPORT_PARAMETER_DEFAULTS,
  type TransportParameters,
} from '../../../../../src/quic-edge/engine/wire/transport-parameters.ts'
import { ForgedClient, frame } from '../../../../support/quic/forged-packets.ts'
import { echo, type PairOptions, QuicPair, readAll } from '../../../../support/quic/quic-pair.ts'

/** Sends `size` bytes to an echo and takes them back. @returns how many came back right. */
function roundTrip(pair: QuicPair, size: number, waitMs = 1000): number {
  pair.server.onStream = echo
  pair.wait(100)
  const stream = pair.open()
  const request = Uint8Array.from({ length: size }, (_, index) => index % 251)
  let right = 0
  stream.onData = () => {
    for (const byte of readAll(stream)) if (byte === right % 251) right++
  }
  stream.write(request)
  stream.end()
  pair.wait(waitMs)
  assert.ok(stream.isEnded)
  return right
}

test('a request is echoed on a stream, and both sides are clean afterwards', () => {
  const pair = new QuicPair()
  assert.equal(roundTrip(pair, 5), 5)
  for (const { stats, isConnected } of [pair.client, pair.server]) {
    assert.ok(isConnected)
    assert.equal(stats.streamCount, 0)
    assert.equal(stats.bytesInFlight, 0)
    assert.equal(stats.unreadBytes, 0)
    assert.equal(stats.lostPackets, 0)
  }
})

const HANDSHAKES: Record<string, PairOptions> = {
  'AES-128-GCM': { clientTls: { suites: [AES_128_GCM.id] } },
  'AES-256-GCM': { clientTls: { suites: [AES_256_GCM.id] } },
  'ChaCha20-Poly1305': { clientTls: { suites: [CHACHA20_POLY1305.id] } },
  'P-256 after a HelloRetryRequest': { serverTls: { groups: [GROUP.p256] } },
  'a hello of two packets, with a share that only newer servers know': {
    clientTls: { foreignShares: [{ group: 0x11ec, publicBytes: new Uint8Array(1216) }] },
  },
}

for (const [name, options] of Object.entries(HANDSHAKES)) {
  test(`a connection comes about with ${name}`, () => {
    assert.equal(roundTrip(new QuicPair(options), 100), 100)
  })
}

test('one megabyte each way is more than any window, and arrives', () => {
  assert.equal(roundTrip(new QuicPair(), 1024 * 1024, 20_000), 1024 * 1024)
})

test('requests that are written together share a datagram', () => {
  const pair = new QuicPair()
  pair.server.onStream = echo
  pair.wait(100)
  for (let count = 0; count < 10; count++) {
    const stream = pair.open()
    stream.write(new Uint8Array(50))
    stream.end()
  }
  pair.flushClient()
  assert.equal(pair.toServer.length, 1)
})

test('the server sends no more than three times what it got before the client has shown its address', () => {
  const pair = new QuicPair()
  pair.flushClient()
  const [hello] = pair.toServer.splice(0)
  assert.ok(hello)
  pair.server.receive(hello.bytes, pair.clientAddress, 0)
  let sent = 0
  for (let nowMs = 0; nowMs < 9000; nowMs += 100) {
    if (pair.server.deadlineMs <= nowMs) pair.server.tick(nowMs)
    pair.server.flush(
      nowMs,
      (bytes) => {
        sent += bytes.length
      },
      100,
    )
    assert.ok(pair.server.deadlineMs > nowMs, 'a deadline in the past would come up again at once')
  }
  assert.ok(sent > 1200 && sent <= 3 * hello.bytes.length, `${sent}`)
  pair.server.close(1, 'a close is no exception')
  pair.server.flush(9000, (bytes) => assert.ok(sent + bytes.length <= 3 * hello.bytes.length), 100)
})

test('an address that a Retry token proved is not held to that', () => {
  const pair = new QuicPair({ isPeerValidated: true })
  pair.flushClient()
  for (const { bytes } of pair.toServer.splice(0)) pair.server.receive(bytes, pair.clientAddress, 0)
  let sent = 0
  for (let nowMs = 0; nowMs < 9000; nowMs += 100) {
    if (pair.server.deadlineMs <= nowMs) pair.server.tick(nowMs)
    pair.server.flush(
      nowMs,
      (bytes) => {
        sent += bytes.length
      },
      100,
    )
  }
  assert.ok(sent > 3600)
})

test('a peer that speaks of other ids in its transport parameters than in its packets is refused', () => {
  const pair = new QuicPair()
  pair.flushClient()
  const [hello] = pair.toServer
  assert.ok(hello)
  const other = new QuicPair({ peerId: new Uint8Array(8) })
  other.flushClient()
  other.deliver()
  assert.equal(other.server.closeInfo, undefined, 'packets with another source id are not even looked at')
  assert.equal(other.server.hasAuthenticated, false)
})

test('a client refuses a server that answers for another first id', () => {
  const pair = new QuicPair({ originalDestinationId: new Uint8Array(8) })
  pair.run()
  assert.equal(pair.client.closeInfo?.code, TRANSPORT_ERROR.transportParameterError)
})

test('what does not authenticate leaves no trace but a count', () => {
  const pair = new QuicPair()
  pair.flushClient()
  for (const { bytes } of pair.toServer.splice(0)) {
    bytes[200] = (bytes[200] ?? 0) ^ 1
    pair.server.receive(bytes, pair.clientAddress, 0)
  }
  assert.equal(pair.server.hasAuthenticated, false)
  assert.equal(pair.server.stats.rejectedPackets, 1)
  assert.equal(pair.flush(), false)
})

test('an Initial packet in a datagram of less than 1,200 bytes is dropped', () => {
  const pair = new QuicPair()
  pair.flushClient()
  const [hello] = pair.toServer.splice(0)
  assert.ok(hello)
  pair.server.receive(hello.bytes.subarray(0, 1199), pair.clientAddress, 0)
  assert.equal(pair.server.hasAuthenticated, false)
})

test('application data is not read before the client has finished its handshake', () => {
  const pair = new QuicPair()
  pair.server.onStream = () => assert.fail('nobody has shown who the client is')
  while (!pair.client.isConnected) {
    pair.flush()
    pair.deliver()
  }
  const client = new ForgedClient(pair)
  client.sendUnanswered(frame(0x0a, 0, 1, 7))
  assert.equal(pair.server.isConnected, false)
  assert.equal(pair.server.stats.streamCount, 0)
})

test('packets that come twice are taken once', () => {
  const pair = new QuicPair()
  let requests = 0
  pair.server.onStream = (stream) => {
    requests++
    echo(stream)
  }
  pair.wait(100)
  pair.open().end()
  pair.flushClient()
  const copies = pair.toServer.map(({ bytes, to }) => ({ bytes: new Uint8Array(bytes), to }))
  pair.toServer.push(...copies)
  pair.wait(100)
  assert.equal(requests, 1)
  assert.equal(pair.server.stats.duplicatePackets, copies.length)
})

test('once the handshake is done, its keys are gone: packets of it say nothing any more', () => {
  for (const level of [LEVEL.initial, LEVEL.handshake] as const) {
    const pair = new QuicPair()
    pair.wait(100)
    const before = pair.server.stats
    new ForgedClient(pair).send(frame(0x21), level)
    assert.equal(pair.server.closeInfo, undefined)
    assert.equal(pair.server.stats.receivedPackets, before.receivedPackets)
  }
})

/** A pair whose client says these things of itself. */
function pairOf(parameters: Partial<TransportParameters>, options: PairOptions = {}): QuicPair {
  // Ids are the same in every pair.
  const initialSourceId = Buffer.from(new QuicPair().clientHost.ids[0] ?? '', 'hex')
  const transportParameters = encodeTransportParameters({
    ...TRANSPORT_PARAMETER_DEFAULTS,
    maxData: 1_000_000,
    maxStreamDataBidiLocal: 1_000_000,
    ...parameters,
    initialSourceId,
  })
  return new QuicPair({ ...options, clientTls: { transportParameters } })
}

test('delays of acknowledgements are read in the unit that the client named, and waited for as long as it said', () => {
  const afterPing = (parameters: Partial<TransportParameters>) => {
    const pair = pairOf(parameters)
    pair.wait(100)
    pair.server.ping()
    pair.flushServer()
    const patienceMs = pair.server.deadlineMs - pair.nowMs
    pair.nowMs += 10
    pair.wait(200)
    return { patienceMs, smoothedRttMs: pair.server.stats.smoothedRttMs }
  }
  // The client gets it after 10 ms and holds its answer back for 25 ms, and says so in units of 8 µs.
  assert.ok(afterPing({ ackDelayExponent: 3, maxAckDelayMs: 1000 }).smoothedRttMs < 5)
  assert.ok(afterPing({ ackDelayExponent: 0, maxAckDelayMs: 1000 }).smoothedRttMs > 6)
  const [short, long] = [afterPing({ maxAckDelayMs: 500 }), afterPing({ maxAckDelayMs: 1000 })]
  assert.equal(Math.round(long.patienceMs - short.patienceMs), 500)
})

test('a client gets no larger datagrams than it takes', () => {
  const pair = pairOf({ maxDatagramSize: 1250 }, { server: { datagramSize: 1400 } })
  pair.server.onStream = (stream) => stream.write(new Uint8Array(20_000))
  pair.wait(100)
  pair.open().write(new Uint8Array(1))
  pair.flushClient()
  pair.deliver()
  pair.flushServer()
  assert.equal(Math.max(...pair.toClient.map(({ bytes }) => bytes.length)), 1250)
})
