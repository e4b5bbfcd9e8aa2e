/**
 * The receiving side of one ordered byte sequence, a stream's or the CRYPTO data of one level: puts pieces in order. Pure.
 *
 * It relies on the caller to hold the offsets to flow control: together with that, and with a budget for pieces beyond
 * gaps, what a peer can make it hold is bounded. Pieces that wait neither overlap nor lie below what is in order.
 */
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import { ReadyQueue } from './ready-queue.ts'

/** Pieces beyond gaps that a peer may make us hold, over all buffers that share the budget. */
export class GapBudget {
  readonly #maxCount: number
  readonly #errorCode: number
  #count = 0

  /** @param errorCode to close with when a peer needs more. */
  constructor(maxCount: number, errorCode: number) {
    this.#maxCount = maxCount
    this.#errorCode = errorCode
  }

  get count(): number {
    return this.#count
  }

  take(): void {
    if (this.#count >= this.#maxCount) throw new QuicError(this.#errorCode, `more than ${this.#maxCount} gaps`)
    this.#count++
  }

  give(count: number): void {
    this.#count -= count
  }
}

interface EarlyPiece {
  readonly offset: number
  readonly bytes: Uint8Array
}

export class ReceiveBuffer {
  readonly #ready = new ReadyQueue()
  readonly #budget: GapBudget
  /** Beyond a gap, ascending, without overlaps. */
  #early: EarlyPiece[] = []
  /** Behind the last byte before the first gap. */
  #inOrderOffset = 0
  #highestOffset = 0
  #finalSize: number | undefined

  constructor(budget: GapBudget) {
    this.#budget = budget
  }

  /** Behind the last byte received, whatever is missing before it. */
  get highestOffset(): number {
    return this.#highestOffset
  }

  /** Behind the last byte that was read. */
  get readOffset(): number {
    return this.#inOrderOffset - this.#ready.size
  }

  /** Known since the end, or a reset, arrived. */
  get finalSize(): number | undefined {
    return this.#finalSize
  }

  /** Everything up to the end is there, though perhaps not read. */
  get isComplete(): boolean {
    return this.#inOrderOffset === this.#finalSize
  }

  /** @throws QuicError FINAL_SIZE_ERROR when `endOffset` contradicts what is known. */
  checkFinalSize(endOffset: number, isEnd: boolean): void {
    const isPastEnd = this.#finalSize !== undefined && endOffset > this.#finalSize
    const isOtherEnd = isEnd && (endOffset < this.#highestOffset || (this.#finalSize ?? endOffset) !== endOffset)
    if (!isPastEnd && !isOtherEnd) return
    throw new QuicError(
      TRANSPORT_ERROR.finalSizeError,
      `end at ${endOffset}, known are ${this.#finalSize ?? this.#highestOffset}`,
    )
  }

  /**
   * @param bytesView of a packet that nobody else changes.
   * @returns whether there is something new to read, or the end.
   */
  receive(offset: number, bytesView: Uint8Array, isEnd: boolean): boolean {
    const end = offset + bytesView.length
    this.checkFinalSize(end, isEnd)
    const wasComplete = this.isComplete
    const before = this.#inOrderOffset
    if (isEnd) this.#finalSize = end
    this.#highestOffset = Math.max(this.#highestOffset, end)
    if (end > this.#inOrderOffset) {
      if (offset > this.#inOrderOffset) this.#keepEarly(offset, bytesView)
      else this.#advance(bytesView.subarray(this.#inOrderOffset - offset))
    }
    return this.#inOrderOffset > before || this.isComplete !== wasComplete
  }

  read(): Uint8Array | null {
    return this.#ready.take()
  }

  /** Drops what is there, and takes everything up to `endOffset` as received and read: nobody wants it. */
  skip(endOffset: number, isEnd: boolean): void {
    if (isEnd) this.#finalSize = endOffset
    this.#ready.clear()
    this.#budget.give(this.#early.length)
    this.#early = []
    this.#highestOffset = Math.max(this.#highestOffset, endOffset)
    this.#inOrderOffset = this.#highestOffset
  }

  #advance(bytesView: Uint8Array): void {
    this.#append(bytesView)
    let used = 0
    for (const piece of this.#early) {
      if (piece.offset > this.#inOrderOffset) break
      used++
      const known = this.#inOrderOffset - piece.offset
      if (known < piece.bytes.length) this.#append(piece.bytes.subarray(known))
    }
    if (used === 0) return
    this.#early.splice(0, used)
    this.#budget.give(used)
  }

  #append(bytesView: Uint8Array): void {
    this.#inOrderOffset += bytesView.length
    this.#ready.append(bytesView)
  }

  /** Puts in what is new of a piece: up to the next one, and behind it again. */
  #keepEarly(offset: number, bytesView: Uint8Array): void {
    const end = offset + bytesView.length
    let index = this.#indexBehind(offset)
    let from = Math.max(offset, endOf(this.#early[index - 1]))
    while (from < end) {
      const next = this.#early[index]
      const to = Math.min(end, next?.offset ?? end)
      if (from < to) {
        this.#budget.take()
        const bytes = ownedIfSmall(bytesView.subarray(from - offset, to - offset))
        this.#early.splice(index, 0, { offset: from, bytes })
        index++
      }
      from = Math.max(to, endOf(next))
      index++
    }
  }

  /** Index of the first waiting piece that starts behind `offset`. A peer chooses where: the end of thousands is no place to search from. */
  #indexBehind(offset: number): number {
    let low = 0
    let high = this.#early.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#early[middle]?.offset ?? 0) > offset) high = middle
      else low = middle + 1
    }
    return low
  }
}

/** A view that uses less than half of the memory it lies in becomes a copy: it may wait for long. */
function ownedIfSmall(bytesView: Uint8Array): Uint8Array {
  return bytesView.length * 2 < bytesView.buffer.byteLength ? new Uint8Array(bytesView) : bytesView
}

function endOf(piece: EarlyPiece | undefined): number {
  return piece === undefined ? 0 : piece.offset + piece.bytes.length
}
