/**
 * Decides which log lines are written: whoever can reach a listener can repeat an event as often as they like, and must not
 * fill the journal of the machine, nor wear its flash. Each event has its own allowance, so that a flood of one never hides
 * another; what is left out is counted and told with the next line. Relies on event names being constants of the program.
 * Pure.
 */

/** Lines of one event that are written at once before any is left out. */
const BURST_LINES = 50
/** After a burst, one line of an event in this time: 1440 a day, some 400 KiB. */
const REFILL_MS = 60_000

interface Allowance {
  lines: number
  refilledAtMs: number
  foldedCount: number
}

export interface FoldedLines {
  readonly event: string
  readonly count: number
}

export class LineFolding {
  readonly #allowances = new Map<string, Allowance>()

  /**
   * @param nowMs monotonic.
   * @returns how many lines of this event were left out before this one, which is to be written; null: leave it out too.
   */
  take(event: string, nowMs: number): number | null {
    const allowance = this.#allowanceOf(event, nowMs)
    if (allowance.lines === 0) {
      allowance.foldedCount++
      return null
    }
    allowance.lines--
    const { foldedCount } = allowance
    allowance.foldedCount = 0
    return foldedCount
  }

  /** What was left out and not told yet; it counts as told. */
  drain(): readonly FoldedLines[] {
    const folded = [...this.#allowances].filter(([, { foldedCount }]) => foldedCount > 0)
    return folded.map(([event, allowance]) => {
      const count = allowance.foldedCount
      allowance.foldedCount = 0
      return { event, count }
    })
  }

  #allowanceOf(event: string, nowMs: number): Allowance {
    const known = this.#allowances.get(event)
    if (known === undefined) {
      const fresh = { lines: BURST_LINES, refilledAtMs: nowMs, foldedCount: 0 }
      this.#allowances.set(event, fresh)
      return fresh
    }
    const dueLines = Math.floor((nowMs - known.refilledAtMs) / REFILL_MS)
    if (dueLines > 0) {
      known.lines = Math.min(BURST_LINES, known.lines + dueLines)
      known.refilledAtMs += dueLines * REFILL_MS
    }
    return known
  }
}
