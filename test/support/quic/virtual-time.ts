/** Time that jumps from event to event; those of one instant run in the order in which they were asked for. */

interface Event {
  readonly atMs: number
  readonly order: number
  readonly run: () => void
}

export class VirtualTime {
  nowMs = 0
  #events: Event[] = []
  #order = 0

  at(atMs: number, run: () => void): void {
    const event = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, run }
    let low = 0
    let high = this.#events.length
    // Latest first, so that the next one is taken from the end.
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#events[middle]?.atMs ?? 0) > event.atMs) low = middle + 1
      else high = middle
    }
    this.#events.splice(low, 0, event)
  }

  after(delayMs: number, run: () => void): void {
    this.at(this.nowMs + delayMs, run)
  }

  /** Runs the next event. @returns false when there is none. */
  step(): boolean {
    const event = this.#events.pop()
    if (event === undefined) return false
    this.nowMs = event.atMs
    event.run()
    return true
  }
}
