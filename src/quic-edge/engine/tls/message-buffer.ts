/**
 * Puts handshake messages together from the CRYPTO bytes of one level, in order. Pure.
 *
 * A message is refused by its header: a wrong type or an excessive size costs the peer four bytes and us nothing. Memory
 * grows with what has come, not with what was announced.
 */
import { ALERT, alertError, QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import { MESSAGE_HEADER_SIZE, type MessageType } from './message.ts'

const FIRST_CAPACITY = 512

export class MessageBuffer {
  readonly #type: MessageType
  readonly #sizeMax: number
  #bytes: Uint8Array = new Uint8Array(FIRST_CAPACITY)
  #size = 0

  /** @param sizeMax of the whole message, header included. */
  constructor(type: MessageType, sizeMax: number) {
    this.#type = type
    this.#sizeMax = sizeMax
  }

  /**
   * @returns the whole message, owned, once its last byte is there.
   * @throws QuicError unexpected_message for another type, CRYPTO_BUFFER_EXCEEDED for a size above the limit,
   *   PROTOCOL_VIOLATION when bytes follow: each flight here is one message, and new keys come with the next one.
   */
  add(bytesView: Uint8Array): Uint8Array | undefined {
    // One byte more than may be: enough to see that something follows.
    this.#append(bytesView.subarray(0, this.#sizeMax + 1 - this.#size))
    if (this.#size > 0 && this.#bytes[0] !== this.#type) {
      throw alertError(ALERT.unexpectedMessage, `handshake message ${this.#bytes[0]} in place of ${this.#type}`)
    }
    if (this.#size < MESSAGE_HEADER_SIZE) return undefined
    const [, high = 0, middle = 0, low = 0] = this.#bytes
    const messageSize = MESSAGE_HEADER_SIZE + ((high << 16) | (middle << 8) | low)
    if (messageSize > this.#sizeMax) {
      throw new QuicError(TRANSPORT_ERROR.cryptoBufferExceeded, `handshake message of ${messageSize} bytes`)
    }
    if (this.#size < messageSize) return undefined
    if (this.#size > messageSize)
      throw new QuicError(TRANSPORT_ERROR.protocolViolation, 'handshake data after the flight')
    return this.#bytes.slice(0, messageSize)
  }

  #append(bytesView: Uint8Array): void {
    const size = this.#size + bytesView.length
    if (size > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(size, this.#bytes.length * 2))
      larger.set(this.#bytes.subarray(0, this.#size))
      this.#bytes = larger
    }
    this.#bytes.set(bytesView, this.#size)
    this.#size = size
  }
}
