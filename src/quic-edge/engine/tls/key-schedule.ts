/**
 * From the shared secret to traffic secrets (RFC 8446 section 7.1), without pre-shared keys:
 *
 * ```
 * early secret      = extract(0, 0)
 * handshake secret  = extract(derived(early), shared)   -> c hs traffic, s hs traffic   over ClientHello..ServerHello
 * main secret       = extract(derived(handshake), 0)    -> c ap traffic, s ap traffic   over ClientHello..server Finished
 * ```
 */
import { createHash, type Hash, hash as hashOf } from 'node:crypto'
import type { CipherSuite } from '../crypto/cipher-suite.ts'
import { expandLabel, extract } from '../crypto/hkdf.ts'
import { encodeMessage, MESSAGE } from './message.ts'

type HashName = CipherSuite['hash']

const NOTHING = new Uint8Array()

export interface TrafficSecrets {
  readonly client: Uint8Array
  readonly server: Uint8Array
}

/** The running hash over all handshake messages so far. */
export class Transcript {
  readonly #hash: Hash

  constructor(hash: HashName) {
    this.#hash = createHash(hash)
  }

  /** One that begins with a HelloRetryRequest: the first hello is in it by its hash alone (RFC 8446 section 4.4.1). */
  static afterRetry(hash: HashName, firstHello: Uint8Array, retryRequest: Uint8Array): Transcript {
    const transcript = new Transcript(hash)
    transcript.add(encodeMessage(MESSAGE.messageHash, digestOf(hash, firstHello)))
    transcript.add(retryRequest)
    return transcript
  }

  /** @param message whole, its header included. */
  add(message: Uint8Array): void {
    this.#hash.update(message)
  }

  digest(): Uint8Array {
    return this.#hash.copy().digest()
  }
}

export function earlySecretOf(hash: HashName): Uint8Array {
  const zeros = zerosOf(hash)
  return extract(hash, zeros, zeros)
}

/** @param shared what key agreement gave. */
export function handshakeSecretOf({ hash }: CipherSuite, shared: Uint8Array): Uint8Array {
  return extract(hash, derivedOf(hash, earlySecretOf(hash)), shared)
}

export function mainSecretOf({ hash }: CipherSuite, handshakeSecret: Uint8Array): Uint8Array {
  return extract(hash, derivedOf(hash, handshakeSecret), zerosOf(hash))
}

/** @param helloDigest of the transcript up to ServerHello. */
export function handshakeTraffic(suite: CipherSuite, secret: Uint8Array, helloDigest: Uint8Array): TrafficSecrets {
  return trafficOf(suite, secret, 'hs', helloDigest)
}

/** @param finishedDigest of the transcript up to the server's Finished. */
export function applicationTraffic(suite: CipherSuite, secret: Uint8Array, finishedDigest: Uint8Array): TrafficSecrets {
  return trafficOf(suite, secret, 'ap', finishedDigest)
}

/** What a Finished message holds. @param trafficSecret of its sender, of the handshake. */
export function finishedMac(
  { hash, hashSize }: CipherSuite,
  trafficSecret: Uint8Array,
  digest: Uint8Array,
): Uint8Array {
  return extract(hash, expandLabel(hash, trafficSecret, 'finished', hashSize), digest)
}

function trafficOf({ hash, hashSize }: CipherSuite, secret: Uint8Array, stage: string, digest: Uint8Array) {
  return {
    client: expandLabel(hash, secret, `c ${stage} traffic`, hashSize, digest),
    server: expandLabel(hash, secret, `s ${stage} traffic`, hashSize, digest),
  }
}

function derivedOf(hash: HashName, secret: Uint8Array): Uint8Array {
  return expandLabel(hash, secret, 'derived', secret.length, digestOf(hash, NOTHING))
}

function digestOf(hash: HashName, bytes: Uint8Array): Uint8Array {
  return hashOf(hash, bytes, 'buffer')
}

function zerosOf(hash: HashName): Uint8Array {
  return new Uint8Array(hash === 'sha256' ? 32 : 48)
}
