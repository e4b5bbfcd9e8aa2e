/** Time as everyone below the composition root sees it: handed in, so that tests and the simulation move it. */
export interface Clock {
  /** Wall clock, µs since the Unix epoch. May step in both directions. */
  wallUs(): bigint
  /** Monotonic, µs since an arbitrary start; never steps. Timeouts, backoff and lingering use only this. */
  monotonicUs(): number
}

/** The machine's clocks. */
export const systemClock: Clock = {
  wallUs: () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) + wallStepUs(),
  monotonicUs: () => performance.now() * 1000,
}

/** `performance` follows the wall clock of the process start; this adds what the wall clock has stepped since then. */
function wallStepUs(): bigint {
  const differenceMs = Date.now() - (performance.timeOrigin + performance.now())
  // Below 50 ms it is rounding and slewing: the finer clock is right.
  return Math.abs(differenceMs) < 50 ? 0n : BigInt(Math.round(differenceMs)) * 1000n
}
