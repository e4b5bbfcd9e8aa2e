/**
 * Congestion control: NewReno (RFC 9002 section 7 and appendix B), without pacing. Pure.
 *
 * The window grows only when it was what held us back. It is capped: what lies in flight is remembered packet by packet.
 */

const INITIAL_WINDOW_PACKETS = 10
const MIN_WINDOW_PACKETS = 2
/** Far above what this engine sends in a round trip of 100 ms. */
export const WINDOW_MAX_BYTES = 4 * 1024 * 1024
/** In congestion avoidance the window counts as used when no more than this was left of it. */
const SLACK_PACKETS = 3

export class NewReno {
  #datagramSize: number
  #windowBytes: number
  #slowStartThresholdBytes = Number.POSITIVE_INFINITY
  #bytesInFlight = 0
  /** Packets sent until then belong to a loss that was already answered. */
  #recoveryStartMs = Number.NEGATIVE_INFINITY

  constructor(datagramSize: number) {
    this.#datagramSize = datagramSize
    this.#windowBytes = INITIAL_WINDOW_PACKETS * datagramSize
  }

  get windowBytes(): number {
    return this.#windowBytes
  }

  get bytesInFlight(): number {
    return this.#bytesInFlight
  }

  /** One more full datagram may be sent. */
  get hasRoom(): boolean {
    return this.#bytesInFlight + this.#datagramSize <= this.#windowBytes
  }

  sent(sizeBytes: number): void {
    this.#bytesInFlight += sizeBytes
  }

  /** Taken back without a verdict: the keys of its packet number space are gone. */
  discarded(sizeBytes: number): void {
    this.#bytesInFlight -= sizeBytes
  }

  /** @param inFlightBytes when the acknowledgement arrived, before any of its packets was taken off. */
  acknowledged(sizeBytes: number, sentMs: number, inFlightBytes: number): void {
    this.#bytesInFlight -= sizeBytes
    if (sentMs <= this.#recoveryStartMs) return
    if (this.#windowBytes < this.#slowStartThresholdBytes) {
      if (inFlightBytes * 2 >= this.#windowBytes) this.#windowBytes += sizeBytes
    } else if (inFlightBytes + SLACK_PACKETS * this.#datagramSize >= this.#windowBytes) {
      this.#windowBytes += (this.#datagramSize * sizeBytes) / this.#windowBytes
    }
    this.#windowBytes = Math.min(this.#windowBytes, WINDOW_MAX_BYTES)
  }

  lost(sizeBytes: number): void {
    this.#bytesInFlight -= sizeBytes
  }

  /** @param lastSentMs when the latest of the packets lost together was sent. One loss event halves the window once. */
  congested(lastSentMs: number, nowMs: number): void {
    if (lastSentMs <= this.#recoveryStartMs) return
    this.#recoveryStartMs = nowMs
    this.#windowBytes = Math.max(this.#windowBytes / 2, this.#minWindowBytes)
    this.#slowStartThresholdBytes = this.#windowBytes
  }

  /** Nothing came through for several probe timeouts: start over from the smallest window. */
  persistentlyCongested(): void {
    this.#windowBytes = this.#minWindowBytes
    this.#recoveryStartMs = Number.NEGATIVE_INFINITY
  }

  /**
   * Nothing was in flight for longer than a probe timeout. Without pacing the whole window would leave at once, so there is no more
   * than at the start (RFC 9002 section 7.7), from where it doubles as before.
   */
  restart(): void {
    this.#windowBytes = Math.min(this.#windowBytes, INITIAL_WINDOW_PACKETS * this.#datagramSize)
  }

  /** Another path: what is in flight stays so, all else starts anew. */
  reset(): void {
    this.#windowBytes = INITIAL_WINDOW_PACKETS * this.#datagramSize
    this.#slowStartThresholdBytes = Number.POSITIVE_INFINITY
    this.#recoveryStartMs = Number.NEGATIVE_INFINITY
  }

  /** The peer takes smaller datagrams than assumed. */
  limitDatagramSize(sizeBytes: number): void {
    this.#datagramSize = Math.min(this.#datagramSize, sizeBytes)
  }

  get #minWindowBytes(): number {
    return MIN_WINDOW_PACKETS * this.#datagramSize
  }
}
