/**
 * How much goes into the next send. Starts at the configured bounds, learns the peer's limits from its refusals, goes down
 * to single records to find the one that is refused, and up again once sends succeed. Pure.
 */
export interface BatchBounds {
  readonly maxCount: number
  readonly maxBytes: number
}

/** Sends of one size that vanish before the size itself is suspected. */
const SUSPECT_AFTER_LOSSES = 2
/** A learned ceiling is tried again upwards after so many sends that fitted it. */
const PROBE_AFTER_SUCCESSES = 1000
/** Bytes below which a batch is never cut for a lost reply: then it is the link, not the size. */
const MIN_LOSS_BYTES = 4096

export class Batcher {
  readonly #bounds: BatchBounds
  #ceilingCount: number
  #ceilingBytes: number
  #count: number
  #bytes: number
  #lossesInRow = 0
  #successesAtCeiling = 0

  constructor(bounds: BatchBounds) {
    this.#bounds = bounds
    this.#ceilingCount = bounds.maxCount
    this.#ceilingBytes = bounds.maxBytes
    this.#count = bounds.maxCount
    this.#bytes = bounds.maxBytes
  }

  /** Bounds of the next batch; it holds one record at least, whatever its size. */
  get bounds(): BatchBounds {
    return { maxCount: this.#count, maxBytes: this.#bytes }
  }

  succeeded(): void {
    this.#lossesInRow = 0
    this.#count = Math.min(this.#count * 2, this.#ceilingCount)
    this.#bytes = Math.min(this.#bytes * 2, this.#ceilingBytes)
    const isCut = this.#ceilingCount < this.#bounds.maxCount || this.#ceilingBytes < this.#bounds.maxBytes
    if (!isCut) return
    this.#successesAtCeiling += 1
    if (this.#successesAtCeiling < PROBE_AFTER_SUCCESSES) return
    this.#successesAtCeiling = 0
    this.#ceilingCount = Math.min(this.#ceilingCount * 2, this.#bounds.maxCount)
    this.#ceilingBytes = Math.min(this.#ceilingBytes * 2, this.#bounds.maxBytes)
  }

  /** The peer says that this much is too much: never more than half of it again, until a late probe. */
  refusedAsTooLarge(count: number, sizeBytes: number): void {
    this.#successesAtCeiling = 0
    this.#ceilingCount = Math.max(1, Math.min(this.#ceilingCount, Math.floor(count / 2)))
    this.#ceilingBytes = Math.max(1, Math.min(this.#ceilingBytes, Math.floor(sizeBytes / 2)))
    this.#count = this.#ceilingCount
    this.#bytes = this.#ceilingBytes
  }

  /** Something in it is refused: halves until the record is alone. */
  refusedAsInvalid(count: number): void {
    this.#count = Math.max(1, Math.floor(count / 2))
  }

  /** No answer came: on a slow link, or from a peer that hangs up on large requests, smaller ones get through. */
  lost(sizeBytes: number): void {
    this.#lossesInRow += 1
    if (this.#lossesInRow < SUSPECT_AFTER_LOSSES || sizeBytes < MIN_LOSS_BYTES) return
    this.#lossesInRow = 0
    this.#bytes = Math.max(MIN_LOSS_BYTES, Math.floor(Math.min(this.#bytes, sizeBytes) / 2))
  }
}
