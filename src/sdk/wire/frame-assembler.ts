/**
 * Cuts a byte stream into frames, whatever the chunks. Decides when a frame is whole; knows no command.
 *
 * A frame's size is checked before anything is allocated for it, and what is held grows with what has come, never with
 * what was announced: at most twice the bytes received. A frame that lies whole within one chunk is not copied; the bytes
 * of all others are copied once, plus once for each doubling.
 */
import { discard } from '../../discard.ts'

/** How one dialect tells a frame's size. */
export interface FrameShape {
  /** Bytes that tell it. */
  readonly headBytes: number
  /**
   * @returns bytes of the whole frame, head included, at least `headBytes`.
   * @throws {EdgeError} when no frame begins like that: framing is lost and the connection has to go.
   */
  sizeOf(bytes: Uint8Array, at: number): number
}

const FIRST_HELD_BYTES = 4096
/** What is kept of the buffer when it is empty. */
const KEPT_BYTES = 64 * 1024
const NO_BYTES = new Uint8Array(0)

export class FrameAssembler {
  readonly #shape: FrameShape
  #held: Uint8Array = NO_BYTES
  #heldStart = 0
  #heldEnd = 0
  #chunk: Uint8Array = NO_BYTES
  #chunkAt = 0
  /** Bytes still to come of a frame that nobody wants. */
  #dropBytes = 0

  constructor(shape: FrameShape) {
    this.#shape = shape
  }

  /** Bytes that have come and were not handed out as frames. */
  get pendingBytes(): number {
    return this.#heldEnd - this.#heldStart + this.#chunk.length - this.#chunkAt
  }

  /** Gives the next chunk. It is read in place, so call `next` until there is no frame, or `keep`, before it changes. */
  push(chunkView: Uint8Array): void {
    this.keep()
    this.#chunk = chunkView
    this.#chunkAt = Math.min(this.#dropBytes, chunkView.length)
    this.#dropBytes -= this.#chunkAt
  }

  /** Whether a frame that nobody wants is still coming. */
  get isDropping(): boolean {
    return this.#dropBytes > 0
  }

  /** @returns what has come and was not handed out; valid until the next call. */
  heldView(): Uint8Array {
    this.keep()
    return this.#held.subarray(this.#heldStart, this.#heldEnd)
  }

  /**
   * Drops the next frame: what has come of it now, the rest as it comes.
   *
   * @param sizeBytes what the shape said of it.
   * @returns what has come of it, valid until the next call.
   */
  drop(sizeBytes: number): Uint8Array {
    this.keep()
    const count = Math.min(sizeBytes, this.#heldEnd - this.#heldStart)
    this.#heldStart += count
    this.#dropBytes = sizeBytes - count
    return this.#held.subarray(this.#heldStart - count, this.#heldStart)
  }

  /**
   * @returns the next whole frame, or undefined when more bytes are needed. It aliases the chunk or the assembler's
   *   buffer: valid until the next call.
   * @throws what the shape throws.
   */
  next(): Uint8Array | undefined {
    if (this.#heldEnd > this.#heldStart) return this.#nextOfHeld()
    this.#releaseHeld()
    const left = this.#chunk.length - this.#chunkAt
    if (left >= this.#shape.headBytes) {
      const size = this.#shape.sizeOf(this.#chunk, this.#chunkAt)
      if (size <= left) {
        this.#chunkAt += size
        return size === this.#chunk.length ? this.#chunk : this.#chunk.subarray(this.#chunkAt - size, this.#chunkAt)
      }
    }
    this.keep()
    return undefined
  }

  /** Copies what is left of the chunk, so that its buffer may be used again: when frames are to wait. */
  keep(): void {
    this.#hold(this.#chunk.length - this.#chunkAt)
    this.#chunk = NO_BYTES
    this.#chunkAt = 0
  }

  /** The frame that the held bytes begin, completed from the chunk. */
  #nextOfHeld(): Uint8Array | undefined {
    if (!this.#holdAtLeast(this.#shape.headBytes)) return undefined
    const size = this.#shape.sizeOf(this.#held, this.#heldStart)
    if (!this.#holdAtLeast(size)) return undefined
    this.#heldStart += size
    return this.#held.subarray(this.#heldStart - size, this.#heldStart)
  }

  #holdAtLeast(wanted: number): boolean {
    const missing = wanted - (this.#heldEnd - this.#heldStart)
    if (missing > 0) this.#hold(Math.min(missing, this.#chunk.length - this.#chunkAt))
    return this.#heldEnd - this.#heldStart >= wanted
  }

  /** Moves `count` bytes from the chunk to the held ones. */
  #hold(count: number): void {
    if (count === 0) return
    this.#makeRoom(count)
    this.#held.set(this.#chunk.subarray(this.#chunkAt, this.#chunkAt + count), this.#heldEnd)
    this.#heldEnd += count
    this.#chunkAt += count
  }

  #makeRoom(count: number): void {
    const length = this.#heldEnd - this.#heldStart
    if (this.#heldEnd + count <= this.#held.length) return
    // Moving down pays only where it frees at least half: else one byte a chunk would move everything each time.
    if (length + count <= this.#held.length / 2) {
      this.#held.copyWithin(0, this.#heldStart, this.#heldEnd)
    } else {
      const larger = new Uint8Array(
        Math.max(FIRST_HELD_BYTES, length + count, Math.min(length * 2, this.#held.length * 2)),
      )
      larger.set(this.#held.subarray(this.#heldStart, this.#heldEnd))
      discard(this.#held)
      this.#held = larger
    }
    this.#heldStart = 0
    this.#heldEnd = length
  }

  #releaseHeld(): void {
    this.#heldStart = 0
    this.#heldEnd = 0
    if (this.#held.length <= KEPT_BYTES) return
    discard(this.#held)
    this.#held = NO_BYTES
  }
}
