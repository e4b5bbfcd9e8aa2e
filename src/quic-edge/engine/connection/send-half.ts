/**
 * Our direction of a stream (RFC 9000 section 3.1): buffered bytes, the peer's limit, end and reset. Pure.
 */
import type { Writer } from '../wire/writer.ts'
import { type Piece, SendBuffer } from './send-buffer.ts'

/** A reset as it goes into RESET_STREAM. */
export interface StreamReset {
  readonly code: number
  /** Bytes that were sent: the peer accounts for them. */
  readonly finalSize: number
}

export class SendHalf {
  readonly #highWaterBytes: number
  #buffer = new SendBuffer()
  #maxOffset = 0
  #isDrainAwaited = false
  #reset: StreamReset | undefined
  #isResetUnsent = false
  #isResetAcknowledged = false

  constructor(highWaterBytes: number) {
    this.#highWaterBytes = highWaterBytes
  }

  get bufferedBytes(): number {
    return this.#buffer.bufferedBytes
  }

  get nextOffset(): number {
    return this.#buffer.nextOffset
  }

  /** Nothing is accepted any more. */
  get isClosed(): boolean {
    return this.#reset !== undefined || this.#buffer.isEnded
  }

  /** The peer has everything, or knows that it will not get it. */
  get isDone(): boolean {
    return this.#reset === undefined ? this.#buffer.isDelivered : this.#isResetAcknowledged
  }

  /** @returns whether more may be written before a drain. */
  write(bytes: Uint8Array): boolean {
    if (this.isClosed) return false
    this.#buffer.append(bytes)
    this.#isDrainAwaited ||= this.#buffer.bufferedBytes >= this.#highWaterBytes
    return !this.#isDrainAwaited
  }

  end(): void {
    if (!this.isClosed) this.#buffer.end()
  }

  /** @returns whether there was still something to give up. */
  reset(code: number): boolean {
    if (this.#reset !== undefined || this.#buffer.isDelivered) return false
    this.#reset = { code, finalSize: this.#buffer.nextOffset }
    this.#isResetUnsent = true
    this.#isDrainAwaited = false
    this.#buffer = new SendBuffer()
    return true
  }

  /** @returns the reset to send now, once, or undefined. */
  takeReset(): StreamReset | undefined {
    if (!this.#isResetUnsent) return undefined
    this.#isResetUnsent = false
    return this.#reset
  }

  resetLost(): void {
    this.#isResetUnsent = !this.#isResetAcknowledged
  }

  resetAcknowledged(): void {
    this.#isResetAcknowledged = true
    this.#isResetUnsent = false
  }

  /** Limits only grow. @returns whether this one did. */
  raiseLimit(maxOffset: number): boolean {
    if (maxOffset <= this.#maxOffset) return false
    this.#maxOffset = maxOffset
    return true
  }

  /** @param creditBytes that the connection has left for new bytes. */
  hasPiece(creditBytes: number): boolean {
    return this.#reset === undefined && this.#buffer.hasPiece(this.#limit(creditBytes))
  }

  /** @returns the next piece, at most `maxSize` bytes of it. */
  take(maxSize: number, creditBytes: number): Piece | null {
    return this.#reset === undefined ? this.#buffer.take(maxSize, this.#limit(creditBytes)) : null
  }

  writeBytes(piece: Piece, writer: Writer): void {
    this.#buffer.write(piece, writer)
  }

  /** @returns whether the writer that waits for it may go on. */
  acknowledge(piece: Piece): boolean {
    if (this.#reset !== undefined) return false
    this.#buffer.acknowledge(piece)
    if (!this.#isDrainAwaited || this.#buffer.bufferedBytes * 2 >= this.#highWaterBytes) return false
    this.#isDrainAwaited = false
    return true
  }

  lose(piece: Piece): void {
    if (this.#reset === undefined) this.#buffer.lose(piece)
  }

  #limit(creditBytes: number): number {
    return Math.min(this.#maxOffset, this.#buffer.nextOffset + creditBytes)
  }
}
