/** What a peer must not say, and the code that answers it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LEVEL, type Level } from '../../../../../src/quic-edge/engine/tls/api.ts'
import { FRAME } from '../../../../../src/quic-edge/engine/wire/frame-type.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { ForgedClient, frame } from '../../../../support/quic/forged-packets.ts'
import { QuicPair } from '../../../../support/quic/quic-pair.ts'

const ID = new Uint8Array(8).fill(9)
const TOKEN = new Uint8Array(16)

const VIOLATIONS: readonly (readonly [string, Uint8Array, keyof typeof TRANSPORT_ERROR, Level?])[] = [
  ['an unknown frame', frame(0x21), 'frameEncodingError'],
  ['a frame cut short', frame(FRAME.maxStreamData, 0), 'frameEncodingError'],
  ['a frame type in a longer form than needed', Uint8Array.of(0x40, FRAME.ping), 'protocolViolation'],
  ['HANDSHAKE_DONE from a client', frame(FRAME.handshakeDone), 'protocolViolation'],
  ['NEW_TOKEN from a client', frame(FRAME.newToken, 1, 0), 'protocolViolation'],
  ['an acknowledgement of a packet that was not sent', frame(FRAME.ack, 5000, 0, 0, 0), 'protocolViolation'],
  ['an acknowledgement below 0', frame(FRAME.ack, 0, 0, 0, 1), 'frameEncodingError'],
  ['more bytes on a stream than its window', frame(0x0e, 0, 256 * 1024, 1, 1), 'flowControlError'],
  ['an offset past every limit', frame(0x0e, 0, 2 ** 53 - 1, 1, 1), 'flowControlError'],
  ['a stream above the limit', frame(0x0a, 400, 0), 'streamLimitError'],
  ['a limit of more streams than there are numbers', frame(FRAME.maxStreamsUni, 2 ** 61), 'frameEncodingError'],
  ['a wish for more streams than there are numbers', frame(FRAME.streamsBlockedBidi, 2 ** 61), 'frameEncodingError'],
  ['bytes on our one-way stream', frame(0x0a, 3, 0), 'streamStateError'],
  ['bytes on a stream of ours that is not open', frame(0x0a, 1, 0), 'streamStateError'],
  ['a stop for the one-way stream of the peer', frame(FRAME.stopSending, 2, 0), 'streamStateError'],
  ['a limit for the one-way stream of the peer', frame(FRAME.maxStreamData, 2, 0), 'streamStateError'],
  ['bytes behind the end', Uint8Array.of(...frame(0x0b, 0, 1, 7), ...frame(0x0e, 0, 1, 1, 7)), 'finalSizeError'],
  ['an end below what came', Uint8Array.of(...frame(0x0a, 0, 2, 7, 7), ...frame(0x0b, 0, 1, 7)), 'finalSizeError'],
  [
    'a reset below what came',
    Uint8Array.of(...frame(0x0a, 0, 2, 7, 7), ...frame(FRAME.resetStream, 0, 0, 1)),
    'finalSizeError',
  ],
  [
    'bytes behind a reset',
    Uint8Array.of(...frame(FRAME.resetStream, 0, 0, 1), ...frame(0x0e, 0, 1, 1, 7)),
    'finalSizeError',
  ],
  ['an id that retires more than it gives', frame(FRAME.newConnectionId, 1, 2, 8, ID, TOKEN), 'frameEncodingError'],
  ['an id of no bytes', frame(FRAME.newConnectionId, 1, 0, 0, TOKEN), 'frameEncodingError'],
  ['retiring an id that was not given', frame(FRAME.retireConnectionId, 50), 'protocolViolation'],
  ['retiring the id of the packet itself', frame(FRAME.retireConnectionId, 0), 'protocolViolation'],
  ['a stream frame in an Initial packet', frame(0x0a, 0, 0), 'protocolViolation', LEVEL.initial],
  [
    'a close of the application in an Initial packet',
    frame(FRAME.applicationClose, 0, 0),
    'protocolViolation',
    LEVEL.initial,
  ],
  ['a path challenge in an Initial packet', frame(FRAME.pathChallenge, ID), 'protocolViolation', LEVEL.initial],
]

for (const [name, frames, code, level] of VIOLATIONS) {
  test(`${name} ends the connection`, () => {
    const pair = new QuicPair()
    if (level === undefined) pair.wait(100)
    new ForgedClient(pair).send(frames, level)
    const { closeInfo } = pair.server
    assert.equal(closeInfo?.code, TRANSPORT_ERROR[code], String(closeInfo?.reason))
    assert.equal(closeInfo?.isApplication, false)
    assert.equal(closeInfo?.isLocal, true)
  })
}

test('before the handshake is done, every frame but those of RFC 9000 table 3 ends the connection', () => {
  const early: readonly number[] = [
    FRAME.padding,
    FRAME.ping,
    FRAME.ack,
    FRAME.ackEcn,
    FRAME.crypto,
    FRAME.connectionClose,
  ]
  for (const level of [LEVEL.initial, LEVEL.handshake] as const) {
    for (let type = 0; type <= FRAME.handshakeDone + 1; type++) {
      if (early.includes(type)) continue
      const pair = new QuicPair()
      pair.flushClient()
      pair.deliver()
      pair.flushServer()
      pair.deliver()
      // The client has the keys of the handshake, and says nothing with them yet.
      new ForgedClient(pair).send(Uint8Array.of(type, ...new Uint8Array(40)), level)
      assert.equal(pair.server.closeInfo?.code, TRANSPORT_ERROR.protocolViolation, `type ${type} at level ${level}`)
      assert.equal(pair.server.isConnected, false)
    }
  }
})

const HARMLESS: readonly (readonly [string, Uint8Array])[] = [
  ['padding alone', new Uint8Array(50)],
  ['DATA_BLOCKED', frame(FRAME.dataBlocked, 5)],
  ['STREAM_DATA_BLOCKED', frame(FRAME.streamDataBlocked, 0, 5)],
  ['STREAMS_BLOCKED', Uint8Array.of(...frame(FRAME.streamsBlockedBidi, 5), ...frame(FRAME.streamsBlockedUni, 5))],
  ['a limit lower than before', Uint8Array.of(...frame(FRAME.maxData, 0), ...frame(FRAME.maxStreamsBidi, 0))],
  ['an acknowledgement once more', frame(FRAME.ack, 0, 0, 0, 0)],
  ['an acknowledgement with congestion marks', frame(FRAME.ackEcn, 0, 0, 0, 0, 1, 2, 3)],
  ['an answer to no challenge', frame(FRAME.pathResponse, ID)],
  [
    'an id twice',
    Uint8Array.of(
      ...frame(FRAME.newConnectionId, 9, 0, 8, ID, TOKEN),
      ...frame(FRAME.newConnectionId, 9, 0, 8, ID, TOKEN),
    ),
  ],
  ["bytes of a stream up to the packet's end", frame(0x08, 0, 1, 2, 3)],
]

for (const [name, frames] of HARMLESS) {
  test(`${name} is taken`, () => {
    const pair = new QuicPair({ client: { maxBidirectionalStreams: 0, maxUnidirectionalStreams: 0 } })
    pair.wait(100)
    const client = new ForgedClient(pair)
    client.send(frames)
    for (let count = 0; count < 2; count++) client.send(frame(FRAME.ping))
    assert.equal(pair.server.closeInfo, undefined)
    assert.ok(client.received.length > 0, 'and acknowledged')
  })
}

test('reserved bits that are set, and packets without frames, end the connection', () => {
  for (const forge of [
    (client: ForgedClient) => client.datagram(frame(FRAME.ping), LEVEL.application, { firstBits: 0x18 }),
    (client: ForgedClient) => client.emptyDatagram(),
  ]) {
    const pair = new QuicPair()
    pair.wait(100)
    pair.server.receive(forge(new ForgedClient(pair)), pair.clientAddress, pair.nowMs)
    assert.equal(pair.server.closeInfo?.code, TRANSPORT_ERROR.protocolViolation)
  }
  const pair = new QuicPair()
  const hello = new ForgedClient(pair).datagram(frame(FRAME.ping), LEVEL.initial, { firstBits: 0x0c })
  pair.server.receive(hello, pair.clientAddress, 0)
  assert.equal(pair.server.closeInfo?.code, TRANSPORT_ERROR.protocolViolation)
})

test('of the packets in one datagram those to another id are not looked at', () => {
  const pair = new QuicPair()
  const client = new ForgedClient(pair)
  const first = client.datagram(frame(FRAME.ping), LEVEL.initial)
  const second = client.datagram(frame(0x0a, 0, 0), LEVEL.initial, { destinationId: new Uint8Array(8) })
  pair.server.receive(new Uint8Array(Buffer.concat([first, second])), pair.clientAddress, 0)
  assert.ok(pair.server.hasAuthenticated)
  assert.equal(pair.server.closeInfo, undefined)
})

test('of the packets in one datagram a short one to another id is not looked at either', () => {
  const pair = new QuicPair()
  pair.wait(100)
  const client = new ForgedClient(pair)
  // Nothing opens a Handshake packet any more, but its header says whose the datagram is.
  const first = client.datagram(frame(FRAME.ping), LEVEL.handshake, { destinationId: new Uint8Array(8) })
  const second = client.datagram(frame(0x21))
  pair.server.receive(new Uint8Array(Buffer.concat([first, second])), pair.clientAddress, pair.nowMs)
  assert.equal(pair.server.closeInfo, undefined)
})

test('packets without the fixed bit are not looked at', () => {
  const pair = new QuicPair()
  const client = new ForgedClient(pair)
  pair.server.receive(client.datagram(frame(0x21), LEVEL.initial, { isFixedBitMissing: true }), pair.clientAddress, 0)
  assert.equal(pair.server.hasAuthenticated, false)
  pair.wait(100)
  pair.server.receive(
    client.datagram(frame(0x21), LEVEL.application, { isFixedBitMissing: true }),
    pair.clientAddress,
    pair.nowMs,
  )
  assert.equal(pair.server.closeInfo, undefined)
})

test('frames behind one that ends the connection are not looked at', () => {
  const pair = new QuicPair()
  pair.wait(100)
  pair.server.onStream = () => assert.fail('the connection is closed')
  new ForgedClient(pair).send(Uint8Array.of(...frame(FRAME.applicationClose, 7, 0), ...frame(0x0a, 0, 1, 7)))
  assert.deepEqual(pair.server.closeInfo, { code: 7, reason: '', isApplication: true, isLocal: false })
})
