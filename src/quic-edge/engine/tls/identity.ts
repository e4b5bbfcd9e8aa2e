/**
 * The server's certificate chain and key, from PEM text. Everything that may be wrong with them is found here, when they
 * are loaded, so that no handshake can fail for it.
 */
import { constants, createPrivateKey, type KeyObject, sign, X509Certificate } from 'node:crypto'
import { EdgeError, messageOf } from '../../../errors.ts'
import { SIGNATURE_SCHEME, type SignatureScheme, type TlsIdentity } from './api.ts'

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g
/** A leaf and its intermediates. Every one of them is bytes that a client waits for, three times its own hello at first. */
const CHAIN_LENGTH_MAX = 10
/** Shorter ones are broken, and too short for PSS with SHA-512. */
const RSA_BITS_MIN = 2048

/** What each kind of key signs with, best first. */
const KEY_SCHEMES: Readonly<Record<string, readonly SignatureScheme[]>> = {
  'ec prime256v1': [SIGNATURE_SCHEME.ecdsaP256Sha256],
  'ec secp384r1': [SIGNATURE_SCHEME.ecdsaP384Sha384],
  ed25519: [SIGNATURE_SCHEME.ed25519],
  rsa: [SIGNATURE_SCHEME.rsaPssSha256, SIGNATURE_SCHEME.rsaPssSha384, SIGNATURE_SCHEME.rsaPssSha512],
}

/** What the hash of each scheme is called; Ed25519 has its own inside. */
const HASHES: Readonly<Record<SignatureScheme, 'sha256' | 'sha384' | 'sha512' | null>> = {
  [SIGNATURE_SCHEME.ecdsaP256Sha256]: 'sha256',
  [SIGNATURE_SCHEME.ecdsaP384Sha384]: 'sha384',
  [SIGNATURE_SCHEME.rsaPssSha256]: 'sha256',
  [SIGNATURE_SCHEME.rsaPssSha384]: 'sha384',
  [SIGNATURE_SCHEME.rsaPssSha512]: 'sha512',
  [SIGNATURE_SCHEME.ed25519]: null,
}

/**
 * @param certificatePem the end entity's first, then what leads to a root. @param privateKeyPem PKCS #8, SEC 1 or PKCS #1.
 * @throws EDGE_CONFIG_INVALID when they are unreadable, do not belong together or the key is of a kind not spoken here.
 */
export function createIdentity(certificatePem: string, privateKeyPem: string): TlsIdentity {
  const chain = (certificatePem.match(PEM_CERTIFICATE) ?? []).map((pem) =>
    readable('certificate', () => new X509Certificate(pem)),
  )
  const key = readable('private key', () => createPrivateKey(privateKeyPem))
  const [leaf] = chain
  if (leaf === undefined) throw invalid('no certificate in the PEM text')
  if (chain.length > CHAIN_LENGTH_MAX)
    throw invalid(`certificate chain: expected at most ${CHAIN_LENGTH_MAX}, found ${chain.length}`)
  if (!leaf.checkPrivateKey(key)) throw invalid('the private key does not belong to the certificate')
  return {
    certificates: chain.map(({ raw }) => raw),
    schemes: schemesOf(key),
    sign: (scheme, bytesView) => signWith(key, scheme, bytesView),
  }
}

function schemesOf(key: KeyObject): readonly SignatureScheme[] {
  const { namedCurve, modulusLength = RSA_BITS_MIN } = key.asymmetricKeyDetails ?? {}
  const name = [key.asymmetricKeyType, namedCurve].filter((part) => part !== undefined).join(' ')
  const schemes = KEY_SCHEMES[name]
  if (schemes === undefined) {
    throw invalid(`private key for QUIC: expected ECDSA P-256 or P-384, Ed25519 or RSA, found ${name}`)
  }
  if (modulusLength < RSA_BITS_MIN) {
    throw invalid(`RSA key: expected at least ${RSA_BITS_MIN} bits, found ${modulusLength}`)
  }
  return schemes
}

function signWith(key: KeyObject, scheme: SignatureScheme, bytesView: Uint8Array): Uint8Array {
  const hash = HASHES[scheme]
  if (key.asymmetricKeyType !== 'rsa') return sign(hash, bytesView, key)
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants
  return sign(hash, bytesView, { key, padding, saltLength })
}

function readable<Value>(what: string, read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    const text = messageOf(error)
    throw invalid(`${what} cannot be read: ${text}`, error)
  }
}

function invalid(message: string, cause?: unknown): EdgeError {
  return new EdgeError('EDGE_CONFIG_INVALID', message, { cause })
}
