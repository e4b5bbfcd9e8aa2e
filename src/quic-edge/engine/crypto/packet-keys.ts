/**
 * Packet protection with one traffic secret, in one direction (RFC 9001 section 5).
 *
 * `node:crypto` wants a cipher object for each packet: creating it is the largest single cost of a small packet. Header
 * protection with AES gets by with one object for ever, since ECB carries nothing from block to block.
 */
import { type CipherGCMTypes, type Cipheriv, createCipheriv, createDecipheriv } from 'node:crypto'
import { assert } from '../../../assert.ts'
import { isLongHeader } from '../wire/packet-header.ts'
import { AES_128_GCM, type CipherSuite } from './cipher-suite.ts'
import { expandLabel, extract } from './hkdf.ts'

export const TAG_SIZE = 16
/** Ciphertext that the mask of a header is made of, from 4 bytes after the start of the packet number. */
const SAMPLE_SIZE = 16
const SAMPLE_DISTANCE = 4
/** Packet number of the largest size and tag: what is shorter cannot hold a sample. */
export const PROTECTED_SIZE_MIN = SAMPLE_DISTANCE + SAMPLE_SIZE

const NONCE_SIZE = 12
const TAG_OPTIONS = { authTagLength: TAG_SIZE }
const MASK_INPUT = new Uint8Array(5)
/** Of version 1: makes the Initial secrets of the client's first destination id (RFC 9001 section 5.2). */
const INITIAL_SALT = Uint8Array.fromHex('38762cf7f55934b34d179ae6a4c80cadccbb7f0a')

/** The nonce under construction: used up before the next packet begins. */
const nonce = new Uint8Array(NONCE_SIZE)

interface HeaderCipher {
  readonly key: Uint8Array
  /** Undefined for ChaCha20, whose stream depends on the sample from the start. */
  readonly ecb: Cipheriv | undefined
}

export class PacketKeys {
  readonly suite: CipherSuite
  readonly #secret: Uint8Array
  readonly #key: Uint8Array
  readonly #iv: Uint8Array
  readonly #header: HeaderCipher
  #sealedCount = 0

  /** @param header kept over a key update (RFC 9001 section 6); made of the secret otherwise. */
  constructor(suite: CipherSuite, secret: Uint8Array, header?: HeaderCipher) {
    this.suite = suite
    this.#secret = secret
    this.#key = expandLabel(suite.hash, secret, 'quic key', suite.keySize)
    this.#iv = expandLabel(suite.hash, secret, 'quic iv', NONCE_SIZE)
    this.#header = header ?? createHeaderCipher(suite, secret)
  }

  /** Packets sealed with these keys, to be held against `suite.sealLimit`. */
  get sealedCount(): number {
    return this.#sealedCount
  }

