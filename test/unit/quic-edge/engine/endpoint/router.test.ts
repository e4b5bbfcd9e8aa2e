import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { PeerAddress } from '../../../../../src/quic-edge/engine/connection/api.ts'
import { initialKeys, unprotectHeader } from '../../../../../src/quic-edge/engine/crypto/packet-keys.ts'
import { hasRetryIntegrity } from '../../../../../src/quic-edge/engine/crypto/retry-integrity.ts'
import { EndpointSecrets } from '../../../../../src/quic-edge/engine/endpoint/endpoint-secrets.ts'
import { type Acceptance, Router, type RouterOptions } from '../../../../../src/quic-edge/engine/endpoint/router.ts'
import {
  PACKET_TYPE,
  readInvariantHeader,
  readLongHeader,
  writeLongHeader,
} from '../../../../../src/quic-edge/engine/wire/packet-header.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { Writer } from '../../../../../src/quic-edge/engine/wire/writer.ts'
import { SeededRandom } from '../../../../support/seeded-random.ts'

const PEER: PeerAddress = { key: '192.0.2.1|4433', address: '192.0.2.1', port: 4433 }
const OTHER: PeerAddress = { key: '192.0.2.2|4433', address: '192.0.2.2', port: 4433 }
const KEY = Uint8Array.of(1)
const EDGE_ID = Uint8Array.of(2)
const CLIENT_ID = Uint8Array.of(0xc1, 0xc2, 0xc3)
const INITIAL_ID = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9)
const OUR_ID = Uint8Array.of(8, 7, 6, 5, 4, 3, 2, 1)

interface RouterWorld {
  readonly router: Router<string>
  readonly secrets: EndpointSecrets
  admits: boolean
  areSealed: boolean
}

function createRouter(limits: Partial<RouterOptions['limits']> = {}): RouterWorld {
  const secrets = new EndpointSecrets(KEY, EDGE_ID)
  let next = 1
  const world: RouterWorld = {
    admits: true,
    areSealed: true,
    secrets,
    router: new Router<string>({
      limits: { maxHandshakes: 4, retryAboveHandshakes: 2, maxResetsPerSecond: 3, ...limits },
      secrets,
      random: (size) => new Uint8Array(size).fill(next++),
      isSealed: () => world.areSealed,
      admit: () => world.admits,
    }),
  }
  return world
}

interface InitialOptions {
  readonly destinationId?: Uint8Array
  readonly token?: Uint8Array
  readonly size?: number
  readonly type?: typeof PACKET_TYPE.initial | typeof PACKET_TYPE.handshake
  readonly version?: number
}

/** What a client's first packet looks like to whoever cannot open it. */
function initial({ destinationId = INITIAL_ID, token, size = 1200, type = 0, version = 1 }: InitialOptions = {}) {
  const datagram = new Uint8Array(size)
  const writer = new Writer(datagram)
  const fields = { type, destinationId, sourceId: CLIENT_ID, packetNumberSize: 2 }
  writeLongHeader(writer, token === undefined ? fields : { ...fields, token })
  new DataView(datagram.buffer).setUint32(1, version)
  return datagram
}

function short(id: Uint8Array, size = 50): Uint8Array {
  const datagram = new Uint8Array(size)
  datagram[0] = 0x40
  datagram.set(id, 1)
  return datagram
}

function accepted(router: Router<string>, datagram: Uint8Array, from = PEER): Acceptance {
  const answer = router.answer(datagram, from, 0)
  assert.equal(answer?.type, 'accept')
  return answer.type === 'accept' ? answer.acceptance : assert.fail()
}

function sent(router: Router<string>, datagram: Uint8Array, from = PEER, nowMs = 0): Uint8Array {
  const answer = router.answer(datagram, from, nowMs)
  assert.equal(answer?.type, 'send')
  return answer.type === 'send' ? answer.bytes : assert.fail()
}

/** The code of the CONNECTION_CLOSE in an Initial packet that answers one to `destinationId`. */
function closeCode(datagram: Uint8Array, destinationId: Uint8Array = INITIAL_ID): number {
  const header = readLongHeader(datagram)
  assert.ok(header !== undefined)
  assert.deepEqual(header.destinationIdView, CLIENT_ID)
  const keys = initialKeys(destinationId).server
  const numberSize = unprotectHeader(keys, datagram, 0, header.packetNumberAt)
  const plainAt = header.packetNumberAt + numberSize
  const plain = keys.open(0, datagram.subarray(0, plainAt), datagram.subarray(plainAt, header.end))
  assert.ok(plain !== undefined)
  assert.equal(plain[0], 0x1c)
  return plain[1] ?? -1
}

