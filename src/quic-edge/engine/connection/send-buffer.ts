/**
 * The sending side of one ordered byte sequence, a stream's or the CRYPTO data of one level: keeps what is not
 * acknowledged and says which piece goes next, lost ones first. Pure.
 *
 * Invariant: acknowledgedOffset <= nextOffset <= endOffset, and everything lost lies between the first two. It never looks
 * at flow control: the caller says how far it may go.
 */
import { RangeSet } from '../wire/range-set.ts'
import type { Writer } from '../wire/writer.ts'
import { ChunkQueue } from './chunk-queue.ts'

/** A part of the sequence as it went into one packet. */
export interface Piece {
  readonly offset: number
  readonly size: number
  /** The sequence ends with it. */
  readonly isEnd: boolean
}

/** `unsent` again when the packet with the end was lost. */
type EndState = 'open' | 'unsent' | 'sent' | 'acknowledged'

export class SendBuffer {
  readonly #chunks = new ChunkQueue()
  /** Acknowledged beyond `acknowledgedOffset`, and lost; made when there is any: most streams need neither. */
  #acknowledged: RangeSet | undefined
  #lost: RangeSet | undefined
  #nextOffset = 0
  #acknowledgedOffset = 0
  #end: EndState = 'open'

  get endOffset(): number {
    return this.#chunks.endOffset
  }

  /** What was never sent starts here. */
  get nextOffset(): number {
    return this.#nextOffset
  }

  /** Bytes that are kept because nobody acknowledged them. */
  get bufferedBytes(): number {
    return this.endOffset - this.#acknowledgedOffset
  }

  get isEnded(): boolean {
    return this.#end !== 'open'
  }

  /** Everything including the end arrived. */
  get isDelivered(): boolean {
    return this.#end === 'acknowledged' && this.bufferedBytes === 0
  }

  /** @param bytes the buffer's from now on. */
  append(bytes: Uint8Array): void {
    this.#chunks.append(bytes)
  }

  end(): void {
    if (this.#end === 'open') this.#end = 'unsent'
  }

  /** @returns whether `take` would find something that needs no offset of `maxOffset` or above. */
  hasPiece(maxOffset: number): boolean {
    if (this.#hasLost || this.#nextOffset < Math.min(this.endOffset, maxOffset)) return true
    return this.#end === 'unsent' && this.#nextOffset === this.endOffset
  }

  /**
   * Takes the next piece: it counts as sent.
   *
   * @param maxSize bytes that fit. @param maxOffset where new bytes must stop; lost ones were allowed before.
   */
  take(maxSize: number, maxOffset: number): Piece | null {
    return this.#takeLost(maxSize) ?? this.#takeNew(maxSize, maxOffset)
  }

  /** Writes the bytes of a piece. */
  write(piece: Piece, writer: Writer): void {
    if (piece.size > 0) this.#chunks.write(piece.offset, piece.size, writer)
  }

  acknowledge(piece: Piece): void {
    if (piece.isEnd) this.#end = 'acknowledged'
    if (piece.size === 0) return
    const end = piece.offset + piece.size
    if (end <= this.#acknowledgedOffset) return
    if (this.#acknowledged === undefined && piece.offset <= this.#acknowledgedOffset) {
      this.#acknowledgedOffset = end
    } else {
      this.#acknowledged ??= new RangeSet()
      const acknowledged = this.#acknowledged
      acknowledged.add(piece.offset, end - 1)
      if (acknowledged.firstOf(0) > this.#acknowledgedOffset) return
      // The set joins what touches: its first range is all there is up to the next gap.
      this.#acknowledgedOffset = acknowledged.lastOf(0) + 1
      acknowledged.dropBelow(this.#acknowledgedOffset)
    }
    this.#lost?.dropBelow(this.#acknowledgedOffset)
    this.#chunks.releaseBelow(this.#acknowledgedOffset)
  }

  /** The piece is to be sent again, unless it is acknowledged until then. */
  lose(piece: Piece): void {
    if (piece.isEnd && this.#end === 'sent') this.#end = 'unsent'
    const first = Math.max(piece.offset, this.#acknowledgedOffset)
    const last = piece.offset + piece.size - 1
    if (first > last || this.#acknowledged?.covers(first, last)) return
    this.#lost ??= new RangeSet()
    this.#lost.add(first, last)
  }

  get #hasLost(): boolean {
    return this.#lost !== undefined && !this.#lost.isEmpty
  }

  #takeLost(maxSize: number): Piece | null {
    const lost = this.#lost
    if (lost === undefined) return null
    this.#forgetFound(lost)
    if (lost.isEmpty || maxSize <= 0) return null
    const offset = lost.firstOf(0)
    const end = Math.min(lost.lastOf(0) + 1, this.#acknowledgedAfter(offset), offset + maxSize)
    lost.dropBelow(end)
    return this.#piece(offset, end - offset)
  }

  /** Takes off what seemed lost first and was acknowledged since. */
  #forgetFound(lost: RangeSet): void {
    const acknowledged = this.#acknowledged
    if (acknowledged === undefined) return
    for (let index = 0; index < acknowledged.count && !lost.isEmpty; index++) {
      const offset = lost.firstOf(0)
      const last = acknowledged.lastOf(index)
      if (last < offset) continue
      if (acknowledged.firstOf(index) > offset) return
      lost.dropBelow(last + 1)
    }
  }

  /** Where the next acknowledged bytes after `offset` begin. */
  #acknowledgedAfter(offset: number): number {
    const acknowledged = this.#acknowledged
    for (let index = 0; acknowledged !== undefined && index < acknowledged.count; index++) {
      if (acknowledged.firstOf(index) > offset) return acknowledged.firstOf(index)
    }
    return Number.POSITIVE_INFINITY
  }

  #takeNew(maxSize: number, maxOffset: number): Piece | null {
    const offset = this.#nextOffset
    const size = Math.max(0, Math.min(this.endOffset, maxOffset, offset + maxSize) - offset)
    const isEnd = this.#end === 'unsent' && offset + size === this.endOffset
    if (size === 0 && !isEnd) return null
    this.#nextOffset += size
    return this.#piece(offset, size)
  }

  #piece(offset: number, size: number): Piece {
    const isEnd = this.#end === 'unsent' && offset + size === this.endOffset
    if (isEnd) this.#end = 'sent'
    return { offset, size, isEnd }
  }
}
