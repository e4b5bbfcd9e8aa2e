/** Allows an average rate and a burst above it. Pure. */
export class TokenBucket {
  readonly #perSecond: number
  readonly #capacity: number
  #tokens: number
  #filledMs: number

  constructor(perSecond: number, burstSeconds: number, nowMs: number) {
    this.#perSecond = perSecond
    this.#capacity = perSecond * burstSeconds
    this.#tokens = this.#capacity
    this.#filledMs = nowMs
  }

  /**
   * @returns 0 when `amount` was taken, else ms until it fits. More than the whole burst fits when the bucket is full, and
   * leaves it in debt.
   */
  take(amount: number, nowMs: number): number {
    this.#tokens = Math.min(this.#capacity, this.#tokens + ((nowMs - this.#filledMs) * this.#perSecond) / 1000)
    this.#filledMs = nowMs
    const needed = Math.min(amount, this.#capacity)
    if (this.#tokens < needed) return Math.ceil(((needed - this.#tokens) * 1000) / this.#perSecond)
    this.#tokens -= amount
    return 0
  }
}
