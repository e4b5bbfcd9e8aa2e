/** Certificates and keys of every kind that a server may have, made at run time: no key lies in the sources. */
import { createPublicKey, generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto'
import { encodeSelfSigned } from '../../../src/quic-edge/core/self-signed.ts'
import type { TlsIdentity } from '../../../src/quic-edge/engine/tls/api.ts'
import { createIdentity } from '../../../src/quic-edge/engine/tls/identity.ts'

const DAY_MS = 86_400_000

const KEY_MAKERS = {
  'ecdsa-p256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  'ecdsa-p384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
  'ecdsa-p521': () => generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey,
  ed25519: () => generateKeyPairSync('ed25519').privateKey,
  rsa: () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
  'rsa-1024': () => generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey,
} satisfies Record<string, () => KeyObject>
export type KeyKind = keyof typeof KEY_MAKERS

export interface PemPair {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/** A certificate for a key of any kind; its issuer has a P-256 key that nobody else knows. */
export function makePemPair(kind: KeyKind): PemPair {
  const key = KEY_MAKERS[kind]()
  const issuer = KEY_MAKERS['ecdsa-p256']()
  const nowMs = Date.now()
  const der = encodeSelfSigned({
    commonName: 'iggy-edge test',
    dnsNames: ['localhost'],
    ipAddresses: [Uint8Array.of(127, 0, 0, 1)],
    publicKeyDer: createPublicKey(key).export({ type: 'spki', format: 'der' }),
    serialBytes: Uint8Array.of(0x41, 1),
    notBeforeMs: nowMs - DAY_MS,
    notAfterMs: nowMs + DAY_MS,
    sign: (bytes) => sign('sha256', bytes, issuer),
  })
  return {
    certificatePem: new X509Certificate(der).toString(),
    privateKeyPem: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

export function makeIdentity(kind: KeyKind): TlsIdentity {
  const { certificatePem, privateKeyPem } = makePemPair(kind)
  return createIdentity(certificatePem, privateKeyPem)
}
