/** What a peer can make one connection hold, reached by a peer that tries. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LOCAL_IDS_MAX } from '../../../../../src/quic-edge/engine/connection/local-ids.ts'
import { SENT_PACKETS_MAX } from '../../../../../src/quic-edge/engine/connection/loss-recovery.ts'
import { CRYPTO_BUFFER_SIZE, CRYPTO_GAPS_MAX } from '../../../../../src/quic-edge/engine/connection/packet-space.ts'
import { STREAM_GAPS_MAX } from '../../../../../src/quic-edge/engine/connection/stream-table.ts'
import { LEVEL } from '../../../../../src/quic-edge/engine/tls/api.ts'
import { FRAME } from '../../../../../src/quic-edge/engine/wire/frame-type.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { ForgedClient, frame } from '../../../../support/quic/forged-packets.ts'
import { addressOf, QuicPair, readAll } from '../../../../support/quic/quic-pair.ts'

const join = (frames: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(frames))

const closeCode = (pair: QuicPair): number | undefined => pair.server.closeInfo?.code

function connected(options: ConstructorParameters<typeof QuicPair>[0] = {}): { pair: QuicPair; client: ForgedClient } {
  const pair = new QuicPair(options)
  pair.wait(100)
  assert.ok(pair.server.isConnected)
  return { pair, client: new ForgedClient(pair) }
}

test('streams that nobody reads accept exactly the window of the connection', () => {
  const pair = new QuicPair({ server: { connectionWindowBytes: 500_000, streamWindowBytes: 100_000 } })
  pair.server.onStream = () => {}
  pair.wait(100)
  const senders = Array.from({ length: 8 }, () => pair.open())
  for (const sender of senders) sender.write(new Uint8Array(200_000))
  pair.wait(10_000)
  assert.equal(pair.server.stats.unreadBytes, 500_000)
  assert.equal(
    senders.reduce((sum, sender) => sum + 200_000 - sender.bufferedBytes, 0),
    500_000,
  )
  assert.equal(pair.client.closeInfo, undefined)
})

test('what is read and not granted counts as well', () => {
  const pair = new QuicPair({ server: { connectionWindowBytes: 100_000, streamWindowBytes: 100_000 } })
  let read = 0
  pair.server.onStream = (stream) => {
    stream.onData = () => {
      for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) read += chunk.length
    }
  }
  pair.wait(100)
  pair.open().write(new Uint8Array(300_000))
  pair.wait(10_000)
  assert.equal(read, 100_000)
})

test('what is held of streams whose first byte never comes is given up', () => {
  const pair = new QuicPair()
  pair.server.onStream = (stream) => {
    stream.onData = () => void readAll(stream)
  }
  pair.wait(100)
  const client = new ForgedClient(pair)
  // Stream 4 lacks its first byte, stream 0 has nothing at all.
  client.send(frame(0x0e, 4, 1, 1000, new Uint8Array(1000)))
  pair.server.giveUpUnseen(15)
  assert.equal(pair.server.stats.unreadBytes, 1001, 'it may be under way')
  client.send(frame(0x0e, 8, 1, 500, new Uint8Array(500)))
  pair.server.giveUpUnseen(15)
  assert.equal(pair.server.stats.unreadBytes, 501, 'that one came later')
  client.send(frame(0x0a, 8, 1, new Uint8Array(1)))
  client.send(frame(0x0a, 0, 1, new Uint8Array(1)))
  pair.server.giveUpUnseen(15)
  client.send(frame(0x0e, 4, 1001, 10, new Uint8Array(10)))
  assert.equal(pair.server.stats.unreadBytes, 0)
  assert.equal(pair.server.closeInfo, undefined)
})

test('a one-byte frame in each packet on streams that nobody reads holds little more than the bytes', () => {
  const { pair, client } = connected()
  for (let round = 0; round < 200; round++) {
    const frames = Array.from({ length: 100 }, (_, index) => frame(0x0e, index * 4, round, 1, Uint8Array.of(round)))
    client.sendUnanswered(join(frames))
  }
  assert.equal(pair.server.stats.unreadBytes, 20_000)
  assert.equal(closeCode(pair), undefined)
})

test('more streams than allowed end the connection', () => {
  const { pair, client } = connected({ server: { maxBidirectionalStreams: 5 } })
  client.send(frame(0x0a, 16, 0))
  assert.equal(pair.server.stats.streamCount, 5)
  client.send(frame(0x0a, 20, 0))
  assert.equal(closeCode(pair), TRANSPORT_ERROR.streamLimitError)
  assert.equal(pair.server.stats.streamCount, 0)
})

test('more gaps on streams than allowed end the connection', () => {
  const { pair, client } = connected()
  const gaps = (from: number) =>
    Array.from({ length: 100 }, (_, i) => frame(0x0e, 0, 1 + 2 * (from + i), 1, new Uint8Array(1)))
  for (let from = 0; from < STREAM_GAPS_MAX - 100; from += 100) client.send(join(gaps(from)))
  assert.equal(closeCode(pair), undefined)
  for (let count = 0; count < 2; count++) client.send(join(gaps(STREAM_GAPS_MAX - 50 + count * 100)))
  assert.equal(closeCode(pair), TRANSPORT_ERROR.internalError)
})

test('handshake bytes too far ahead, or in too many pieces, end the connection', () => {
  for (const isFar of [true, false]) {
    const pair = new QuicPair()
    const client = new ForgedClient(pair)
    const piece = (offset: number) => frame(FRAME.crypto, offset, 1, new Uint8Array(1))
    if (isFar) {
      client.send(piece(CRYPTO_BUFFER_SIZE - 1), LEVEL.initial)
      assert.equal(closeCode(pair), undefined)
      client.send(piece(CRYPTO_BUFFER_SIZE), LEVEL.initial)
    } else {
      const pieces = Array.from({ length: CRYPTO_GAPS_MAX + 1 }, (_, index) => piece(1 + 2 * index))
      client.send(join(pieces.slice(0, 200)), LEVEL.initial)
      assert.equal(closeCode(pair), undefined)
      client.send(join(pieces.slice(200)), LEVEL.initial)
    }
    assert.equal(closeCode(pair), TRANSPORT_ERROR.cryptoBufferExceeded)
  }
})

test('a peer that opens and resets streams without end is given one reset a stream', () => {
  const { pair, client } = connected({ server: { maxBidirectionalStreams: 10 } })
  pair.server.onStream = (stream) => {
    stream.onReset = (code) => stream.reset(code)
  }
  const resets = Array.from({ length: 10 }, (_, index) =>
    join([frame(FRAME.resetStream, index * 4, 1, 0), frame(FRAME.stopSending, index * 4, 1)]),
  )
  for (let round = 0; round < 20; round++) client.send(join(resets))
  assert.equal(pair.server.stats.streamCount, 10, 'held until our resets are acknowledged')
  client.send(frame(FRAME.resetStream, 40, 1, 0))
  assert.equal(closeCode(pair), TRANSPORT_ERROR.streamLimitError)
})

test('path challenges without end are answered, a few at a time, and remembered up to a bound', () => {
  const { pair, client } = connected()
  const challenges = join(Array.from({ length: 100 }, () => frame(FRAME.pathChallenge, new Uint8Array(8))))
  client.send(challenges)
  assert.ok(client.received.length <= 6, `${client.received.length} datagrams for 100 challenges`)
  for (let round = 0; round < SENT_PACKETS_MAX / 4 + 100; round++) client.send(challenges)
  const answered = client.received.length
  for (let round = 0; round < 100; round++) client.send(challenges)
  assert.ok(client.received.length - answered <= 110, 'acknowledgements only')
  assert.equal(closeCode(pair), undefined)
})

test('acknowledgements that nobody acknowledges are not remembered', () => {
  const { pair, client } = connected()
  const before = pair.server.stats.bytesInFlight
  for (let round = 0; round < 5000; round++) client.send(frame(FRAME.ping))
  assert.ok(client.received.length > 2000)
  assert.ok(pair.server.stats.bytesInFlight - before < 5000)
})

test('ids that are retired over and over are replaced, never more than a few at once', () => {
  const { pair, client } = connected()
  for (let sequence = 1; sequence < 100; sequence++) {
    client.send(frame(FRAME.retireConnectionId, sequence))
    assert.ok(pair.serverHost.ids.length <= LOCAL_IDS_MAX)
  }
  assert.equal(closeCode(pair), undefined)
})

test('retirements that a peer provokes end the connection before they pile up', () => {
  const { pair, client } = connected()
  for (let sequence = 10; sequence < 500 && pair.server.closeInfo === undefined; sequence++) {
    client.send(
      frame(FRAME.newConnectionId, sequence, sequence, 8, new Uint8Array(8).fill(sequence), new Uint8Array(16)),
    )
  }
  assert.equal(closeCode(pair), TRANSPORT_ERROR.connectionIdLimitError)
})

test('probing from address after address costs a few paths', () => {
  const { pair, client } = connected()
  for (let port = 1; port < 300; port++) {
    client.sendUnanswered(
      frame(FRAME.pathChallenge, new Uint8Array(8)),
      LEVEL.application,
      addressOf('192.0.2.1', port),
    )
  }
  let sent = 0
  pair.server.flush(pair.nowMs, () => sent++, 1000)
  assert.ok(sent < 10)
  assert.equal(pair.server.stats.migrations, 0)
})

test('a peer that never acknowledges gets the congestion window and probes, no more', () => {
  const { pair, client } = connected({ client: { streamWindowBytes: 8_000_000, connectionWindowBytes: 8_000_000 } })
  pair.server.onStream = (stream) => {
    stream.write(new Uint8Array(4_000_000))
  }
  client.send(frame(0x0a, 0, 0))
  for (let count = 0; count < 200; count++) client.send(frame(FRAME.ping))
  assert.ok(pair.server.stats.bytesInFlight < 20_000, `${pair.server.stats.bytesInFlight}`)
})
