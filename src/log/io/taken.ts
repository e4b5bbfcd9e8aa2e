/** What a read gathers on its way through segments and journal, up to its bounds. */
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import type { ReadResult } from '../api.ts'
import { BATCH_FLAG } from '../core/batch-header.ts'
import type { ReadBatch } from './journal-reader.ts'

export interface ReadBounds {
  readonly from: bigint
  /** Exclusive. */
  readonly end: bigint
  readonly maxCount: number
  readonly maxBytes: number
}

export class Taken {
  readonly #idSeed: bigint
  readonly bounds: ReadBounds
  readonly #batches: StoredBatch[] = []
  /** How many of the batches lie where they outlive this turn; the others lie in buffers that are used again. */
  #keptCount = 0
  #hole: { from: bigint; end: bigint } | undefined
  /** Something was left for the next read. */
  #isClosed = false
  next: bigint
  count = 0
  bytes = 0

  constructor(idSeed: bigint, bounds: ReadBounds) {
    this.#idSeed = idSeed
    this.bounds = bounds
    this.next = bounds.from
  }

  get left(): number {
    return this.bounds.maxCount - this.count
  }

  get isFull(): boolean {
    return this.left <= 0 || (this.count > 0 && this.bytes >= this.bounds.maxBytes)
  }

  /** Nothing more can be taken. */
  get isDone(): boolean {
    return this.#isClosed || this.isFull || this.next >= this.bounds.end
  }

  hasRoomFor(sizeBytes: number): boolean {
    return this.count === 0 || this.bytes + sizeBytes <= this.bounds.maxBytes
  }

  /** Copies what would not outlive this turn. */
  keep(): void {
    for (const [at, batch] of this.#batches.entries()) {
      if (at >= this.#keptCount) this.#batches[at] = { ...batch, recordsView: new Uint8Array(batch.recordsView) }
    }
    this.#keptCount = this.#batches.length
  }

  /**
   * @param isLasting its bytes are nobody else's and stay as they are.
   * @returns false when the batch was not taken: there is enough, or a second hole lies before it.
   */
  add(batch: ReadBatch, isLasting = false): boolean {
    const isAllKept = this.#keptCount === this.#batches.length
    const isTaken = this.#tryAdd(batch)
    if (!isTaken) this.#isClosed = true
    if (isLasting && isAllKept) this.#keptCount = this.#batches.length
    return isTaken
  }

  #tryAdd({ header, recordsView }: ReadBatch): boolean {
    const end = header.baseOffset + BigInt(header.count)
    if (end <= this.next) return true
    if (this.isFull || header.baseOffset >= this.bounds.end) return false
    if (!this.hasRoomFor(recordsView.length)) return false
    if (header.baseOffset > this.next && !this.skipTo(header.baseOffset)) return false
    const skip = Number(this.next - header.baseOffset)
    const take = Math.min(header.count - skip, this.left)
    this.#batches.push({
      count: header.count,
      baseOriginUs: header.baseOriginUs,
      recordsView,
      baseOffset: header.baseOffset,
      appendTimeUs: header.appendTimeUs,
      idSeed: this.#idSeed,
      skip,
      take,
      isClockTrusted: (header.flags & BATCH_FLAG.isClockTrusted) !== 0,
    })
    this.count += take
    this.bytes += recordsView.length
    this.next += BigInt(take)
    return true
  }

  /** Passes over a range. @returns false when another hole was told already: the next read goes on from here. */
  skipTo(offset: bigint): boolean {
    if (offset <= this.next) return true
    if (this.#hole !== undefined && this.#hole.end !== this.next) {
      this.#isClosed = true
      return false
    }
    this.#hole = { from: this.#hole?.from ?? this.next, end: offset }
    this.next = offset
    return true
  }

  result(): ReadResult {
    const result = { batches: this.#batches, nextOffset: this.next, messageCount: this.count }
    return this.#hole === undefined ? result : { ...result, hole: this.#hole }
  }
}
