/** Pings a link that carries nothing else, so that address translation on the way keeps it, and a dead one is noticed. */
import { type Clock, US_MS } from '../../clock.ts'
import type { Turns } from './turns.ts'

export interface HeartbeatOptions {
  /** 0: never. */
  readonly intervalMs: number
  readonly clock: Clock
  /** A ping at which the link ends shall not be laid at the door of a record that has the link for itself. */
  readonly turns: Turns
  /** One that fails ends the link by itself. */
  readonly ping: () => Promise<unknown>
}

export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #timer: ReturnType<typeof setInterval> | null
  #lastSentUs: number
  #isPinging = false

  constructor(options: HeartbeatOptions) {
    const { intervalMs, clock } = options
    this.#options = options
    this.#lastSentUs = clock.monotonicUs()
    this.#timer = intervalMs === 0 ? null : setInterval(() => void this.#beat(), intervalMs)
    this.#timer?.unref()
  }

  /** Something went over the link. */
  sent(): void {
    this.#lastSentUs = this.#options.clock.monotonicUs()
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
  }

  async #beat(): Promise<void> {
    const { intervalMs, clock, turns, ping } = this.#options
    const idleUs = clock.monotonicUs() - this.#lastSentUs
    if (this.#isPinging || idleUs < (intervalMs * US_MS) / 2) return
    this.#isPinging = true
    await turns.share(ping).catch(() => {})
    this.#isPinging = false
  }
}
