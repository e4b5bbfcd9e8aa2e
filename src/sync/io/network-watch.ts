/**
 * Notices that the network or the wall clock changed: a link that waits is then tried at once, not after its pause. Looks
 * at the interfaces' addresses every few seconds, which needs no privilege and costs a tenth of a millisecond.
 */
import type { networkInterfaces } from 'node:os'
import type { Clock } from '../../clock.ts'
import { networkNow } from '../../sdk/index.ts'

export interface NetworkWatchOptions {
  readonly intervalMs: number
  readonly clock: Clock
  /** The network changed, or the wall clock stepped. */
  readonly onChange: () => void
  /** Called every time, after any change was told. */
  readonly onTick: () => void
  /** The system's, unless a test has others. */
  readonly interfaces?: typeof networkInterfaces
}

/** A wall clock that moved against the monotonic one by more was set, not slewed. */
const STEP_US = 2_000_000

export class NetworkWatch {
  readonly #options: NetworkWatchOptions
  readonly #timer: ReturnType<typeof setInterval>
  #addresses: string | null
  #driftUs: number

  constructor(options: NetworkWatchOptions) {
    this.#options = options
    this.#addresses = networkNow(options.interfaces)
    this.#driftUs = this.#drift()
    this.#timer = setInterval(() => this.#look(), options.intervalMs)
    this.#timer.unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const addresses = networkNow(this.#options.interfaces) ?? this.#addresses
    const driftUs = this.#drift()
    const isChanged = addresses !== this.#addresses || Math.abs(driftUs - this.#driftUs) > STEP_US
    this.#addresses = addresses
    this.#driftUs = driftUs
    if (isChanged) this.#options.onChange()
    this.#options.onTick()
  }

  #drift(): number {
    const { clock } = this.#options
    return Number(clock.wallUs()) - clock.monotonicUs()
  }
}