  /** @returns the keys of the next phase. */
  next(): PacketKeys {
    const { hash, hashSize } = this.suite
    return new PacketKeys(this.suite, expandLabel(hash, this.#secret, 'quic ku', hashSize), this.#header)
  }

  /**
   * Seals one packet; its header is protected afterwards, with `protectHeader`.
   *
   * @param headerView as it is before protection. @param out gets ciphertext and tag from `at` on; may be the buffer that
   *   `plainView` lies in.
   * @returns bytes written: the plain text's and `TAG_SIZE`.
   */
  seal(packetNumber: number, headerView: Uint8Array, plainView: Uint8Array, out: Uint8Array, at: number): number {
    // OpenSSL's types know GCM alone by this signature; ChaCha20-Poly1305 takes the same calls.
    const aead = this.suite.aead as CipherGCMTypes
    const cipher = createCipheriv(aead, this.#key, this.#nonceOf(packetNumber), TAG_OPTIONS)
    cipher.setAAD(headerView, { plaintextLength: plainView.length })
    const sealed = cipher.update(plainView)
    cipher.final()
    out.set(sealed, at)
    out.set(cipher.getAuthTag(), at + sealed.length)
    this.#sealedCount++
    return sealed.length + TAG_SIZE
  }

  /**
   * @param headerView unprotected. @param sealedView ciphertext and tag.
   * @returns the plain text, in memory of its own; undefined when it was not sealed with these keys.
   */
  open(packetNumber: number, headerView: Uint8Array, sealedView: Uint8Array): Uint8Array | undefined {
    const size = sealedView.length - TAG_SIZE
    if (size < 0) return undefined
    const aead = this.suite.aead as CipherGCMTypes
    const decipher = createDecipheriv(aead, this.#key, this.#nonceOf(packetNumber), TAG_OPTIONS)
    decipher.setAuthTag(sealedView.subarray(size))
    decipher.setAAD(headerView, { plaintextLength: size })
    const plain = decipher.update(sealedView.subarray(0, size))
    try {
      decipher.final()
    } catch {
      return undefined
    }
    return plain
  }

  /** @param sampleView `SAMPLE_SIZE` bytes of ciphertext. @returns at least five bytes. */
  headerMask(sampleView: Uint8Array): Uint8Array {
    const { ecb, key } = this.#header
    return ecb !== undefined ? ecb.update(sampleView) : createCipheriv('chacha20', key, sampleView).update(MASK_INPUT)
  }

  /** The packet number, big-endian at the end of the nonce, over the IV. Numbers stay below 2^53. */
  #nonceOf(packetNumber: number): Uint8Array {
    nonce.set(this.#iv)
    let rest = packetNumber
    for (let at = NONCE_SIZE - 1; rest > 0; at--) {
      nonce[at] = (nonce[at] ?? 0) ^ (rest % 0x100)
      rest = Math.floor(rest / 0x100)
    }
    return nonce
  }
}

/** @returns the keys of both sides' Initial packets, which protect from accidents, not from anyone who looks. */
export function initialKeys(clientDestinationId: Uint8Array): {
  readonly client: PacketKeys
  readonly server: PacketKeys
} {
  const secret = initialSecretOf(clientDestinationId)
  return { client: initialKeysOf(secret, 'client in'), server: initialKeysOf(secret, 'server in') }
}

/** @returns the keys of a client's Initial packets alone. */
export function clientInitialKeys(clientDestinationId: Uint8Array): PacketKeys {
  return initialKeysOf(initialSecretOf(clientDestinationId), 'client in')
}

function initialSecretOf(clientDestinationId: Uint8Array): Uint8Array {
  return extract(AES_128_GCM.hash, INITIAL_SALT, clientDestinationId)
}

function initialKeysOf(secret: Uint8Array, label: string): PacketKeys {
  return new PacketKeys(AES_128_GCM, expandLabel(AES_128_GCM.hash, secret, label, AES_128_GCM.hashSize))
}

/**
 * Masks first byte and packet number in place, after sealing.
 *
 * @param start of the packet in the datagram. @param packetNumberAt where its number begins; the ciphertext follows it.
 */
export function protectHeader(
  keys: PacketKeys,
  datagram: Uint8Array,
  start: number,
  packetNumberAt: number,
  packetNumberSize: number,
): void {
  const mask = sampleMask(keys, datagram, packetNumberAt)
  const first = datagram[start] ?? 0
  datagram[start] = first ^ ((mask[0] ?? 0) & maskedBits(first))
  for (let i = 0; i < packetNumberSize; i++) {
    datagram[packetNumberAt + i] = (datagram[packetNumberAt + i] ?? 0) ^ (mask[1 + i] ?? 0)
  }
}

/**
 * Takes the mask off in place, before opening. The caller has checked that `PROTECTED_SIZE_MIN` bytes follow
 * `packetNumberAt` in the packet.
 *
 * @returns bytes of the packet number, 1 to 4.
 */
export function unprotectHeader(keys: PacketKeys, datagram: Uint8Array, start: number, packetNumberAt: number): number {
  const mask = sampleMask(keys, datagram, packetNumberAt)
  const masked = datagram[start] ?? 0
  const first = masked ^ ((mask[0] ?? 0) & maskedBits(masked))
  datagram[start] = first
  const size = (first & 0x03) + 1
  for (let i = 0; i < size; i++) {
    datagram[packetNumberAt + i] = (datagram[packetNumberAt + i] ?? 0) ^ (mask[1 + i] ?? 0)
  }
  return size
}

function sampleMask(keys: PacketKeys, datagram: Uint8Array, packetNumberAt: number): Uint8Array {
  const at = packetNumberAt + SAMPLE_DISTANCE
  assert(at + SAMPLE_SIZE <= datagram.length, `header sample lies within the datagram: ${at} of ${datagram.length}`)
  return keys.headerMask(datagram.subarray(at, at + SAMPLE_SIZE))
}

/** The long form keeps its type readable, the short form only its form and the fixed bit. */
function maskedBits(first: number): number {
  return isLongHeader(first) ? 0x0f : 0x1f
}

function createHeaderCipher(suite: CipherSuite, secret: Uint8Array): HeaderCipher {
  const key = expandLabel(suite.hash, secret, 'quic hp', suite.keySize)
  if (suite.headerCipher === 'chacha20') return { key, ecb: undefined }
  return { key, ecb: createCipheriv(suite.headerCipher, key, null).setAutoPadding(false) }
}
