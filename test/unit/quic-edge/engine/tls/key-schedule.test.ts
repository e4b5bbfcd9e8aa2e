/** The "simple 1-RTT handshake" of RFC 8448 section 3. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { AES_128_GCM, AES_256_GCM } from '../../../../../src/quic-edge/engine/crypto/cipher-suite.ts'
import {
  applicationTraffic,
  earlySecretOf,
  finishedMac,
  handshakeSecretOf,
  handshakeTraffic,
  mainSecretOf,
  Transcript,
} from '../../../../../src/quic-edge/engine/tls/key-schedule.ts'

const bytes = (hex: string) => Uint8Array.fromHex(hex)
const hex = (value: Uint8Array) => Buffer.from(value).toString('hex')

const shared = bytes('8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d')
const helloDigest = bytes('860c06edc07858ee8e78f0e7428c58edd6b43f2ca3e6e95f02ed063cf0e1cad8')
const finishedDigest = bytes('9608102a0f1ccc6db6250b7b7e417b1a000eaada3daae4777a7686c9ff83df13')

test('secrets of the handshake', () => {
  assert.equal(hex(earlySecretOf('sha256')), '33ad0a1c607ec03b09e6cd9893680ce210adf300aa1f2660e1b22e10f170f92a')
  const secret = handshakeSecretOf(AES_128_GCM, shared)
  assert.equal(hex(secret), '1dc826e93606aa6fdc0aadc12f741b01046aa6b99f691ed221a9f0ca043fbeac')
  const { client, server } = handshakeTraffic(AES_128_GCM, secret, helloDigest)
  assert.equal(hex(client), 'b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21')
  assert.equal(hex(server), 'b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38')
})

test('secrets of the application', () => {
  const secret = mainSecretOf(AES_128_GCM, handshakeSecretOf(AES_128_GCM, shared))
  assert.equal(hex(secret), '18df06843d13a08bf2a449844c5f8a478001bc4d4c627984d5a41da8d0402919')
  const { client, server } = applicationTraffic(AES_128_GCM, secret, finishedDigest)
  assert.equal(hex(client), '9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5')
  assert.equal(hex(server), 'a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643')
})

test("the server's Finished", () => {
  const server = bytes('b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38')
  const digest = bytes('edb7725fa7a3473b031ec8ef65a2485493900138a2b91291407d7951a06110ed')
  const mac = finishedMac(AES_128_GCM, server, digest)
  assert.equal(hex(mac), '9b9b141d906337fbd2cbdce71df4deda4ab42c309572cb7fffee5454b78f0718')
})

test('secrets are as long as the hash of the suite', () => {
  const secret = handshakeSecretOf(AES_256_GCM, shared)
  assert.equal(secret.length, 48)
  assert.equal(handshakeTraffic(AES_256_GCM, secret, new Uint8Array(48)).client.length, 48)
  assert.equal(mainSecretOf(AES_256_GCM, secret).length, 48)
})

test('after a retry the first hello is in the transcript by its hash', () => {
  const [first, request, second] = [bytes('0100000101'), bytes('0200000102'), bytes('0100000103')]
  const transcript = Transcript.afterRetry('sha256', first, request)
  transcript.add(second)
  const firstDigest = createHash('sha256').update(first).digest()
  const expected = createHash('sha256').update(bytes('fe000020')).update(firstDigest).update(request).update(second)
  assert.equal(hex(transcript.digest()), expected.digest('hex'))
})
