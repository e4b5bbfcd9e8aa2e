/**
 * Who may use a link now. Requests share it, but for those that are suspected of ending it: each of them goes by itself, so
 * that nothing else is ended with it, or blamed for it. Others go before it for a while, as it may take the link from them.
 */

/** A suspect waits for so many requests that came later, and for an end of those under way. */
const MAX_OVERTAKING = 64

interface Suspect {
  readonly suspicion: number
  readonly run: () => void
}

export class Turns {
  readonly #waiting: (() => void)[] = []
  readonly #suspects: Suspect[] = []
  #openCount = 0
  #isTakenAlone = false
  #overtakingCount = 0

  /**
   * Calls `run` now or later; the caller gives the turn back by `end`.
   *
   * @param suspicion 0 shares the link; else nothing else is on it meanwhile, and the least suspected goes first.
   */
  take(suspicion: number, run: () => void): void {
    if (suspicion > 0) this.#suspects.push({ suspicion, run })
    else this.#waiting.push(run)
    this.#next()
  }

  /** Runs `work` when its turn comes, beside others. */
  share<T>(work: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.take(0, () => {
      work()
        .finally(() => this.end())
        .then(resolve, reject)
    })
    return promise
  }

  end(): void {
    this.#openCount -= 1
    this.#isTakenAlone = false
    this.#next()
  }

  #next(): void {
    while (!this.#isTakenAlone) {
      const run = this.#nextShared() ?? this.#nextSuspect()
      if (run === undefined) return
      this.#openCount += 1
      run()
    }
  }

  #nextShared(): (() => void) | undefined {
    if (this.#suspects.length === 0) return this.#waiting.shift()
    if (this.#waiting.length === 0 || this.#overtakingCount === MAX_OVERTAKING) return undefined
    this.#overtakingCount += 1
    return this.#waiting.shift()
  }

  #nextSuspect(): (() => void) | undefined {
    if (this.#openCount > 0 || this.#suspects.length === 0) return undefined
    const least = Math.min(...this.#suspects.map(({ suspicion }) => suspicion))
    const index = this.#suspects.findIndex(({ suspicion }) => suspicion === least)
    this.#isTakenAlone = true
    this.#overtakingCount = 0
    return this.#suspects.splice(index, 1)[0]?.run
  }
}
