import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { EdgeError } from '../../../../../src/errors.ts'
import { SIGNATURE_SCHEME } from '../../../../../src/quic-edge/engine/tls/api.ts'
import { createIdentity } from '../../../../../src/quic-edge/engine/tls/identity.ts'
import { type KeyKind, makePemPair } from '../../../../support/quic/identities.ts'
import { verifySignature } from '../../../../support/quic/signature.ts'

const SCHEMES = {
  'ecdsa-p256': [SIGNATURE_SCHEME.ecdsaP256Sha256],
  'ecdsa-p384': [SIGNATURE_SCHEME.ecdsaP384Sha384],
  ed25519: [SIGNATURE_SCHEME.ed25519],
  rsa: [SIGNATURE_SCHEME.rsaPssSha256, SIGNATURE_SCHEME.rsaPssSha384, SIGNATURE_SCHEME.rsaPssSha512],
} satisfies Partial<Record<KeyKind, readonly number[]>>

function assertRefused(certificatePem: string, privateKeyPem: string, reason: RegExp): void {
  assert.throws(
    () => createIdentity(certificatePem, privateKeyPem),
    (error) => error instanceof EdgeError && error.code === 'EDGE_CONFIG_INVALID' && reason.test(error.message),
  )
}

for (const [kind, schemes] of Object.entries(SCHEMES)) {
  test(`a key of kind ${kind} signs with every scheme that it names`, () => {
    const { certificatePem, privateKeyPem } = makePemPair(kind as KeyKind)
    const identity = createIdentity(certificatePem, privateKeyPem)
    assert.deepEqual(identity.schemes, schemes)
    const { publicKey } = new X509Certificate(identity.certificates[0] ?? '')
    const text = new TextEncoder().encode('signed')
    for (const scheme of identity.schemes) {
      assert.ok(verifySignature(scheme, publicKey, text, identity.sign(scheme, text)))
    }
  })
}

test('keys may be in any form of PEM, certificate and key in one text, with others behind the first', () => {
  const { certificatePem, privateKeyPem } = makePemPair('ecdsa-p256')
  const other = makePemPair('ecdsa-p256')
  const sec1 = createPrivateKey(privateKeyPem).export({ type: 'sec1', format: 'pem' }).toString()
  const text = `comment\n${sec1}${certificatePem}\r\n${other.certificatePem}`
  const identity = createIdentity(text, text)
  assert.deepEqual(
    identity.certificates.map((der) => new X509Certificate(der).fingerprint256),
    [certificatePem, other.certificatePem].map((pem) => new X509Certificate(pem).fingerprint256),
  )
})

test('what no handshake could use is refused when it is loaded', () => {
  const { certificatePem, privateKeyPem } = makePemPair('ecdsa-p256')
  const other = makePemPair('ecdsa-p256')
  assertRefused('', privateKeyPem, /no certificate/)
  assertRefused(certificatePem, '', /private key cannot be read/)
  assertRefused(certificatePem.replace(/\n.{64}\n/, '\nAAAA\n'), privateKeyPem, /certificate cannot be read/)
  assertRefused(certificatePem, other.privateKeyPem, /does not belong/)
  assertRefused(other.certificatePem + certificatePem, privateKeyPem, /does not belong/)
  assertRefused(certificatePem.repeat(11), privateKeyPem, /at most 10, found 11/)
  for (const [kind, reason] of [
    ['ecdsa-p521', /found ec secp521r1/],
    ['rsa-1024', /at least 2048 bits, found 1024/],
  ] as const) {
    const pair = makePemPair(kind)
    assertRefused(pair.certificatePem, pair.privateKeyPem, reason)
  }
})

test('errors do not say the key', () => {
  const { certificatePem, privateKeyPem } = makePemPair('ecdsa-p256')
  const damaged = privateKeyPem.replace('MI', 'MA')
  try {
    createIdentity(certificatePem, damaged)
    assert.fail('the damaged key was taken')
  } catch (error) {
    assert.ok(error instanceof EdgeError)
    const secret = damaged.split('\n')[1]?.slice(0, 40) ?? ''
    assert.ok(!`${error.message} ${error.stack} ${String(error.cause)}`.includes(secret))
  }
})
