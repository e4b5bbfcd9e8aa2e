/**
 * Pauses between attempts: exponential with full jitter, so that many clients that lost the same server do not come back
 * in step. Pure: chance comes in as a generator, waiting is the caller's.
 */
export interface BackoffPolicy {
  /** Ceiling of the first pause. */
  readonly minDelayUs: number
  /** No pause is ever longer. */
  readonly maxDelayUs: number
}

/** Doublings after which the ceiling no longer grows anyway: keeps the power finite over months of attempts. */
const MAX_DOUBLINGS = 40
/** The shortest pause, as a share of its ceiling: full jitter may draw zero, and zero would be a busy loop. */
const MIN_SHARE = 0.1

export class Backoff {
  readonly #policy: BackoffPolicy
  readonly #random: () => number
  #attempts = 0

  /** @param random 0 <= value < 1. */
  constructor(policy: BackoffPolicy, random: () => number) {
    this.#policy = policy
    this.#random = random
  }

  get attempts(): number {
    return this.#attempts
  }

  /** @returns µs to wait, a tenth of the ceiling to all of it. @param maxDelayUs a lower maximum, for this time. */
  nextDelayUs(maxDelayUs = this.#policy.maxDelayUs): number {
    const doublings = Math.min(this.#attempts, MAX_DOUBLINGS)
    const maxUs = Math.min(maxDelayUs, this.#policy.maxDelayUs)
    const ceilingUs = Math.min(maxUs, this.#policy.minDelayUs * 2 ** doublings)
    this.#attempts += 1
    return Math.round(ceilingUs * (MIN_SHARE + (1 - MIN_SHARE) * this.#random()))
  }

  reset(): void {
    this.#attempts = 0
  }
}
