/** Estimates how long a packet and its acknowledgement take (RFC 9002 section 5). Pure. */

/** What is assumed before the first measurement. */
const INITIAL_RTT_MS = 333
/** No timer is finer than that. */
export const GRANULARITY_MS = 1
/** A clock that stood still must not make a path of no length. */
const MIN_SAMPLE_MS = 0.05

export class RoundTrip {
  #hasSample = false
  #smoothedMs = INITIAL_RTT_MS
  #variationMs = INITIAL_RTT_MS / 2
  #latestMs = INITIAL_RTT_MS
  #minMs = Number.POSITIVE_INFINITY

  get hasSample(): boolean {
    return this.#hasSample
  }

  get smoothedMs(): number {
    return this.#smoothedMs
  }

  /** What the slower of the latest and the average packet takes. */
  get slowestMs(): number {
    return Math.max(this.#latestMs, this.#smoothedMs)
  }

  /** How long an acknowledgement may take that is not held back by the peer: the base of the probe timeout. */
  get patienceMs(): number {
    return this.#smoothedMs + Math.max(4 * this.#variationMs, GRANULARITY_MS)
  }

  /** @param ackDelayMs how long the peer says it held the acknowledgement back, already held to its promise. */
  sample(measuredMs: number, ackDelayMs: number): void {
    const latestMs = Math.max(measuredMs, MIN_SAMPLE_MS)
    this.#latestMs = latestMs
    this.#minMs = Math.min(this.#minMs, latestMs)
    if (!this.#hasSample) {
      this.#hasSample = true
      this.#smoothedMs = latestMs
      this.#variationMs = latestMs / 2
      return
    }
    // A delay that leaves less than the path takes at least is not believed.
    const adjustedMs = latestMs >= this.#minMs + ackDelayMs ? latestMs - ackDelayMs : latestMs
    this.#variationMs += (Math.abs(this.#smoothedMs - adjustedMs) - this.#variationMs) / 4
    this.#smoothedMs += (adjustedMs - this.#smoothedMs) / 8
  }

  /** Another path: nothing that was measured holds for it. */
  reset(): void {
    this.#hasSample = false
    this.#smoothedMs = INITIAL_RTT_MS
    this.#variationMs = INITIAL_RTT_MS / 2
    this.#latestMs = INITIAL_RTT_MS
    this.#minMs = Number.POSITIVE_INFINITY
  }
}
