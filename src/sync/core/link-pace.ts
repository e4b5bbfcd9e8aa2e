/**
 * What was learned of a link: its round trip, and the rates at which it carries, which may differ by direction. Outlives the
 * connections, so that the next one need not learn it anew. Pure.
 */
import type { Patience } from '../../sdk/index.ts'
import { type RequestKind, RoundTrip, type TimeoutBounds } from './round-trip.ts'
import { TransferRate } from './transfer-rate.ts'

export interface LinkPaceBounds extends TimeoutBounds {
  /** What the slowest link worth using carries. */
  readonly usualBytesPerSecond: number
}

/** A request as far as the link is concerned. */
export interface Exchange {
  readonly kind: RequestKind
  /** Bytes of the question and of the answer, where they are more than a few. */
  readonly upBytes: number
  readonly downBytes: number
}

export class LinkPace {
  readonly #roundTrip: RoundTrip
  readonly #up: TransferRate
  readonly #down: TransferRate
  #isUpLate = false
  #isDownLate = false

  constructor(bounds: LinkPaceBounds) {
    this.#roundTrip = new RoundTrip(bounds)
    this.#up = new TransferRate(bounds)
    this.#down = new TransferRate(bounds)
  }

  /** A connection begins. */
  begin(): void {
    this.#isUpLate = false
    this.#isDownLate = false
  }

  patienceFor(kind: RequestKind): Patience {
    return this.#roundTrip.of(kind)
  }

  /** @returns µs that it may take beyond a round trip. */
  transferUs({ upBytes, downBytes }: Omit<Exchange, 'kind'>): number {
    return this.#up.timeUs(upBytes) + this.#down.timeUs(downBytes)
  }

  carried({ upBytes, downBytes }: Omit<Exchange, 'kind'>, durationUs: number): void {
    this.#up.carried(upBytes, durationUs)
    this.#down.carried(downBytes, durationUs)
  }

  /** Counts once in each direction, however many requests end with the connection. */
  timedOut({ upBytes, downBytes }: Omit<Exchange, 'kind'>): void {
    if (upBytes > 0 && !this.#isUpLate) this.#up.timedOut()
    if (downBytes > 0 && !this.#isDownLate) this.#down.timedOut()
    this.#isUpLate ||= upBytes > 0
    this.#isDownLate ||= downBytes > 0
  }
}
