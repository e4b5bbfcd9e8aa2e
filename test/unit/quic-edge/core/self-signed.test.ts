import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, sign, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { integer, objectIdentifier, octetString, time } from '../../../../src/quic-edge/core/der.ts'
import { encodeSelfSigned } from '../../../../src/quic-edge/core/self-signed.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

test('DER: shortest lengths, positive integers, object identifiers, times', () => {
  assert.equal(hex(integer(Uint8Array.of(0))), '020100')
  assert.equal(hex(integer(Uint8Array.of(0, 0, 127))), '02017f')
  assert.equal(hex(integer(Uint8Array.of(128))), '02020080')
  assert.equal(hex(objectIdentifier('1.2.840.10045.4.3.2')), '06082a8648ce3d040302')
  assert.equal(hex(octetString(new Uint8Array(127))).slice(0, 4), '047f')
  assert.equal(hex(octetString(new Uint8Array(128))).slice(0, 6), '048180')
  assert.equal(hex(octetString(new Uint8Array(300))).slice(0, 8), '0482012c')
  const timeText = (...parts: [number, number, number?, number?, number?, number?]) => {
    const [tag = 0, , ...text] = time(Date.UTC(...parts))
    return `${tag.toString(16)} ${Buffer.from(text).toString()}`
  }
  assert.equal(timeText(2026, 10, 29, 19, 5, 6), '17 261129190506Z')
  assert.equal(timeText(1969, 11, 31, 23), '17 691231230000Z')
  assert.equal(timeText(2049, 11, 31, 23, 59, 59), '17 491231235959Z')
  assert.equal(timeText(2050, 0), '18 20500101000000Z')
  assert.equal(timeText(2232, 0), '18 22320101000000Z')
})

test('OpenSSL reads the certificate as it was meant, and its signature holds', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const notBeforeMs = Date.UTC(2026, 10, 29, 12)
  const notAfterMs = Date.UTC(2026, 11, 12, 12)
  const certificate = new X509Certificate(
    encodeSelfSigned({
      commonName: 'iggy-edge',
      dnsNames: ['localhost', 'gateway-7'],
      ipAddresses: [Uint8Array.of(127, 0, 0, 1)],
      publicKeyDer: createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
      serialBytes: Uint8Array.of(0x41, 2, 3),
      notBeforeMs,
      notAfterMs,
      sign: (bytes) => sign('sha256', bytes, privateKey),
    }),
  )
  assert.ok(certificate.verify(certificate.publicKey))
  assert.equal(certificate.ca, false)
  assert.equal(certificate.subject, 'CN=iggy-edge')
  assert.equal(certificate.serialNumber, '410203')
  assert.equal(certificate.subjectAltName, 'DNS:localhost, DNS:gateway-7, IP Address:127.0.0.1')
  assert.equal(certificate.checkHost('gateway-7'), 'gateway-7')
  assert.equal(Date.parse(certificate.validFrom), notBeforeMs)
  assert.equal(Date.parse(certificate.validTo), notAfterMs)
  assert.equal(certificate.publicKey.asymmetricKeyDetails?.namedCurve, 'prime256v1')
})
