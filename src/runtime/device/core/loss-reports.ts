/**
 * Losses as an operator is told of them: the first of a device and reason at once, what follows once a minute with its sum.
 * Bounded by the devices that lost something in the last minute. Pure.
 */
import type { LossReason } from './exchange.ts'

const INTERVAL_MS = 60_000

export interface Loss {
  readonly device: string | undefined
  readonly reason: LossReason
  /** Where it began. */
  readonly lane: number
  readonly first: number
  readonly count: number
}

export class LossReports {
  readonly #recent = new Map<string, { readonly untilMs: number; readonly sum: Loss | undefined }>()

  /** @returns what is to be told now. */
  add(loss: Loss, nowMs: number): Loss[] {
    const key = `${loss.reason} ${loss.device}`
    const before = this.#recent.get(key)
    if (before === undefined) {
      this.#recent.set(key, { untilMs: nowMs + INTERVAL_MS, sum: undefined })
      return [loss]
    }
    const { untilMs, sum } = before
    this.#recent.set(key, { untilMs, sum: sum === undefined ? loss : { ...sum, count: sum.count + loss.count } })
    return []
  }

  /** @returns sums whose minute is over. */
  due(nowMs: number): Loss[] {
    const over = [...this.#recent].filter(([, { untilMs }]) => untilMs <= nowMs)
    return over.flatMap(([key, { sum }]) => {
      if (sum === undefined) this.#recent.delete(key)
      else this.#recent.set(key, { untilMs: nowMs + INTERVAL_MS, sum: undefined })
      return sum ?? []
    })
  }

  /** @returns sums that were not told yet. */
  takeAll(): Loss[] {
    const sums = [...this.#recent.values()].flatMap(({ sum }) => sum ?? [])
    this.#recent.clear()
    return sums
  }
}
