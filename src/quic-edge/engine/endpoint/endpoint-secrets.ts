/**
 * What only this endpoint can make: Retry tokens and stateless reset tokens.
 *
 * The key of Retry tokens lives as long as the process. That of reset tokens comes from a secret that outlives it: after a
 * kill the next process can tell the peers of the last one that their connections are gone, and they come back at once
 * instead of waiting for their idle timeout (RFC 9000 section 10.3.2). No other edge may have it: whoever sees the id of a
 * living connection would ask that one for its token, and end the connection with it (section 21.11). So it takes more than
 * the private key, which several edges may share.
 *
 * ```
 * Retry token: [mark:4] [nonce:12] sealed: [issued, ms:6][original destination id:8-20] [tag:16]
 * ```
 * The seal covers the address and the id that the client was told to use, so that nobody else can use a token. The mark, drawn by
 * each process, tells ours from those of other servers, which clients keep and bring along.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { Reader } from '../wire/reader.ts'
import { STATELESS_RESET_TOKEN_SIZE } from '../wire/transport-parameters.ts'

/** A client answers a Retry within a round trip. */
const TOKEN_LIFE_MS = 15_000
const MARK_SIZE = 4
const NONCE_SIZE = 12
const TAG_SIZE = 16
const TIME_SIZE = 6
const RESET_LABEL = 'iggy-edge quic stateless reset'
const TOKEN_SIZE_MIN = MARK_SIZE + NONCE_SIZE + TIME_SIZE + TAG_SIZE
const SEALED_AT = MARK_SIZE + NONCE_SIZE

export interface RetryToken {
  /** Key of the address it is sent to. */
  readonly addressKey: string
  /** The id that our Retry packet names, and the client's next Initial goes to. */
  readonly retryId: Uint8Array
}

export class EndpointSecrets {
  readonly #tokenMark = randomBytes(MARK_SIZE)
  readonly #tokenKey = randomBytes(16)
  readonly #resetKey: Uint8Array

  /**
   * @param lastingSecret of the private key, which the next process has too.
   * @param edgeIdBytes which the next process has too, and no other edge; need not be secret.
   */
  constructor(lastingSecret: Uint8Array, edgeIdBytes: Uint8Array) {
    this.#resetKey = createHmac('sha256', lastingSecret).update(RESET_LABEL).update(edgeIdBytes).digest()
  }

  /** @param originalId destination id of the client's first Initial. @param nowMs monotonic. */
  sealToken({ addressKey, retryId }: RetryToken, originalId: Uint8Array, nowMs: number): Uint8Array {
    const nonce = randomBytes(NONCE_SIZE)
    const cipher = createCipheriv('aes-128-gcm', this.#tokenKey, nonce)
    cipher.setAAD(boundTo(addressKey, retryId))
    const plain = Buffer.alloc(TIME_SIZE + originalId.length)
    plain.writeUIntBE(Math.floor(nowMs), 0, TIME_SIZE)
    plain.set(originalId, TIME_SIZE)
    const sealed = cipher.update(plain)
    cipher.final()
    return Buffer.concat([this.#tokenMark, nonce, sealed, cipher.getAuthTag()])
  }

  /** @returns whether it claims to be a token of ours: `openToken` says whether it is good. */
  isOwnToken(tokenView: Uint8Array): boolean {
    return this.#tokenMark.equals(tokenView.subarray(0, MARK_SIZE))
  }

  /** @returns the original destination id; undefined for a token that is not ours, too old, or of somebody else. */
  openToken(tokenView: Uint8Array, { addressKey, retryId }: RetryToken, nowMs: number): Uint8Array | undefined {
    if (tokenView.length < TOKEN_SIZE_MIN) return undefined
    const sealedEnd = tokenView.length - TAG_SIZE
    const decipher = createDecipheriv('aes-128-gcm', this.#tokenKey, tokenView.subarray(MARK_SIZE, SEALED_AT), {
      authTagLength: TAG_SIZE,
    })
    decipher.setAAD(boundTo(addressKey, retryId))
    decipher.setAuthTag(tokenView.subarray(sealedEnd))
    const plain = decipher.update(tokenView.subarray(SEALED_AT, sealedEnd))
    try {
      decipher.final()
    } catch {
      return undefined
    }
    const reader = new Reader(plain)
    const issuedMs = reader.u16() * 2 ** 32 + reader.u32()
    return nowMs - issuedMs > TOKEN_LIFE_MS ? undefined : reader.rest()
  }

  /** 16 bytes that nobody can guess from the connection id. */
  resetToken(idView: Uint8Array): Uint8Array {
    return createHmac('sha256', this.#resetKey).update(idView).digest().subarray(0, STATELESS_RESET_TOKEN_SIZE)
  }
}

/** The id with its size: or a longer one could take the first digits of an address, and the rest be another's. */
function boundTo(addressKey: string, retryId: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(retryId.length), retryId, Buffer.from(addressKey)])
}
