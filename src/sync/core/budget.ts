/**
 * What a metered link may carry: a rate with a burst of one second, and an amount per day that starts anew every 24 hours,
 * counted by running time (the wall clock of a gateway is not to be trusted). Pure; zero means no limit.
 */
export interface BudgetOptions {
  readonly maxBytesPerSecond: number
  readonly dailyBudgetBytes: number
}

/** How much of a day has passed, and what was sent in it. */
export interface BudgetDay {
  readonly usedBytes: number
  readonly elapsedUs: number
}

const SECOND_US = 1_000_000
const DAY_US = 24 * 3600 * SECOND_US

export class Budget {
  readonly #options: BudgetOptions
  #tokens: number
  #tokensAtUs: number
  #dayStartUs: number
  #usedTodayBytes: number

  /** @param day how far an earlier process came in the day that goes on. */
  constructor(options: BudgetOptions, nowUs: number, day: BudgetDay = { usedBytes: 0, elapsedUs: 0 }) {
    this.#options = options
    this.#tokens = options.maxBytesPerSecond
    this.#tokensAtUs = nowUs
    this.#dayStartUs = nowUs - day.elapsedUs
    this.#usedTodayBytes = day.usedBytes
  }

  get usedTodayBytes(): number {
    return this.#usedTodayBytes
  }

  day(nowUs: number): BudgetDay {
    return { usedBytes: this.#usedTodayBytes, elapsedUs: nowUs - this.#dayStartUs }
  }

  /** What may be sent before the day is over; more than that only as one record, which the next day then lacks. */
  leftBytes(nowUs: number): number {
    this.#passDays(nowUs)
    const { dailyBudgetBytes } = this.#options
    return dailyBudgetBytes === 0 ? Number.POSITIVE_INFINITY : Math.max(0, dailyBudgetBytes - this.#usedTodayBytes)
  }

  /** @returns which limit keeps everything back now, and for how many µs; null when none does. */
  pause(nowUs: number): { readonly reason: 'day' | 'rate'; readonly forUs: number } | null {
    const dayUs = this.#dayWaitUs(nowUs)
    const forUs = Math.max(dayUs, this.#rateWaitUs(nowUs))
    return forUs === 0 ? null : { reason: dayUs === forUs ? 'day' : 'rate', forUs }
  }

  /** @returns µs to wait before that much may be sent; 0 takes it from the budget. Larger than a burst: goes into debt. */
  take(sizeBytes: number, nowUs: number): number {
    const waitUs = Math.max(this.#dayWaitUs(nowUs), this.#rateWaitUs(nowUs))
    if (waitUs > 0) return waitUs
    this.#tokens -= sizeBytes
    this.#usedTodayBytes += sizeBytes
    return 0
  }

  #passDays(nowUs: number): void {
    const daysOver = Math.floor((nowUs - this.#dayStartUs) / DAY_US)
    if (daysOver <= 0) return
    this.#dayStartUs += daysOver * DAY_US
    const { dailyBudgetBytes } = this.#options
    const debtBytes = dailyBudgetBytes === 0 ? 0 : this.#usedTodayBytes - daysOver * dailyBudgetBytes
    this.#usedTodayBytes = Math.max(0, debtBytes)
  }

  #dayWaitUs(nowUs: number): number {
    this.#passDays(nowUs)
    const { dailyBudgetBytes } = this.#options
    if (dailyBudgetBytes === 0 || this.#usedTodayBytes < dailyBudgetBytes) return 0
    return this.#dayStartUs + DAY_US - nowUs
  }

  #rateWaitUs(nowUs: number): number {
    const rate = this.#options.maxBytesPerSecond
    if (rate === 0) return 0
    this.#tokens = Math.min(rate, this.#tokens + ((nowUs - this.#tokensAtUs) / SECOND_US) * rate)
    this.#tokensAtUs = nowUs
    return this.#tokens > 0 ? 0 : Math.ceil(((1 - this.#tokens) / rate) * SECOND_US)
  }
}
