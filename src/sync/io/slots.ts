/** So many may be at work at a time, with a batch or a request; the rest waits its turn, first come, first served. */
export class Slots {
  readonly #limit: number
  readonly #waiting: (() => void)[] = []
  #taken = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Calls `run` now or later with a slot, which the caller then gives back by `release`.
   *
   * @returns a function that withdraws the request; of no effect once `run` was called.
   */
  acquire(run: () => void): () => void {
    if (this.#taken < this.#limit) {
      this.#taken += 1
      run()
      return () => {}
    }
    this.#waiting.push(run)
    return () => {
      const index = this.#waiting.indexOf(run)
      if (index >= 0) this.#waiting.splice(index, 1)
    }
  }

  release(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#taken -= 1
  }
}
