/** Verifies a TLS 1.3 signature (RFC 8446 section 4.2.3): the scheme must fit the key. */
import { constants, type KeyObject, verify } from 'node:crypto'
import { SIGNATURE_SCHEME } from '../../../src/quic-edge/engine/tls/api.ts'

const RULES: Readonly<Record<number, { readonly key: string; readonly hash: string | null }>> = {
  [SIGNATURE_SCHEME.ecdsaP256Sha256]: { key: 'ec prime256v1', hash: 'sha256' },
  [SIGNATURE_SCHEME.ecdsaP384Sha384]: { key: 'ec secp384r1', hash: 'sha384' },
  [SIGNATURE_SCHEME.ed25519]: { key: 'ed25519', hash: null },
  [SIGNATURE_SCHEME.rsaPssSha256]: { key: 'rsa', hash: 'sha256' },
  [SIGNATURE_SCHEME.rsaPssSha384]: { key: 'rsa', hash: 'sha384' },
  [SIGNATURE_SCHEME.rsaPssSha512]: { key: 'rsa', hash: 'sha512' },
}

export function verifySignature(scheme: number, key: KeyObject, signed: Uint8Array, signature: Uint8Array): boolean {
  const rule = RULES[scheme]
  const curve = key.asymmetricKeyDetails?.namedCurve
  const kind = [key.asymmetricKeyType, curve].filter((part) => part !== undefined).join(' ')
  if (rule === undefined || rule.key !== kind) return false
  if (kind !== 'rsa') return verify(rule.hash, signed, key, signature)
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants
  return verify(rule.hash, signed, { key, padding, saltLength }, signature)
}
