/**
 * How long a transfer in one direction may take beyond a round trip: its bytes, at a rate that the link surely has. That
 * begins with the rate of the slowest link worth using, is halved when a transfer did not end in time, and rises with what is
 * seen to get through. A fixed rate would cut a large record short for ever on a link that is slower, or that loses large
 * packets until the system takes smaller ones: no answer to a login tells of either. Pure.
 */
export interface RateBounds {
  readonly usualBytesPerSecond: number
  /** No transfer is given longer, unless it takes longer at the usual rate. */
  readonly maxUs: number
}

const MIN_BYTES_PER_SECOND = 250
/** Less than this is a round trip rather than a rate. */
const MIN_TELLING_BYTES = 4096
/** A link that carried so much in a second may carry this part of it in the next. */
const CARRIED_SHARE = 1 / 4
const SECOND_US = 1_000_000

export class TransferRate {
  readonly #bounds: RateBounds
  #bytesPerSecond: number

  constructor(bounds: RateBounds) {
    this.#bounds = bounds
    this.#bytesPerSecond = bounds.usualBytesPerSecond
  }

  timeUs(sizeBytes: number): number {
    const { usualBytesPerSecond, maxUs } = this.#bounds
    const usualUs = (sizeBytes / usualBytesPerSecond) * SECOND_US
    return Math.min((sizeBytes / this.#bytesPerSecond) * SECOND_US, Math.max(usualUs, maxUs))
  }

  carried(sizeBytes: number, durationUs: number): void {
    if (sizeBytes < MIN_TELLING_BYTES) return
    const seen = (sizeBytes / Math.max(1, durationUs)) * SECOND_US * CARRIED_SHARE
    this.#bytesPerSecond = Math.min(this.#bounds.usualBytesPerSecond, Math.max(this.#bytesPerSecond, seen))
  }

  timedOut(): void {
    this.#bytesPerSecond = Math.max(MIN_BYTES_PER_SECOND, this.#bytesPerSecond / 2)
  }
}
