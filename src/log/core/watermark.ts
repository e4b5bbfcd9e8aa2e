/**
 * The ends of one partition: given, written, visible, durable. Says when an append's promise holds and what a poll may see.
 *
 * Invariants: `durableEnd <= writtenEnd <= nextOffset`, `visibleEnd <= writtenEnd`, none of them ever falls, and what of a
 * buffered partition was seen but is not synced never exceeds `JUMP` records: that is how far the offsets go on after a
 * crash that may have taken them, so that an offset once seen is never given again.
 */
import { assert } from '../../assert.ts'

/** Records of one buffered partition that may be seen before they are synced. */
export const JUMP = 65_536n

export class Watermark {
  readonly isBuffered: boolean
  nextOffset: bigint
  writtenEnd: bigint
  visibleEnd: bigint
  durableEnd: bigint
  /** Nothing is promised or shown before everything below it is synced: the duty left by a crash or a full window. */
  #owedEnd = 0n

  constructor(isBuffered: boolean, end: bigint) {
    this.isBuffered = isBuffered
    this.nextOffset = end
    this.writtenEnd = end
    this.visibleEnd = end
    this.durableEnd = end
  }

  /** Gives the next `count` offsets. @returns the first one. */
  give(count: number): bigint {
    const base = this.nextOffset
    this.nextOffset = base + BigInt(count)
    return base
  }

  /** Whether a batch up to `end` may be acked and seen before it is synced. */
  isShownWhenWritten(end: bigint): boolean {
    return this.isBuffered && this.#owedEnd <= this.durableEnd && end - this.durableEnd <= JUMP
  }

  /** Whether offsets may have been seen that are not there: the duty of `jumpTo` and `oweFrom` is open. */
  get isOwing(): boolean {
    return this.#owedEnd > this.durableEnd
  }

  /** What the duty is to go on above; undefined where none is open. */
  get owedOffset(): bigint | undefined {
    return this.isOwing ? this.#owedEnd - 1n : undefined
  }

  /** Goes on at `offset`, with nothing shown before a batch at or above it is synced. */
  jumpTo(offset: bigint): void {
    assert(offset >= this.nextOffset, `a jump goes up: ${offset} from ${this.nextOffset}`)
    this.nextOffset = offset
    this.#owedEnd = offset + 1n
  }

  /** What lies above `durableEnd` was found, not proven: it is shown again after a sync at or above `offset`. */
  oweFrom(offset: bigint): void {
    if (offset + 1n > this.#owedEnd) this.#owedEnd = offset + 1n
  }

  /**
   * A batch up to `end` was written.
   * @returns whether its promise holds with that: no batch before it still waits, and no duty is open.
   */
  written(end: bigint): boolean {
    const isNextSeen = this.visibleEnd === this.writtenEnd
    if (end > this.writtenEnd) this.writtenEnd = end
    return isNextSeen && this.#showWritten(end)
  }

  /** After a sync a duty may have ended: asks again for a written batch that waits. The caller asks in order. */
  writtenBefore(end: bigint): boolean {
    return this.#showWritten(end)
  }

  /** A batch up to `end` is on stable storage. */
  synced(end: bigint): void {
    if (end > this.durableEnd) this.durableEnd = end
    if (this.durableEnd > this.visibleEnd) this.visibleEnd = this.durableEnd
  }

  /** Everything was dropped: what is below `offset` counts as synced and seen. */
  dropTo(offset: bigint): void {
    if (offset > this.writtenEnd) this.writtenEnd = offset
    if (offset > this.nextOffset) this.nextOffset = offset
    this.synced(offset)
  }

  #showWritten(end: bigint): boolean {
    if (!this.isShownWhenWritten(end)) return false
    if (end > this.visibleEnd) this.visibleEnd = end
    return true
  }
}
