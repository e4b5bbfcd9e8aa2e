/**
 * How much the answer to a look at the upstream's tail may hold, as it brings whole messages: those of others, and our own of
 * an earlier process, have any size. Pages are made so large that they are carried in a while; a look that did not come in
 * time asks for less the next time, and once that is one message, is given the time of one twice as large. Pure.
 */

/** Before the first message was seen. */
const USUAL_MESSAGE_BYTES = 1024
/** No server answers with more, and no answer is taken that has more. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024
/** Most bytes that a page is expected to have, unless it is of one message. */
const PAGE_BYTES = 256 * 1024

export class LookSize {
  readonly #maxCount: number
  #count: number
  #messageBytes = USUAL_MESSAGE_BYTES
  /** Of a message in the search that goes on. */
  #mostSeenBytes = 0

  /** @param maxCount most messages that a page holds. */
  constructor(maxCount: number) {
    this.#maxCount = maxCount
    this.#count = maxCount
  }

  get pageCount(): number {
    return Math.max(1, Math.min(this.#count, Math.floor(PAGE_BYTES / this.#messageBytes)))
  }

  expectedBytes(count: number): number {
    return count * this.#messageBytes
  }

  /** So many messages with so many bytes are there: ours, or those of a page. */
  seen(count: number, sizeBytes: number): void {
    if (count === 0) return
    const messageBytes = Math.min(MAX_MESSAGE_BYTES, Math.ceil(sizeBytes / count))
    this.#mostSeenBytes = Math.max(this.#mostSeenBytes, messageBytes)
    this.#messageBytes = Math.max(this.#messageBytes, messageBytes)
  }

  /** The answer to a look at `count` messages is larger than one may be. */
  tooLarge(count: number): void {
    this.#count = Math.max(1, Math.floor(count / 2))
  }

  /** No answer to a look at `count` messages came in time. */
  timedOut(count: number): void {
    if (count > 1) this.tooLarge(count)
    else this.#messageBytes = Math.min(MAX_MESSAGE_BYTES, this.#messageBytes * 2)
  }

  /** The search is over: what was seen in it stays expected, what was merely feared does not. */
  finished(): void {
    this.#messageBytes = Math.max(USUAL_MESSAGE_BYTES, this.#mostSeenBytes)
    this.#mostSeenBytes = 0
    this.#count = Math.min(this.#maxCount, this.#count * 2)
  }
}
