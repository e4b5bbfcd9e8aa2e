/** How many streams of one direction the peer may open (RFC 9000 section 4.6): so many at once, more as they end. Pure. */
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'

/** A new limit is worth a frame when it allows that part of the streams anew. */
const UPDATE_PART = 4

export class StreamLimit {
  readonly #windowCount: number
  #maxCount: number
  #openedCount = 0
  #closedCount = 0
  #isRepeatDue = false

  constructor(windowCount: number) {
    this.#windowCount = windowCount
    this.#maxCount = windowCount
  }

  /** Streams that were opened so far, those that are over included. */
  get openedCount(): number {
    return this.#openedCount
  }

  get isUpdateDue(): boolean {
    const newCount = this.#closedCount + this.#windowCount - this.#maxCount
    return this.#isRepeatDue || newCount >= Math.max(1, Math.floor(this.#windowCount / UPDATE_PART))
  }

  /** The peer uses the stream with this index, and thereby opens all before it. @throws QuicError STREAM_LIMIT_ERROR */
  open(index: number): void {
    if (index >= this.#maxCount) {
      throw new QuicError(TRANSPORT_ERROR.streamLimitError, `more than the ${this.#maxCount} streams allowed`)
    }
    this.#openedCount = Math.max(this.#openedCount, index + 1)
  }

  close(): void {
    this.#closedCount++
  }

  /** @returns the limit to tell the peer now. */
  update(): number {
    this.#isRepeatDue = false
    this.#maxCount = Math.max(this.#maxCount, this.#closedCount + this.#windowCount)
    return this.#maxCount
  }

  repeatUpdate(): void {
    this.#isRepeatDue = true
  }
}
