/** How fast a device may send: lanes 1 to 3 share one rate, lane 0 has a tenth of it for itself. Pure. */
import { type EdgeLimits, LANES } from '../../../sdk/wire/edge/index.ts'
import type { Moment } from './exchange.ts'
import { TokenBucket } from './token-bucket.ts'

const BURST_SECONDS = 2
const ALARM_SHARE = 0.1

interface Rate {
  readonly readings: TokenBucket
  readonly bytes: TokenBucket
}

export class LaneRates {
  readonly #alarms: Rate
  readonly #others: Rate

  constructor(limits: Pick<EdgeLimits, 'readingsPerSecond' | 'bytesPerSecond'>, nowMs: number) {
    const rate = (share: number): Rate => ({
      readings: new TokenBucket(limits.readingsPerSecond * share, BURST_SECONDS, nowMs),
      bytes: new TokenBucket(limits.bytesPerSecond * share, BURST_SECONDS, nowMs),
    })
    this.#alarms = rate(ALARM_SHARE)
    this.#others = rate(1)
  }

  /** @returns 0 when the readings are within the rate and were counted, else ms until they fit. */
  waitMs(lane: number, count: number, sizeBytes: number, now: Moment): number {
    const { readings, bytes } = lane === LANES.alarm ? this.#alarms : this.#others
    const forMs = Math.max(readings.waitMs(count, now.monotonicMs), bytes.waitMs(sizeBytes, now.monotonicMs))
    if (forMs > 0) return forMs
    readings.take(count)
    bytes.take(sizeBytes)
    return 0
  }
}
