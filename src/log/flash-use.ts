/** What is written to the device, whoever writes it: counted for the metrics and paid from the budget. */
import type { Clock } from '../clock.ts'
import { alignUp } from './core/byte-area.ts'
import { FlashBudget, SYNC_COST_BYTES, type Written } from './core/flash-budget.ts'
import { PAGE_SIZE } from './core/journal-format.ts'

export class FlashUse {
  readonly budget: FlashBudget
  readonly #clock: Clock
  /** But for groups of messages: the journal counts and pays those itself. */
  writtenBytes = 0

  /** @param perDayBytes 0: no budget. */
  constructor(perDayBytes: number, clock: Clock) {
    this.budget = new FlashBudget(perDayBytes, clock.monotonicUs())
    this.#clock = clock
  }

  get leftBytes(): number {
    return this.budget.leftBytes(this.#clock.monotonicUs())
  }

  /** How many times longer than usual writes should wait that nobody waits for. */
  readonly delayFactor = (): number => this.budget.delayFactor(this.#clock.monotonicUs())

  readonly written: Written = (sizeBytes, syncCount) => {
    const physical = alignUp(sizeBytes, PAGE_SIZE) + syncCount * SYNC_COST_BYTES
    this.writtenBytes += physical
    this.budget.spend(physical, this.#clock.monotonicUs())
  }
}
