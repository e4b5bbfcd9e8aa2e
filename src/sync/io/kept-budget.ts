/**
 * The budget of one upstream, kept over restarts: a gateway that is switched off and on many times a day has one daily
 * budget, not many.
 */
import type { Clock } from '../../clock.ts'
import { Budget, type BudgetOptions } from '../core/budget.ts'
import type { BudgetStore } from '../ports.ts'

/** A process that is killed forgets this share of a day's budget at most. */
const SAVED_SHARE = 1 / 64

export interface KeptBudgetOptions extends BudgetOptions {
  readonly name: string
}

export class KeptBudget {
  readonly #options: KeptBudgetOptions
  readonly #store: BudgetStore | undefined
  readonly #clock: Clock
  readonly #budget: Budget
  #savedBytes: number

  constructor(options: KeptBudgetOptions, store: BudgetStore | undefined, clock: Clock) {
    this.#options = options
    this.#store = store
    this.#clock = clock
    const spent = options.dailyBudgetBytes > 0 ? store?.spent(options.name) : undefined
    // Of the time since then the wall clock tells, unless it went back: then none has passed.
    const awayUs = spent === undefined ? 0 : Math.max(0, Number(clock.wallUs() - spent.atUs))
    const day = spent && { usedBytes: spent.usedBytes, elapsedUs: spent.elapsedUs + awayUs }
    this.#budget = new Budget(options, clock.monotonicUs(), day)
    this.#savedBytes = day?.usedBytes ?? 0
  }

  get usedTodayBytes(): number {
    return this.#budget.usedTodayBytes
  }

  /** @returns µs until something may be sent, and which of the limits it is; null when something may be sent now. */
  pause(): { readonly reason: 'day' | 'rate'; readonly forUs: number } | null {
    return this.#budget.pause(this.#clock.monotonicUs())
  }

  /** What may still be sent today; infinite without a daily budget. */
  leftBytes(): number {
    return this.#budget.leftBytes(this.#clock.monotonicUs())
  }

  /** @returns µs to wait before that much may be sent; 0 takes it from the budget. */
  take(sizeBytes: number): number {
    const waitUs = this.#budget.take(sizeBytes, this.#clock.monotonicUs())
    if (waitUs === 0) this.#saveSometimes()
    return waitUs
  }

  /** Resolves when what was spent is kept. */
  async close(): Promise<void> {
    if (this.#options.dailyBudgetBytes > 0 && this.usedTodayBytes !== this.#savedBytes) await this.#save()
  }

  #saveSometimes(): void {
    const { dailyBudgetBytes } = this.#options
    const unsavedBytes = Math.abs(this.usedTodayBytes - this.#savedBytes)
    const isDue = unsavedBytes >= dailyBudgetBytes * SAVED_SHARE || this.usedTodayBytes >= dailyBudgetBytes
    if (dailyBudgetBytes > 0 && isDue) void this.#save()
  }

  async #save(): Promise<void> {
    const { usedBytes, elapsedUs } = this.#budget.day(this.#clock.monotonicUs())
    this.#savedBytes = usedBytes
    const spent = { usedBytes, elapsedUs, atUs: this.#clock.wallUs() }
    // What a full disk does not keep is made up for by the next time.
    await this.#store?.setSpent(this.#options.name, spent).catch(() => {})
  }
}
