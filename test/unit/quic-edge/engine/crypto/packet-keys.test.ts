/** The sample packets of RFC 9001 appendix A, and what no sample shows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AES_128_GCM,
  AES_256_GCM,
  CHACHA20_POLY1305,
  CIPHER_SUITES,
} from '../../../../../src/quic-edge/engine/crypto/cipher-suite.ts'
import {
  initialKeys,
  PacketKeys,
  protectHeader,
  TAG_SIZE,
  unprotectHeader,
} from '../../../../../src/quic-edge/engine/crypto/packet-keys.ts'
import { hasRetryIntegrity, retryIntegrityTag } from '../../../../../src/quic-edge/engine/crypto/retry-integrity.ts'
import { SAMPLE_CLIENT_INITIAL, SAMPLE_CRYPTO_FRAME } from '../../../../support/quic/sample-packets.ts'

const bytes = (hex: string) => Uint8Array.fromHex(hex)
const clientId = bytes('8394c8f03e515708')

/** Header, packet number within it, payload: protected as it goes out. */
function protect(keys: PacketKeys, header: Uint8Array, packetNumber: number, size: number, plain: Uint8Array) {
  const packet = new Uint8Array(header.length + plain.length + TAG_SIZE)
  packet.set(header)
  assert.equal(keys.seal(packetNumber, header, plain, packet, header.length), plain.length + TAG_SIZE)
  protectHeader(keys, packet, 0, header.length - size, size)
  return packet
}

test("A.2: a client's Initial packet", () => {
  const header = bytes('c300000001088394c8f03e5157080000449e00000002')
  const plain = new Uint8Array(1162)
  plain.set(bytes(SAMPLE_CRYPTO_FRAME))
  const packet = protect(initialKeys(clientId).client, header, 2, 4, plain)
  assert.equal(packet.toHex(), SAMPLE_CLIENT_INITIAL)
})

test("A.3: a server's Initial packet", () => {
  const header = bytes('c1000000010008f067a5502a4262b50040750001')
  const plain = bytes(
    '02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a045a1200130100002e00330024' +
      '001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00020304',
  )
  const packet = protect(initialKeys(clientId).server, header, 1, 2, plain)
  const expected =
    'cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c' +
    '3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f5889' +
    '1850abbdca3d20398c276456cbc42158407dd074ee'
  assert.equal(packet.toHex(), expected)
})

test('A.4: a Retry packet', () => {
  const packet = bytes('ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba')
  const tag = retryIntegrityTag(clientId, packet.subarray(0, -TAG_SIZE))
  assert.equal(Buffer.from(tag).toString('hex'), '04a265ba2eff4d829058fb3f0f2496ba')
  assert.ok(hasRetryIntegrity(clientId, packet))
  packet[20] = 0
  assert.ok(!hasRetryIntegrity(clientId, packet))
  assert.ok(!hasRetryIntegrity(clientId, packet.subarray(0, TAG_SIZE)))
})

test('A.5: a packet with a short header under ChaCha20-Poly1305, and the update of its keys', () => {
  const secret = bytes('9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b')
  const keys = new PacketKeys(CHACHA20_POLY1305, secret)
  const packet = protect(keys, bytes('4200bff4'), 654_360_564, 3, bytes('01'))
  assert.equal(packet.toHex(), '4cfe4189655e5cd55c41f69080575d7999c25a5bfb')
  const updated = new PacketKeys(
    CHACHA20_POLY1305,
    bytes('1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9'),
  )
  const [one, other] = [new Uint8Array(17), new Uint8Array(17)]
  keys.next().seal(7, packet, bytes('01'), one, 0)
  updated.seal(7, packet, bytes('01'), other, 0)
  assert.deepEqual(one, other)
})

for (const suite of CIPHER_SUITES) {
  test(`${suite.name}: what was sealed opens, and nothing else does`, () => {
    const secret = new Uint8Array(suite.hashSize).fill(7)
    const [sender, receiver] = [new PacketKeys(suite, secret), new PacketKeys(suite, secret)]
    const header = bytes('4311223344')
    const plain = new Uint8Array(300).fill(9)
    for (const packetNumber of [0, 1, 255, 256, 2 ** 31, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]) {
      const sealed = new Uint8Array(plain.length + TAG_SIZE)
      sender.seal(packetNumber, header, plain, sealed, 0)
      assert.deepEqual(new Uint8Array(receiver.open(packetNumber, header, sealed) ?? []), plain)
      assert.equal(receiver.open(packetNumber === 0 ? 1 : packetNumber - 1, header, sealed), undefined)
      assert.equal(receiver.open(packetNumber, bytes('4311223345'), sealed), undefined)
      assert.equal(receiver.next().open(packetNumber, header, sealed), undefined)
      sealed[packetNumber % sealed.length] = (sealed[packetNumber % sealed.length] ?? 0) ^ 1
      assert.equal(receiver.open(packetNumber, header, sealed), undefined)
    }
    assert.equal(receiver.open(0, header, new Uint8Array(TAG_SIZE - 1)), undefined)
    assert.equal(receiver.open(0, header, new Uint8Array(TAG_SIZE)), undefined)
    assert.equal(sender.sealedCount, 8)
    assert.equal(sender.next().sealedCount, 0)
  })

  test(`${suite.name}: the mask comes off a header as it went on, also after an update of the keys`, () => {
    const keys = new PacketKeys(suite, new Uint8Array(suite.hashSize).fill(3))
    for (const [first, numberAt] of [
      [0xc0, 20],
      [0x40, 9],
    ] as const) {
      for (let size = 1; size <= 4; size++) {
        const packet = Uint8Array.from({ length: 60 }, (_, i) => i * 7)
        packet[0] = first | (size - 1)
        const before = packet.slice()
        protectHeader(keys, packet, 0, numberAt, size)
        assert.notDeepEqual(packet.subarray(numberAt, numberAt + size), before.subarray(numberAt, numberAt + size))
        assert.deepEqual(packet.subarray(numberAt + size), before.subarray(numberAt + size))
        assert.equal(unprotectHeader(keys.next(), packet, 0, numberAt), size)
        assert.deepEqual(packet, before)
      }
    }
  })
}

test('plain text may be sealed in place', () => {
  const keys = new PacketKeys(AES_128_GCM, new Uint8Array(32))
  const header = bytes('40aabb')
  const plain = new Uint8Array(1100).fill(5)
  const [apart, inPlace] = [new Uint8Array(1200), new Uint8Array(1200)]
  keys.seal(1, header, plain, apart, 3)
  inPlace.set(plain, 3)
  keys.seal(1, header, inPlace.subarray(3, 1103), inPlace, 3)
  assert.deepEqual(inPlace, apart)
})

test('the limits of RFC 9001 section 6.6 are the ones held against', () => {
  assert.equal(AES_128_GCM.sealLimit, 2 ** 23)
  assert.equal(AES_256_GCM.sealLimit, 2 ** 23)
  assert.equal(AES_128_GCM.openFailureLimit, 2 ** 52)
  assert.equal(CHACHA20_POLY1305.openFailureLimit, 2 ** 36)
})
