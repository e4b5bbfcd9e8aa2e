/**
 * How long an answer may take: the smoothed round trip plus four times its variation (RFC 6298), between bounds, doubled
 * after each timeout so that a link of three seconds is not cut for ever by a limit made for a LAN. The round trip is one
 * for the link, the doublings are not: that a login is answered at once, as before each look, tells nothing of looks. Pure.
 */
import type { Patience } from '../../sdk/index.ts'

export interface TimeoutBounds {
  readonly initialUs: number
  readonly minUs: number
  readonly maxUs: number
}

/** Requests that a server takes alike long for. */
export type RequestKind = 'session' | 'topic' | 'look' | 'send'

const SMOOTHING = 1 / 8
const VARIATION_SMOOTHING = 1 / 4
const VARIATION_FACTOR = 4
/** A server that syncs its disk answers in bursts: the timeout is never tighter than this many round trips. */
const ROUND_TRIP_FACTOR = 3
const MAX_DOUBLINGS = 10
/** A doubling is given up when so many times what an answer took is left without it. */
const SPARE_FACTOR = 2

export class RoundTrip {
  readonly bounds: TimeoutBounds
  /** null before the first answer. */
  #smoothedUs: number | null = null
  #variationUs = 0
  readonly #limits = new Map<RequestKind, Limit>()

  constructor(bounds: TimeoutBounds) {
    this.bounds = bounds
  }

  /** @returns the limit for requests of one kind, the same one each time. */
  of(kind: RequestKind): Patience {
    const limit = this.#limits.get(kind) ?? new Limit(this)
    this.#limits.set(kind, limit)
    return limit
  }

  get measuredUs(): number {
    const { initialUs, minUs } = this.bounds
    const smoothedUs = this.#smoothedUs
    if (smoothedUs === null) return Math.max(minUs, initialUs)
    return Math.max(minUs, smoothedUs * ROUND_TRIP_FACTOR, smoothedUs + VARIATION_FACTOR * this.#variationUs)
  }

  measured(durationUs: number): void {
    if (this.#smoothedUs === null) {
      this.#smoothedUs = durationUs
      this.#variationUs = durationUs / 2
      return
    }
    const differenceUs = Math.abs(this.#smoothedUs - durationUs)
    this.#variationUs += (differenceUs - this.#variationUs) * VARIATION_SMOOTHING
    this.#smoothedUs += (durationUs - this.#smoothedUs) * SMOOTHING
  }
}

class Limit implements Patience {
  readonly #roundTrip: RoundTrip
  #doublings = 0

  constructor(roundTrip: RoundTrip) {
    this.#roundTrip = roundTrip
  }

  get timeoutUs(): number {
    return Math.min(this.#roundTrip.bounds.maxUs, this.#roundTrip.measuredUs * 2 ** this.#doublings)
  }

  answered(durationUs: number): void {
    // Without this answer, which others will outweigh.
    const { measuredUs } = this.#roundTrip
    this.#roundTrip.measured(durationUs)
    while (this.#doublings > 0 && measuredUs * 2 ** (this.#doublings - 1) >= durationUs * SPARE_FACTOR) {
      this.#doublings -= 1
    }
  }

  timedOut(): void {
    this.#doublings = Math.min(MAX_DOUBLINGS, this.#doublings + 1)
  }
}