describe('a first packet', () => {
  test('becomes a connection, found by the id the client chose and by those it is given', () => {
    const { router } = createRouter()
    const acceptance = accepted(router, initial())
    assert.deepEqual(acceptance, {
      initialDestinationIdBytes: INITIAL_ID,
      peerIdBytes: CLIENT_ID,
      originalDestinationIdBytes: INITIAL_ID,
      retrySourceIdBytes: undefined,
      isPeerValidated: false,
    })
    assert.equal(router.find(initial()), undefined)
    router.add('one', acceptance)
    router.addId('one', OUR_ID)
    assert.equal(router.find(initial()), 'one')
    assert.equal(router.find(short(OUR_ID)), 'one')
    assert.equal(router.find(initial({ destinationId: OUR_ID, type: PACKET_TYPE.handshake })), 'one')
  })

  test('that comes late, again, does not begin a second connection', () => {
    const { router } = createRouter()
    router.add('one', accepted(router, initial()))
    router.connected('one')
    assert.equal(router.find(initial()), 'one')
  })

  test('leaves nothing behind when it is forgotten', () => {
    const { router } = createRouter()
    router.add('one', accepted(router, initial()))
    router.addId('one', OUR_ID)
    router.remove('one')
    router.remove('one')
    assert.equal(router.find(initial()), undefined)
    assert.equal(router.find(short(OUR_ID)), undefined)
    assert.equal(router.connectionCount, 0)
    assert.equal(router.handshakeCount, 0)
  })

  test('that amplifies, is malformed or of another type is dropped', () => {
    const { router } = createRouter()
    assert.equal(router.answer(initial({ size: 1199 }), PEER, 0), null)
    assert.equal(router.answer(initial({ destinationId: INITIAL_ID.subarray(0, 7) }), PEER, 0), null)
    assert.equal(router.answer(initial({ type: PACKET_TYPE.handshake }), PEER, 0), null)
    assert.equal(router.answer(initial({ version: 0 }), PEER, 0), null)
    assert.equal(router.answer(initial().with(0, 0x80), PEER, 0), null)
    assert.equal(router.answer(new Uint8Array(10), PEER, 0), null)
  })

  test('that is noise is dropped before anybody is asked whether one more may come', () => {
    const world = createRouter()
    world.areSealed = false
    world.admits = false
    assert.equal(world.router.answer(initial(), PEER, 0), null)
  })

  test('of another version is told ours', () => {
    const { router } = createRouter()
    const bytes = sent(router, initial({ version: 0x6b33_43cf }))
    const header = readInvariantHeader(bytes)
    assert.equal(header?.version, 0)
    assert.deepEqual(header?.destinationIdView, CLIENT_ID)
    assert.deepEqual(header?.sourceIdView, INITIAL_ID)
    assert.equal(new DataView(bytes.buffer, bytes.byteOffset).getUint32(bytes.length - 8), 1)
  })

  test('from where no more may come, or when we stop, is refused at once', () => {
    const world = createRouter()
    world.admits = false
    assert.equal(closeCode(sent(world.router, initial())), TRANSPORT_ERROR.connectionRefused)
    world.admits = true
    world.router.stop()
    assert.equal(closeCode(sent(world.router, initial())), TRANSPORT_ERROR.connectionRefused)
  })
})

describe('Retry', () => {
  const begin = (world: RouterWorld, count: number) => {
    for (let i = 0; i < count; i++) {
      const destinationId = new Uint8Array(8).fill(0xa0 + i)
      world.router.add(`handshake ${i}`, accepted(world.router, initial({ destinationId })))
    }
  }
  const retryOf = (world: RouterWorld) => {
    const packet = sent(world.router, initial())
    const header = readLongHeader(packet)
    assert.equal(header?.type, PACKET_TYPE.retry)
    assert.ok(hasRetryIntegrity(INITIAL_ID, packet))
    assert.deepEqual(header.destinationIdView, CLIENT_ID)
    return { token: header.tokenView, retryId: header.sourceIdView }
  }

  test('is asked for while many handshakes are under way, and no longer when they are through', () => {
    const world = createRouter()
    begin(world, 2)
    retryOf(world)
    world.router.connected('handshake 0')
    accepted(world.router, initial())
  })

  test('proves an address, once it comes back from there', () => {
    const world = createRouter({ retryAboveHandshakes: 0 })
    const { token, retryId } = retryOf(world)
    const acceptance = accepted(world.router, initial({ destinationId: retryId, token }))
    assert.deepEqual(acceptance, {
      initialDestinationIdBytes: retryId,
      peerIdBytes: CLIENT_ID,
      originalDestinationIdBytes: INITIAL_ID,
      retrySourceIdBytes: retryId,
      isPeerValidated: true,
    })
  })

  test('takes no token of another address, another id, too old or altered', () => {
    const world = createRouter({ retryAboveHandshakes: 0 })
    const { token, retryId } = retryOf(world)
    const code = (options: InitialOptions, from = PEER, nowMs = 0) =>
      closeCode(
        sent(world.router, initial({ destinationId: retryId, token, ...options }), from, nowMs),
        options.destinationId ?? retryId,
      )
    assert.equal(code({}, OTHER), TRANSPORT_ERROR.invalidToken)
    assert.equal(code({ destinationId: OUR_ID }), TRANSPORT_ERROR.invalidToken)
    assert.equal(code({}, PEER, 15_001), TRANSPORT_ERROR.invalidToken)
    const altered = token.with(19, (token[19] ?? 0) ^ 1)
    assert.equal(code({ token: altered }), TRANSPORT_ERROR.invalidToken)
    assert.equal(code({ token: token.subarray(0, 33) }), TRANSPORT_ERROR.invalidToken)
  })

  test('takes a token of another server, or of an earlier process, for none', () => {
    const world = createRouter({ retryAboveHandshakes: 1 })
    const token = new EndpointSecrets(KEY, EDGE_ID).sealToken(
      { addressKey: PEER.key, retryId: INITIAL_ID },
      INITIAL_ID,
      0,
    )
    for (const foreign of [token, Uint8Array.of(1), new Uint8Array(100)]) {
      const acceptance = accepted(world.router, initial({ token: foreign }))
      assert.equal(acceptance.isPeerValidated, false)
      assert.equal(acceptance.retrySourceIdBytes, undefined)
    }
    begin(world, 1)
    const retry = readLongHeader(sent(world.router, initial({ token })))
    assert.equal(retry?.type, PACKET_TYPE.retry)
  })

  test('takes no token of an address that ends like its own, with the rest in the id', () => {
    const world = createRouter({ retryAboveHandshakes: 0 })
    const { token, retryId } = retryOf(world)
    const ending: PeerAddress = { key: PEER.key.slice(1), address: PEER.address.slice(1), port: PEER.port }
    const destinationId = Uint8Array.of(...retryId, PEER.key.charCodeAt(0))
    const bytes = sent(world.router, initial({ destinationId, token }), ending)
    assert.equal(closeCode(bytes, destinationId), TRANSPORT_ERROR.invalidToken)
  })

  test('does not help beyond the limit of handshakes: those wait and try again', () => {
    const world = createRouter({ maxHandshakes: 2 })
    begin(world, 2)
    const { token, retryId } = retryOf(world)
    assert.equal(world.router.answer(initial({ destinationId: retryId, token }), PEER, 0), null)
  })
})

