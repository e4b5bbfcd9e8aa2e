/**
 * Credit for bytes, of a stream or of a connection, in either direction (RFC 9000 section 4). Pure.
 *
 * What we allow is exact: a peer whose bytes nobody grants back gets the window and not a byte more.
 */
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'

/** What we let the peer send. */
export class ReceiveWindow {
  readonly #windowBytes: number
  #maxOffset: number
  #receivedBytes = 0
  #grantedBytes = 0
  #isRepeatDue = false

  constructor(windowBytes: number) {
    this.#windowBytes = windowBytes
    this.#maxOffset = windowBytes
  }

  /** The limit that the peer was told last. */
  get maxOffset(): number {
    return this.#maxOffset
  }

  /** Received and not granted back. */
  get unreadBytes(): number {
    return this.#receivedBytes - this.#grantedBytes
  }

  /** Enough was granted that telling the peer is worth a frame: half of the window. Or the last frame was lost. */
  get isUpdateDue(): boolean {
    return this.#isRepeatDue || (this.#maxOffset - this.#grantedBytes) * 2 <= this.#windowBytes
  }

  /** @throws QuicError FLOW_CONTROL_ERROR when the peer had no credit for `sizeBytes` more. */
  receive(sizeBytes: number): void {
    if (this.#receivedBytes + sizeBytes > this.#maxOffset) {
      throw new QuicError(TRANSPORT_ERROR.flowControlError, `more than the ${this.#maxOffset} bytes allowed`)
    }
    this.#receivedBytes += sizeBytes
  }

  grant(sizeBytes: number): void {
    this.#grantedBytes += sizeBytes
  }

  /** @returns the limit to tell the peer now. */
  update(): number {
    this.#isRepeatDue = false
    this.#maxOffset = this.#grantedBytes + this.#windowBytes
    return this.#maxOffset
  }

  /** The frame with the limit was lost. */
  repeatUpdate(): void {
    this.#isRepeatDue = true
  }
}

/** What the peer lets us send. */
export class SendWindow {
  #maxOffset = 0
  #sentBytes = 0

  get maxOffset(): number {
    return this.#maxOffset
  }

  /** Bytes that may still be sent. */
  get leftBytes(): number {
    return this.#maxOffset - this.#sentBytes
  }

  send(sizeBytes: number): void {
    this.#sentBytes += sizeBytes
  }

  /** Limits only grow: frames may come in any order. @returns whether this one did. */
  raise(maxOffset: number): boolean {
    if (maxOffset <= this.#maxOffset) return false
    this.#maxOffset = maxOffset
    return true
  }
}
