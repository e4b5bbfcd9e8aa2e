/**
 * How long an answer may take: the smoothed round trip plus four times its variation (RFC 6298), between bounds, doubled
 * after each timeout so that a link of three seconds is not cut for ever by a limit made for a LAN. Pure.
 */
export interface TimeoutBounds {
  readonly initialUs: number
  readonly minUs: number
  readonly maxUs: number
}

const SMOOTHING = 1 / 8
const VARIATION_SMOOTHING = 1 / 4
const VARIATION_FACTOR = 4
/** A server that syncs its disk answers in bursts: the timeout is never tighter than this many round trips. */
const ROUND_TRIP_FACTOR = 3
const MAX_DOUBLINGS = 10

export class RoundTrip {
  readonly #bounds: TimeoutBounds
  /** null before the first answer. */
  #smoothedUs: number | null = null
  #variationUs = 0
  #doublings = 0

  constructor(bounds: TimeoutBounds) {
    this.#bounds = bounds
  }

  get timeoutUs(): number {
    const { initialUs, minUs, maxUs } = this.#bounds
    const smoothedUs = this.#smoothedUs
    const measuredUs =
      smoothedUs === null
        ? initialUs
        : Math.max(smoothedUs * ROUND_TRIP_FACTOR, smoothedUs + VARIATION_FACTOR * this.#variationUs)
    return Math.min(maxUs, Math.max(minUs, measuredUs) * 2 ** this.#doublings)
  }

  answered(durationUs: number): void {
    this.#doublings = 0
    if (this.#smoothedUs === null) {
      this.#smoothedUs = durationUs
      this.#variationUs = durationUs / 2
      return
    }
    const differenceUs = Math.abs(this.#smoothedUs - durationUs)
    this.#variationUs += (differenceUs - this.#variationUs) * VARIATION_SMOOTHING
    this.#smoothedUs += (durationUs - this.#smoothedUs) * SMOOTHING
  }

  timedOut(): void {
    this.#doublings = Math.min(MAX_DOUBLINGS, this.#doublings + 1)
  }
}