describe('a packet of a connection that is gone', () => {
  test('is answered with the token of its id, by a smaller packet', () => {
    const { router, secrets } = createRouter()
    const bytes = sent(router, short(OUR_ID, 50))
    assert.ok(bytes.length < 50)
    assert.equal((bytes[0] ?? 0) & 0xc0, 0x40)
    assert.deepEqual(bytes.subarray(-16), Uint8Array.from(secrets.resetToken(OUR_ID)))
    assert.deepEqual(
      secrets.resetToken(OUR_ID),
      new EndpointSecrets(KEY, EDGE_ID).resetToken(OUR_ID),
      'the next process knows it',
    )
    assert.notDeepEqual(secrets.resetToken(OUR_ID), new EndpointSecrets(CLIENT_ID, EDGE_ID).resetToken(OUR_ID))
    assert.notDeepEqual(
      secrets.resetToken(OUR_ID),
      new EndpointSecrets(KEY, CLIENT_ID).resetToken(OUR_ID),
      'another edge with the same key does not',
    )
  })

  test('that is too small to be answered by a smaller one is not answered', () => {
    const { router } = createRouter()
    assert.equal(router.answer(short(OUR_ID, 21), PEER, 0), null)
    assert.equal(sent(router, short(OUR_ID, 22)).length, 21)
    assert.equal(router.answer(short(OUR_ID, 50).with(0, 0), PEER, 0), null, 'nor is one without the fixed bit')
  })

  test('is answered so many times a second', () => {
    const { router } = createRouter()
    const answered = (nowMs: number) => router.answer(short(OUR_ID), PEER, nowMs) !== null
    assert.deepEqual([1, 2, 3, 4].map(answered), [true, true, true, false])
    assert.equal(answered(1000), true)
  })
})

test('what was refused is counted by its reason, and how many were asked to prove their address', () => {
  const world = createRouter({ retryAboveHandshakes: 0, maxHandshakes: 1 })
  const { router } = world
  const header = readLongHeader(sent(router, initial())) ?? assert.fail()
  const proved = initial({ destinationId: header.sourceIdView, token: header.tokenView })
  router.answer(proved, OTHER, 0)
  world.admits = false
  router.answer(proved, PEER, 0)
  world.admits = true
  router.add('one', accepted(router, proved))
  router.answer(proved, PEER, 0)
  router.stop()
  router.answer(initial(), PEER, 0)
  assert.deepEqual(router.counts, { refused: { limit: 1, handshakes: 1, token: 1, stopping: 1 }, retries: 1 })
})

test('no bytes at all break it', () => {
  const { router } = createRouter()
  const random = new SeededRandom(7)
  for (let i = 0; i < 20_000; i++) {
    const datagram = i % 2 === 0 ? initial() : new Uint8Array(random.below(1300))
    for (let n = random.below(30); n >= 0; n--)
      datagram[random.below(Math.min(datagram.length, 60))] = random.below(256)
    if (router.find(datagram) === undefined) router.answer(datagram, PEER, i)
  }
  assert.equal(router.connectionCount, 0)
})
