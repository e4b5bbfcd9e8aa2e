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

  /** @returns ms until `amount` fits, 0 when it does now. More than the whole burst fits when the bucket is full. */
  waitMs(amount: number, nowMs: number): number {
    this.#tokens = Math.min(this.#capacity, this.#tokens + ((nowMs - this.#filledMs) * this.#perSecond) / 1000)
    this.#filledMs = nowMs
    const needed = Math.min(amount, this.#capacity)
    return this.#tokens < needed ? Math.ceil(((needed - this.#tokens) * 1000) / this.#perSecond) : 0
  }

  /** Takes what fits; more than the whole burst leaves it in debt. */
  take(amount: number): void {
    this.#tokens -= amount
  }
}
