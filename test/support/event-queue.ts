/** Simulated time: what shall happen later happens in its order, at once. */
export class EventQueue {
  nowUs = 0
  readonly #events: { readonly atUs: number; readonly run: () => void }[] = []

  /** Those of one time happen in the order they were set. */
  after(delayUs: number, run: () => void): void {
    const atUs = this.nowUs + delayUs
    let place = this.#events.length
    while (place > 0 && (this.#events[place - 1]?.atUs ?? 0) > atUs) place -= 1
    this.#events.splice(place, 0, { atUs, run })
  }

  /** @param afterEach what happens beside each event. */
  runUntil(endUs: number, afterEach: () => void = () => {}): void {
    for (;;) {
      const next = this.#events[0]
      if (next === undefined || next.atUs > endUs) break
      this.#events.shift()
      this.nowUs = next.atUs
      next.run()
      afterEach()
    }
    this.nowUs = endUs
  }
}
