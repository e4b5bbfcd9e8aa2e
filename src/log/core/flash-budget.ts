/**
 * Flash budget: a token bucket of physically written bytes. Capacity is an hour of the daily budget, so that a quiet
 * gateway syncs a lone reading at once; under sustained load the bucket is empty and syncs move apart, groups grow.
 *
 * Decides how long a sync should wait, at most `MAX_WAIT_US`, and how much later than usual other things are written. What is over budget is counted, never refused. The clock is
 * monotonic µs.
 */
export const MAX_WAIT_US = 1_000_000

/** What a file system writes beside the data at each sync: its journal, the inode. Measured on ext4. */
export const SYNC_COST_BYTES = 4096

/** How many times longer than usual what nobody waits for is put off while the budget is in debt. */
const DELAY_FACTOR_IN_DEBT = 10

/** Told of what was written to the device. @param syncCount how often something was synced for it. */
export type Written = (sizeBytes: number, syncCount: number) => void

const DAY_US = 86_400_000_000
const BURST_DAY_SHARE = 1 / 24

export class FlashBudget {
  readonly perDayBytes: number
  #tokens: number
  #atUs: number

  /** @param perDayBytes 0: no budget, no waiting. */
  constructor(perDayBytes: number, nowUs: number) {
    this.perDayBytes = perDayBytes
    this.#tokens = perDayBytes * BURST_DAY_SHARE
    this.#atUs = nowUs
  }

  /** Bytes that may be written at once; negative when over budget. */
  leftBytes(nowUs: number): number {
    this.#refill(nowUs)
    return this.#tokens
  }

  spend(sizeBytes: number, nowUs: number): void {
    if (this.perDayBytes === 0) return
    this.#refill(nowUs)
    // Debt is bounded by what one longest wait pays back, else a burst of repacking would slow acks for hours.
    this.#tokens = Math.max(this.#tokens - sizeBytes, -this.perDayBytes * BURST_DAY_SHARE)
  }

  /** @returns µs that the next sync should wait: 0 while there are tokens. */
  waitUs(nowUs: number): number {
    if (this.perDayBytes === 0) return 0
    this.#refill(nowUs)
    if (this.#tokens >= SYNC_COST_BYTES) return 0
    return Math.min(MAX_WAIT_US, ((SYNC_COST_BYTES - this.#tokens) / this.perDayBytes) * DAY_US)
  }

  /** @returns how many times longer than usual writes should wait that nobody waits for. */
  delayFactor(nowUs: number): number {
    return this.waitUs(nowUs) > 0 ? DELAY_FACTOR_IN_DEBT : 1
  }

  #refill(nowUs: number): void {
    const gained = ((nowUs - this.#atUs) / DAY_US) * this.perDayBytes
    this.#tokens = Math.min(this.#tokens + gained, this.perDayBytes * BURST_DAY_SHARE)
    this.#atUs = nowUs
  }
}
