/** Microseconds a millisecond: times are µs, timers and settings ms. */
export const US_MS = 1000

/** A wall clock that shows less, µs, was never set: this program is younger. 2025-01-01. */
export const EARLIEST_WALL_US = 1_735_689_600_000_000n

/** Time as everyone below the composition root sees it: handed in, so that tests and the simulation move it. */
export interface Clock {
  /** Wall clock, µs since the Unix epoch. May step in both directions. */
  wallUs(): bigint
  /** Monotonic, µs since an arbitrary start; never steps. Timeouts, backoff and lingering use only this. */
  monotonicUs(): number
}

const START_MS = performance.timeOrigin

/** The machine's clocks. */
export const systemClock: Clock = {
  wallUs() {
    const fineMs = START_MS + performance.now()
    return BigInt(Math.round(fineMs * 1000) + wallStepMs(fineMs) * 1000)
  },
  monotonicUs: () => performance.now() * 1000,
}

/** `performance` follows the wall clock of the process start; this is what the wall clock has stepped since then. */
function wallStepMs(fineMs: number): number {
  const differenceMs = Date.now() - fineMs
  // Below 50 ms it is rounding and slewing: the finer clock is right.
  return Math.abs(differenceMs) < 50 ? 0 : Math.round(differenceMs)
}
