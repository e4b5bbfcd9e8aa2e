import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { CIPHER_SUITES } from '../../../../../src/quic-edge/engine/crypto/cipher-suite.ts'
import { GROUP, GROUPS } from '../../../../../src/quic-edge/engine/crypto/key-exchange.ts'
import { SIGNATURE_SCHEME, type TlsServerOptions } from '../../../../../src/quic-edge/engine/tls/api.ts'
import { makeIdentity } from '../../../../support/quic/identities.ts'
import type { TlsClientOptions } from '../../../../support/quic/tls-client.ts'
import { TlsPair } from '../../../../support/quic/tls-pair.ts'

const HYBRID = 0x11ec
const identity = makeIdentity('ecdsa-p256')
const clientParameters = Uint8Array.of(0x0f, 0x00)
const serverParameters = Uint8Array.of(0x00, 0x01, 0xaa, 0x0f, 0x00)

function pairOf(client: Partial<TlsClientOptions> = {}, server: Partial<TlsServerOptions> = {}): TlsPair {
  return new TlsPair(
    { transportParameters: clientParameters, random: randomBytes, ...client },
    {
      identity: () => identity,
      alpnProtocols: [],
      transportParameters: serverParameters,
      random: randomBytes,
      ...server,
    },
  )
}

function assertAgreed({ clientEvents, serverEvents }: TlsPair): void {
  assert.ok(clientEvents.isDone && serverEvents.isDone)
  for (const level of ['handshake', 'application']) {
    const toServer = clientEvents.secrets.get(`${level} send`)
    assert.ok(toServer !== undefined && toServer === serverEvents.secrets.get(`${level} receive`))
    const toClient = serverEvents.secrets.get(`${level} send`)
    assert.ok(toClient !== undefined && toClient === clientEvents.secrets.get(`${level} receive`))
    assert.notEqual(toServer, toClient)
  }
  assert.deepEqual(serverEvents.peerParameters, clientParameters)
  assert.deepEqual(clientEvents.peerParameters, serverParameters)
}

for (const suite of CIPHER_SUITES) {
  for (const group of GROUPS) {
    test(`a handshake with ${suite.name} and group ${group} gives both sides the same secrets`, () => {
      const pair = pairOf({ suites: [suite.id], groups: [group] })
      pair.run()
      assertAgreed(pair)
      assert.equal(pair.serverEvents.suite, suite)
      assert.equal(pair.client.hasRetried, false)
    })
  }
}

for (const [kind, scheme] of [
  ['ecdsa-p256', SIGNATURE_SCHEME.ecdsaP256Sha256],
  ['ecdsa-p384', SIGNATURE_SCHEME.ecdsaP384Sha384],
  ['ed25519', SIGNATURE_SCHEME.ed25519],
  ['rsa', SIGNATURE_SCHEME.rsaPssSha256],
] as const) {
  test(`a server with a key of kind ${kind} proves that it has it`, () => {
    const own = makeIdentity(kind)
    const pair = pairOf({}, { identity: () => own })
    pair.run()
    assertAgreed(pair)
    assert.equal(pair.client.signatureScheme, scheme)
  })
}

test('an RSA key signs with the scheme that the client knows', () => {
  const own = makeIdentity('rsa')
  for (const scheme of [SIGNATURE_SCHEME.rsaPssSha384, SIGNATURE_SCHEME.rsaPssSha512]) {
    const pair = pairOf({ signatureSchemes: [scheme] }, { identity: () => own })
    pair.run()
    assert.equal(pair.client.signatureScheme, scheme)
  }
})

test('messages may come byte by byte', () => {
  const pair = pairOf({ serverName: 'gateway-7.example' })
  pair.run(1)
  assertAgreed(pair)
})

test('a client without a share of our group is asked for one', () => {
  for (const [own, other] of [
    [GROUP.p256, GROUP.x25519],
    [GROUP.x25519, GROUP.p256],
  ] as const) {
    for (const suite of CIPHER_SUITES) {
      const pair = pairOf({ groups: [other, own], suites: [suite.id] }, { groups: [own] })
      pair.run()
      assertAgreed(pair)
      assert.ok(pair.client.hasRetried)
    }
  }
})

test('a client with no share at all is asked for one', () => {
  const pair = pairOf({ shareGroups: [] })
  pair.run()
  assertAgreed(pair)
  assert.ok(pair.client.hasRetried)
})

test('a hybrid share in front is passed over for the X25519 share behind it', () => {
  const foreignShares = [{ group: HYBRID, publicBytes: randomBytes(1216) }]
  const pair = pairOf({ foreignShares })
  assert.ok((pair.clientEvents.sent[0]?.bytes.length ?? 0) > 1200, 'the hello spans two Initial packets')
  pair.run(1000)
  assertAgreed(pair)
  assert.equal(pair.client.hasRetried, false)
})

test('a client with a hybrid share alone is asked for X25519', () => {
  const foreignShares = [{ group: HYBRID, publicBytes: randomBytes(1216) }]
  const pair = pairOf({ foreignShares, shareGroups: [] })
  pair.run(1000)
  assertAgreed(pair)
  assert.ok(pair.client.hasRetried)
})

test('no retry for a group that comes first with us when there is a share of another', () => {
  const pair = pairOf({ groups: [GROUP.p256, GROUP.x25519], shareGroups: [GROUP.p256] })
  pair.run()
  assertAgreed(pair)
  assert.equal(pair.client.hasRetried, false)
})

test('AES is chosen, unless the client puts ChaCha20 first', () => {
  const chosen = (suites: readonly number[], ours?: readonly number[]) => {
    const pair = pairOf({ suites }, ours === undefined ? {} : { suites: ours })
    pair.run()
    return pair.client.suite?.id
  }
  assert.equal(chosen([0x1302, 0x1301, 0x1303]), 0x1301)
  assert.equal(chosen([0x1303, 0x1302, 0x1301]), 0x1303)
  assert.equal(chosen([0x1303, 0x1302, 0x1301], [0x1302]), 0x1302)
  assert.equal(chosen([0x1301, 0x1302, 0x1303], [0x1303, 0x1301]), 0x1303)
})

test('a protocol is agreed on where the server has one; without, the list of the client is ignored', () => {
  const agreed = (ours: readonly string[], theirs: readonly string[] | undefined) => {
    const pair = pairOf(theirs === undefined ? {} : { alpnProtocols: theirs }, { alpnProtocols: ours })
    pair.run()
    assertAgreed(pair)
    assert.equal(pair.client.alpn, pair.server.alpn)
    return pair.server.alpn
  }
  assert.equal(agreed([], undefined), undefined)
  assert.equal(agreed([], ['h3']), undefined)
  assert.equal(agreed(['iggy', 'h3'], ['h3', 'iggy']), 'iggy')
})

test('the name that the client asks for is known, in lower case', () => {
  const pair = pairOf({ serverName: 'Gateway-7.Example' })
  pair.run()
  assert.equal(pair.server.serverName, 'gateway-7.example')
  const nameless = pairOf()
  nameless.run()
  assert.equal(nameless.server.serverName, undefined)
})

test('the certificate of the moment is used, with its chain', () => {
  const leaf = makeIdentity('ecdsa-p256')
  const chain = { ...leaf, certificates: [...leaf.certificates, ...identity.certificates] }
  let lengths: number[] = []
  const verify = (certificates: readonly unknown[]) => {
    lengths = [...lengths, certificates.length]
  }
  const identities = [leaf, chain]
  for (let i = 0; i < 2; i++) pairOf({ verify }, { identity: () => identities[i] ?? leaf }).run()
  assert.deepEqual(lengths, [1, 2])
})
