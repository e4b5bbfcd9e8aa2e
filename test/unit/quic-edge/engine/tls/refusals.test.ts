/** What a server must not take from a client, and the code that it closes with (RFC 8446, RFC 9001). */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { GROUP } from '../../../../../src/quic-edge/engine/crypto/key-exchange.ts'
import {
  LEVEL,
  type Level,
  SIGNATURE_SCHEME,
  type TlsServerOptions,
} from '../../../../../src/quic-edge/engine/tls/api.ts'
import { CLIENT_HELLO_SIZE_MAX } from '../../../../../src/quic-edge/engine/tls/client-hello.ts'
import { EXTENSION, encodeMessage, MESSAGE, vector } from '../../../../../src/quic-edge/engine/tls/message.ts'
import { TlsServer } from '../../../../../src/quic-edge/engine/tls/tls-server.ts'
import { ALERT, QuicError, TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import {
  encodeClientHello,
  groups,
  type HelloExtension,
  type HelloParts,
  helloOf,
  keyShares,
  protocols,
  serverName,
  signatureSchemes,
  tls13,
  transportParameters,
  versions,
} from '../../../../support/quic/client-hello.ts'
import { makeIdentity } from '../../../../support/quic/identities.ts'
import { TlsPair, TlsRecorder } from '../../../../support/quic/tls-pair.ts'

const identity = makeIdentity('ecdsa-p256')
const random = new Uint8Array(32).fill(7)
/** Any 32 bytes are a key of X25519. */
const share = { group: GROUP.x25519, publicBytes: new Uint8Array(32).fill(9) }
const bytes = (hex: string) => Uint8Array.fromHex(hex)

const HONEST: readonly HelloExtension[] = [
  tls13(),
  groups(GROUP.x25519, GROUP.p256),
  signatureSchemes(SIGNATURE_SCHEME.ecdsaP256Sha256),
  keyShares(share),
  transportParameters(bytes('0f00')),
]

/** The honest extensions with others in place of those of the same id, or behind them. */
function withExtensions(...others: readonly HelloExtension[]): readonly HelloExtension[] {
  const replaced = HONEST.map((honest) => others.find(([id]) => id === honest[0]) ?? honest)
  return [...replaced, ...others.filter(([id]) => !HONEST.some((honest) => honest[0] === id))]
}

const without = (id: number) => HONEST.filter((one) => one[0] !== id)

function hello(extensions: readonly HelloExtension[] = HONEST, parts: Partial<HelloParts> = {}): Uint8Array {
  return encodeClientHello({ ...helloOf(random, [0x1301], extensions), ...parts })
}

function newServer(options: Partial<TlsServerOptions> = {}, events = new TlsRecorder()): TlsServer {
  const own = { identity: () => identity, alpnProtocols: [], transportParameters: bytes('0f00'), random: randomBytes }
  return new TlsServer({ ...own, ...options }, events)
}

const isCode = (code: number) => (error: unknown) => error instanceof QuicError && error.code === code

/** @param alert of TLS. */
function assertAlert(alert: number, message: Uint8Array, options: Partial<TlsServerOptions> = {}): void {
  assertCode(0x100 + alert, message, options)
}

function assertCode(code: number, message: Uint8Array, options: Partial<TlsServerOptions> = {}): void {
  const events = new TlsRecorder()
  const server = newServer(options, events)
  assert.throws(() => server.receive(LEVEL.initial, message), isCode(code))
  assert.deepEqual(events.sent, [], 'nothing was answered')
  assert.equal(events.secrets.size, 0)
  server.receive(LEVEL.initial, hello())
  assert.deepEqual(events.sent, [], 'nothing is taken afterwards')
}

test('the honest hello that all others here are made of is answered', () => {
  const events = new TlsRecorder()
  newServer({}, events).receive(LEVEL.initial, hello())
  assert.deepEqual(
    events.sent.map(({ level }) => level),
    [LEVEL.initial, LEVEL.handshake],
  )
})

test('a client without TLS 1.3', () => {
  assertAlert(ALERT.protocolVersion, hello(without(EXTENSION.supportedVersions)))
  assertAlert(ALERT.protocolVersion, hello(withExtensions(versions(0x0303, 0x0302))))
  assertAlert(ALERT.protocolVersion, hello([]))
  assertAlert(ALERT.protocolVersion, hello(without(EXTENSION.supportedVersions), { legacyVersion: 0x0304 }))
  const parts = helloOf(random, [0x1301], [])
  const cut = encodeClientHello(parts).slice(0, -2)
  cut[3] = (cut[3] ?? 0) - 2
  assertAlert(ALERT.protocolVersion, cut)
})

test('fields around the extensions', () => {
  assertCode(TRANSPORT_ERROR.protocolViolation, hello(HONEST, { sessionId: new Uint8Array(32) }))
  assertAlert(ALERT.illegalParameter, hello(HONEST, { compression: bytes('0100') }))
  assertAlert(ALERT.illegalParameter, hello(HONEST, { compression: bytes('01') }))
  assertAlert(ALERT.illegalParameter, hello(HONEST, { compression: bytes('') }))
  assertAlert(ALERT.decodeError, hello(HONEST, { suites: [] }))
})

test('nothing in common', () => {
  assertAlert(ALERT.handshakeFailure, hello(HONEST, { suites: [0x1304, 0xc02b] }))
  assertAlert(ALERT.handshakeFailure, hello(HONEST, { suites: [0x1302] }), { suites: [0x1301] })
  const p384 = { group: 0x0018, publicBytes: new Uint8Array(97) }
  assertAlert(ALERT.handshakeFailure, hello(withExtensions(groups(0x0018), keyShares(p384))))
  assertAlert(ALERT.handshakeFailure, hello(withExtensions(signatureSchemes(SIGNATURE_SCHEME.ed25519))))
})

test('a server that needs a protocol refuses clients without one of its own', () => {
  const alpnProtocols = ['iggy']
  assertAlert(ALERT.noApplicationProtocol, hello(), { alpnProtocols })
  assertAlert(ALERT.noApplicationProtocol, hello(withExtensions(protocols('h3', 'iggy2'))), { alpnProtocols })
})

test('extensions that must be there', () => {
  for (const id of [
    EXTENSION.supportedGroups,
    EXTENSION.signatureAlgorithms,
    EXTENSION.keyShare,
    EXTENSION.quicTransportParameters,
  ]) {
    assertAlert(ALERT.missingExtension, hello(without(id)))
  }
  assertAlert(ALERT.missingExtension, hello(withExtensions([EXTENSION.preSharedKey, bytes('00')])))
})

test('an extension that comes twice, also one that nobody knows', () => {
  assertAlert(ALERT.decodeError, hello([...HONEST, tls13()]))
  assertAlert(ALERT.decodeError, hello([[0x5a5a, bytes('')], ...HONEST, [0x5a5a, bytes('')]]))
})

test('the legacy version decides nothing', () => {
  for (const legacyVersion of [0x0300, 0x0304, 0xffff]) {
    const events = new TlsRecorder()
    newServer({}, events).receive(LEVEL.initial, hello(HONEST, { legacyVersion }))
    assert.equal(events.sent.length, 2)
  }
})

test('extensions and values that nobody knows are passed over', () => {
  const events = new TlsRecorder()
  const extensions = withExtensions(
    [0x5a5a, bytes('00')],
    versions(0x5a5a, 0x0304, 0x0303),
    groups(0x3a3a, GROUP.x25519),
    keyShares({ group: 0x3a3a, publicBytes: bytes('00') }, share),
    signatureSchemes(0x7777, SIGNATURE_SCHEME.ecdsaP256Sha256),
    protocols('h3'),
  )
  newServer({}, events).receive(LEVEL.initial, hello(extensions, { suites: [0x5a5a, 0x1301] }))
  assert.equal(events.sent.length, 2)
})

test('bytes behind the end of anything', () => {
  const trailing = ([id, content]: HelloExtension): HelloExtension => [id, Buffer.concat([content, bytes('00')])]
  const lists = [...without(EXTENSION.quicTransportParameters), serverName('gateway'), protocols('iggy')]
  for (const one of lists) assertAlert(ALERT.decodeError, hello(withExtensions(trailing(one))))
  const message = hello()
  const longer = encodeMessage(MESSAGE.clientHello, message.subarray(4), bytes('00'))
  assertAlert(ALERT.decodeError, longer)
})

test('lists that are empty, or of half a number', () => {
  for (const id of [EXTENSION.supportedGroups, EXTENSION.signatureAlgorithms]) {
    assertAlert(ALERT.decodeError, hello(withExtensions([id, vector(2)])))
    assertAlert(ALERT.decodeError, hello(withExtensions([id, vector(2, bytes('001d00'))])))
  }
  assertAlert(ALERT.decodeError, hello(withExtensions([EXTENSION.supportedVersions, vector(1)])))
  assertAlert(ALERT.decodeError, hello(withExtensions([EXTENSION.supportedVersions, vector(1, bytes('030403'))])))
  assertAlert(ALERT.decodeError, hello(withExtensions([EXTENSION.alpn, vector(2)])))
  assertAlert(ALERT.decodeError, hello(withExtensions([EXTENSION.alpn, vector(2, vector(1))])))
})

test('names that are none', () => {
  const name = (type: number, text: Uint8Array): HelloExtension => [
    EXTENSION.serverName,
    vector(2, Uint8Array.of(type), vector(2, text)),
  ]
  assertAlert(ALERT.decodeError, hello(withExtensions(name(0, bytes('')))))
  assertAlert(ALERT.illegalParameter, hello(withExtensions(name(1, bytes('61')))))
  assertAlert(ALERT.illegalParameter, hello(withExtensions(name(0, bytes('610062')))))
  assertAlert(ALERT.illegalParameter, hello(withExtensions(name(0, bytes('c3a4')))))
  assertAlert(ALERT.illegalParameter, hello(withExtensions(name(0, new Uint8Array(256).fill(0x61)))))
  const two = Buffer.concat([Uint8Array.of(0), vector(2, bytes('61')), Uint8Array.of(0), vector(2, bytes('62'))])
  assertAlert(ALERT.decodeError, hello(withExtensions([EXTENSION.serverName, vector(2, two)])))
})

test('key shares that are not what they say', () => {
  const x25519 = (publicBytes: Uint8Array) => withExtensions(keyShares({ group: GROUP.x25519, publicBytes }))
  const p256 = (publicBytes: Uint8Array) => withExtensions(keyShares({ group: GROUP.p256, publicBytes }))
  assertAlert(ALERT.illegalParameter, hello(x25519(new Uint8Array(31).fill(9))))
  assertAlert(ALERT.illegalParameter, hello(x25519(new Uint8Array(33).fill(9))))
  assertAlert(ALERT.illegalParameter, hello(x25519(new Uint8Array(32)))) // of small order: the secret would be zero
  assertAlert(ALERT.illegalParameter, hello(p256(new Uint8Array(65).fill(4)))) // not on the curve
  assertAlert(ALERT.illegalParameter, hello(p256(new Uint8Array(33).fill(2)))) // compressed
  assertAlert(ALERT.illegalParameter, hello(p256(bytes('00'))))
  assertAlert(ALERT.decodeError, hello(x25519(bytes(''))))
  assertAlert(ALERT.illegalParameter, hello(withExtensions(keyShares(share, share))))
  const p384 = { group: 0x0018, publicBytes: new Uint8Array(97) }
  assertAlert(ALERT.illegalParameter, hello(withExtensions(keyShares(share, p384))))
})

test('a pre-shared key out of place, and a cookie that nobody gave', () => {
  const modes: HelloExtension = [EXTENSION.pskKeyExchangeModes, vector(1, bytes('01'))]
  const key: HelloExtension = [EXTENSION.preSharedKey, bytes('00')]
  assertAlert(ALERT.illegalParameter, hello([...HONEST, key, modes]))
  assertAlert(ALERT.illegalParameter, hello(withExtensions([EXTENSION.cookie, vector(2, bytes('aa'))])))
  const events = new TlsRecorder()
  newServer({}, events).receive(LEVEL.initial, hello([...HONEST, modes, key]))
  assert.equal(events.sent.length, 2, 'a key in its place is passed over: no ticket was given')
})

test('a hello up to the bound is read, and one above it is refused by its header', () => {
  const sizeOf = (padding: number) => hello(withExtensions([21, new Uint8Array(padding)]))
  const room = CLIENT_HELLO_SIZE_MAX - sizeOf(0).length
  const events = new TlsRecorder()
  newServer({}, events).receive(LEVEL.initial, sizeOf(room))
  assert.equal(events.sent.length, 2)
  assertCode(TRANSPORT_ERROR.cryptoBufferExceeded, sizeOf(room + 1).subarray(0, 4))
  assertCode(TRANSPORT_ERROR.cryptoBufferExceeded, bytes('01ffffff'))
})

test('a message that is not awaited, known by its first byte', () => {
  for (const type of [0, 2, 4, 5, 11, 15, 20, 24, 255]) assertAlert(ALERT.unexpectedMessage, Uint8Array.of(type))
})

test('data at a level whose turn it is not', () => {
  for (const level of [LEVEL.handshake, LEVEL.application]) {
    assert.throws(() => newServer().receive(level, hello()), isCode(0x100 + ALERT.unexpectedMessage))
  }
})

test('bytes behind the hello: the next flight has other keys', () => {
  assertCode(TRANSPORT_ERROR.protocolViolation, Buffer.concat([hello(), bytes('01')]))
  assertCode(TRANSPORT_ERROR.protocolViolation, Buffer.concat([hello(), hello()]))
})

test('a hello after the hello was answered', () => {
  const server = newServer()
  server.receive(LEVEL.initial, hello())
  assert.throws(() => server.receive(LEVEL.initial, hello()), isCode(0x100 + ALERT.unexpectedMessage))
})

test('transport parameters that the connection refuses end the handshake before an answer', () => {
  class Refusing extends TlsRecorder {
    override peerTransportParameters(): void {
      throw new QuicError(TRANSPORT_ERROR.transportParameterError, 'refused')
    }
  }
  const events = new Refusing()
  const server = newServer({}, events)
  assert.throws(() => server.receive(LEVEL.initial, hello()), isCode(TRANSPORT_ERROR.transportParameterError))
  assert.deepEqual(events.sent, [])
})

/** @param alter makes the second hello of the first. */
function answerRetry(second: Uint8Array): TlsRecorder {
  const events = new TlsRecorder()
  const server = newServer({}, events)
  server.receive(LEVEL.initial, hello(withExtensions(keyShares())))
  assert.deepEqual(
    events.sent.map(({ level }) => level),
    [LEVEL.initial],
  )
  events.sent.length = 0
  server.receive(LEVEL.initial, second)
  return events
}

test('a second hello that differs from the first in more than its key share', () => {
  assert.equal(answerRetry(hello()).sent.length, 2, 'the honest one')
  const padded = hello(withExtensions([21, new Uint8Array(9)]))
  assert.equal(answerRetry(padded).sent.length, 2, 'padding may differ')
  const otherRandom = encodeClientHello(helloOf(new Uint8Array(32), [0x1301], HONEST))
  const p256 = { group: GROUP.p256, publicBytes: new Uint8Array(65) }
  const refused = [
    otherRandom,
    hello(HONEST, { suites: [0x1301, 0x1302] }),
    hello(HONEST, { suites: [0x1302] }),
    hello(withExtensions(keyShares())),
    hello(withExtensions(keyShares(p256))),
    hello(withExtensions(keyShares(share, p256))),
    hello(withExtensions(groups(GROUP.x25519))),
    hello(withExtensions(signatureSchemes(SIGNATURE_SCHEME.ecdsaP256Sha256, SIGNATURE_SCHEME.ed25519))),
    hello(withExtensions(versions(0x0304, 0x0303))),
    hello(withExtensions(transportParameters(bytes('0f01aa')))),
    hello(withExtensions(protocols('iggy'))),
    hello(withExtensions(serverName('gateway'))),
    hello(withExtensions([EXTENSION.earlyData, bytes('')])),
    hello(withExtensions([EXTENSION.cookie, vector(2, bytes('aa'))])),
  ]
  for (const second of refused) assert.throws(() => answerRetry(second), isCode(0x100 + ALERT.illegalParameter))
})

test('a second hello that came before it was asked for', () => {
  const first = hello(withExtensions(keyShares()))
  const server = newServer()
  const both = Buffer.concat([first, hello()])
  assert.throws(() => server.receive(LEVEL.initial, both), isCode(TRANSPORT_ERROR.protocolViolation))
})

/** Runs a handshake until the client's Finished, which `alter` makes another. */
function finishWith(alter: (finished: Uint8Array) => Uint8Array, level: Level = LEVEL.handshake): TlsRecorder {
  const pair = new TlsPair(
    { transportParameters: bytes('0f00'), random: randomBytes },
    { identity: () => identity, alpnProtocols: [], transportParameters: bytes('0f00'), random: randomBytes },
  )
  for (const { level: at, bytes: sent } of pair.clientEvents.sent.splice(0)) pair.server.receive(at, sent)
  for (const { level: at, bytes: sent } of pair.serverEvents.sent.splice(0)) pair.client.receive(at, sent)
  const finished = pair.clientEvents.sent[0]?.bytes ?? new Uint8Array()
  try {
    pair.server.receive(level, alter(finished))
  } finally {
    assert.ok(pair.clientEvents.isDone)
    assert.equal(pair.serverEvents.isDone, pair.serverEvents.secrets.has('application receive'))
  }
  return pair.serverEvents
}

test('a Finished that is not the right one', () => {
  assert.ok(finishWith((finished) => finished).isDone)
  const body = (finished: Uint8Array) => finished.subarray(4)
  const refused: [number, (finished: Uint8Array) => Uint8Array][] = [
    [0x100 + ALERT.decryptError, (finished) => finished.map((byte, at) => (at === 35 ? byte ^ 1 : byte))],
    [0x100 + ALERT.decryptError, (finished) => finished.map((byte, at) => (at === 4 ? byte ^ 0x80 : byte))],
    [0x100 + ALERT.decodeError, (finished) => encodeMessage(MESSAGE.finished, body(finished).subarray(1))],
    [0x100 + ALERT.decodeError, (finished) => encodeMessage(MESSAGE.finished, body(finished), bytes('00'))],
    [0x100 + ALERT.decodeError, () => encodeMessage(MESSAGE.finished)],
    [TRANSPORT_ERROR.cryptoBufferExceeded, () => encodeMessage(MESSAGE.finished, new Uint8Array(49))],
    [TRANSPORT_ERROR.protocolViolation, (finished) => Buffer.concat([finished, bytes('14')])],
    [0x100 + ALERT.unexpectedMessage, () => encodeMessage(MESSAGE.certificate, bytes('00000000'))],
    [0x100 + ALERT.unexpectedMessage, () => bytes('05000000')], // EndOfEarlyData
  ]
  for (const [code, alter] of refused) assert.throws(() => finishWith(alter), isCode(code))
  for (const level of [LEVEL.initial, LEVEL.application]) {
    assert.throws(() => finishWith((finished) => finished, level), isCode(0x100 + ALERT.unexpectedMessage))
  }
})

test('anything after the handshake, a KeyUpdate of TLS among it', () => {
  for (const level of Object.values(LEVEL)) {
    const pair = new TlsPair(
      { transportParameters: bytes('0f00'), random: randomBytes },
      { identity: () => identity, alpnProtocols: [], transportParameters: bytes('0f00'), random: randomBytes },
    )
    pair.run()
    pair.server.receive(level, bytes(''))
    assert.throws(() => pair.server.receive(level, bytes('1800000100')), isCode(0x100 + ALERT.unexpectedMessage))
  }
})
