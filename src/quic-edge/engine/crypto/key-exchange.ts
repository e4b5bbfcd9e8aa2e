/**
 * Ephemeral key agreement (RFC 8446 section 4.2.8): X25519 and NIST P-256.
 *
 * A new key pair for each handshake, used once. Hybrid groups with ML-KEM are not spoken; a client that offers one offers
 * X25519 too, or is asked for it by a HelloRetryRequest.
 */
import { createECDH, createPublicKey, diffieHellman, generateKeyPairSync } from 'node:crypto'
import { concatBytes } from '../../../byte-concat.ts'
import { ALERT, alertError } from '../wire/quic-error.ts'

/** Named groups by their ids on the wire. */
export const GROUP = { p256: 0x0017, x25519: 0x001d } as const
export type Group = (typeof GROUP)[keyof typeof GROUP]
/** In order of preference. */
export const GROUPS: readonly Group[] = [GROUP.x25519, GROUP.p256]

const X25519_SIZE = 32
/** An uncompressed point: 0x04, x, y. */
const P256_SIZE = 65
const UNCOMPRESSED = 0x04
/** `SubjectPublicKeyInfo` of an X25519 key (RFC 8410), up to the key itself. */
const X25519_SPKI_PREFIX = Uint8Array.fromHex('302a300506032b656e032100')

export interface KeyShare {
  readonly group: Group
  readonly publicBytes: Uint8Array
  /** @returns the shared secret. @throws QuicError illegal_parameter when the peer's share is not a valid one. */
  agree(peerPublicView: Uint8Array): Uint8Array
}

export function createKeyShare(group: Group): KeyShare {
  return group === GROUP.x25519 ? createX25519() : createP256()
}

export function isGroup(id: number): id is Group {
  return id === GROUP.x25519 || id === GROUP.p256
}

function createX25519(): KeyShare {
  const { publicKey, privateKey } = generateKeyPairSync('x25519')
  const publicBytes = publicKey.export({ type: 'spki', format: 'der' }).subarray(X25519_SPKI_PREFIX.length)
  return {
    group: GROUP.x25519,
    publicBytes,
    agree(peerPublicView) {
      if (peerPublicView.length !== X25519_SIZE) throw invalidShare('x25519')
      const key = Buffer.from(concatBytes([X25519_SPKI_PREFIX, peerPublicView]))
      return unlessInvalid('x25519', () => {
        const secret = diffieHellman({ privateKey, publicKey: createPublicKey({ key, format: 'der', type: 'spki' }) })
        // A point of small order gives zero whoever we are (RFC 7748 section 6.1). OpenSSL refuses it by itself.
        if (secret.every((byte) => byte === 0)) throw invalidShare('x25519')
        return secret
      })
    },
  }
}

function createP256(): KeyShare {
  const pair = createECDH('prime256v1')
  return {
    group: GROUP.p256,
    publicBytes: pair.generateKeys(),
    agree(peerPublicView) {
      if (peerPublicView.length !== P256_SIZE || peerPublicView[0] !== UNCOMPRESSED) throw invalidShare('secp256r1')
      // Points off the curve are refused by OpenSSL.
      return unlessInvalid('secp256r1', () => pair.computeSecret(peerPublicView))
    },
  }
}

function unlessInvalid(group: string, agree: () => Uint8Array): Uint8Array {
  try {
    return agree()
  } catch {
    throw invalidShare(group)
  }
}

function invalidShare(group: string) {
  return alertError(ALERT.illegalParameter, `invalid ${group} key share`)
}
