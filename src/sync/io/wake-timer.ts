/** One wake-up at a time of the monotonic clock, set anew as often as needed; keeps no process alive. */
import { type Clock, US_MS } from '../../clock.ts'
import { MAX_TIMER_MS } from '../../long-timer.ts'

export class WakeTimer {
  readonly #clock: Clock
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Replaces the wake-up that was set before. @param atUs µs of the monotonic clock. */
  set(atUs: number, onDue: () => void): void {
    this.clear()
    // Rounded up: a timer that fires early would find nothing due and never come again.
    const waitMs = Math.ceil(Math.max(0, (atUs - this.#clock.monotonicUs()) / US_MS)) + 1
    const isTooFar = waitMs > MAX_TIMER_MS
    this.#timer = setTimeout(isTooFar ? () => this.set(atUs, onDue) : onDue, Math.min(MAX_TIMER_MS, waitMs))
    this.#timer.unref()
  }

  clear(): void {
    clearTimeout(this.#timer)
  }
}
