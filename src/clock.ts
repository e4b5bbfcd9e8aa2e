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

/** Two readings of one moment lie less apart; Date.now tells whole milliseconds, rounded down. */
const CLOSE_MS = 2
/** A reading that takes longer was interrupted. */
const READING_MS = 0.5
/** Tried so often before the next call tries again. */
const READINGS = 3

/** The machine's two clocks, ms: one steps with the wall clock and is coarse, the other is fine and never steps. */
export interface MachineClocks {
  coarseWallMs(): number
  fineMs(): number
}

/** The wall clock in microseconds: the fine clock, set anew whenever the coarse one has stepped. */
export class FineWallClock {
  readonly #clocks: MachineClocks
  /** From the fine clock to the wall clock. */
  #stepMs: number

  constructor(clocks: MachineClocks, stepMs: number) {
    this.#clocks = clocks
    this.#stepMs = stepMs
  }

  /** Since the Unix epoch. */
  nowUs(): bigint {
    const { coarseWallMs, fineMs } = this.#clocks
    let wallMs = fineMs() + this.#stepMs
    if (Math.abs(coarseWallMs() + 0.5 - wallMs) > CLOSE_MS) {
      this.#set()
      wallMs = fineMs() + this.#stepMs
    }
    return BigInt(Math.round(wallMs * US_MS))
  }

  /** Only by readings of one moment: on a busy machine a thread may have to wait between two lines. */
  #set(): void {
    const { coarseWallMs, fineMs } = this.#clocks
    for (let reading = 0; reading < READINGS; reading++) {
      const beforeMs = fineMs()
      const wallMs = coarseWallMs() + 0.5
      const afterMs = fineMs()
      if (afterMs - beforeMs > READING_MS) continue
      if (Math.abs(wallMs - beforeMs - this.#stepMs) > CLOSE_MS) this.#stepMs = wallMs - beforeMs
      return
    }
  }
}

const wallClock = new FineWallClock(
  { coarseWallMs: () => Date.now(), fineMs: () => performance.now() },
  performance.timeOrigin,
)

/** The machine's clocks. */
export const systemClock: Clock = {
  wallUs: () => wallClock.nowUs(),
  monotonicUs: () => performance.now() * US_MS,
}
