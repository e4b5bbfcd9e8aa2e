/**
 * How long to wait before the next attempt: full jitter below a ceiling that doubles, never above the maximum, and back to
 * the start only after a link has stood for a while, so that a link that lives two seconds each time is not hammered. Pure;
 * all times are monotonic.
 */
import { Backoff, type BackoffPolicy } from '../../sdk/index.ts'

export interface LinkBackoffPolicy extends BackoffPolicy {
  /** A link that stood this long counts as healthy. */
  readonly stableAfterUs: number
}

export class LinkBackoff {
  readonly #backoff: Backoff
  readonly #stableAfterUs: number
  #upSinceUs: number | null = null

  constructor(policy: LinkBackoffPolicy, random: () => number) {
    this.#backoff = new Backoff(policy, random)
    this.#stableAfterUs = policy.stableAfterUs
  }

  /** Attempts since the last stable time. */
  get attempts(): number {
    return this.#backoff.attempts
  }

  connected(nowUs: number): void {
    this.#upSinceUs = nowUs
  }

  /** @returns µs to wait before the next attempt, at most `maxDelayUs`. */
  failed(nowUs: number, maxDelayUs: number): number {
    const wasStable = this.#upSinceUs !== null && nowUs - this.#upSinceUs >= this.#stableAfterUs
    this.#upSinceUs = null
    if (wasStable) this.#backoff.reset()
    return this.#backoff.nextDelayUs(maxDelayUs)
  }
}
