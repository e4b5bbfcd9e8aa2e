/** Readings in datagrams: at most once, never sent again, counted when they are missing. Pure. */
import type { RecordBatch } from '../../../sdk/wire/batch.ts'
import type { Frame } from '../../../sdk/wire/edge/index.ts'
import type { Alias } from './aliases.ts'
import type { DeviceClock } from './device-clock.ts'
import type { Moment } from './exchange.ts'
import type { LaneRates } from './lane-rates.ts'

const REPORT_INTERVAL_MS = 10_000

export class DatagramIntake {
  readonly #clock: DeviceClock
  readonly #rates: LaneRates
  #reportedMs: number

  constructor(options: { clock: DeviceClock; rates: LaneRates; nowMs: number }) {
    this.#clock = options.clock
    this.#rates = options.rates
    this.#reportedMs = options.nowMs
  }

  /** @returns what to append, or undefined for one that is dropped: not declared, not valid, seen before, over the rate. */
  take(
    alias: Alias | undefined,
    frame: Frame<'datagram'>,
    now: Moment,
  ): { alias: number; batch: RecordBatch } | undefined {
    if (alias?.target === undefined) return undefined
    if (alias.form.problemOf(frame.value, alias.target.maxPayloadBytes) !== undefined) return undefined
    if (!alias.datagrams.isNew(frame.number) || this.#rates.waitMs(alias.lane, 1, 0, now) > 0) return undefined
    const { originUs } = this.#clock.originOf(frame.time, now)
    return { alias: alias.id, batch: alias.form.pack([{ originUs, value: frame.value }]) }
  }

  /** @returns reports that are due: at most every ten seconds, and only about what changed. */
  reports(aliases: Iterable<Alias>, now: Moment): Frame<'datagram-report'>[] {
    if (now.monotonicMs - this.#reportedMs < REPORT_INTERVAL_MS) return []
    this.#reportedMs = now.monotonicMs
    return [...aliases].flatMap((alias) => {
      const report = alias.datagrams.report()
      return report === undefined ? [] : [{ type: 'datagram-report' as const, alias: alias.id, ...report }]
    })
  }
}
