/**
 * The bytes of a sequence that may still have to be sent (again), as the chunks in which they were written: nothing is
 * copied until it goes into a packet. Pure.
 *
 * Offsets count from the start of the sequence. Copying mostly goes on where it stopped, so that place is remembered.
 */
import { assert } from '../../../assert.ts'
import type { Writer } from '../wire/writer.ts'

/** Released places at the front that are tolerated before the list is moved up. */
const RELEASED_MAX_COUNT = 64
/** Stands where a released chunk was. */
const RELEASED = new Uint8Array(0)

export class ChunkQueue {
  #chunks: Uint8Array[] = []
  /** The first chunk that is kept, and the offset at which it starts. */
  #firstIndex = 0
  #firstOffset = 0
  #endOffset = 0
  /** The chunk at which the last copy ended, and the offset at which it starts. */
  #cursorIndex = 0
  #cursorOffset = 0

  /** Offset behind the last byte. */
  get endOffset(): number {
    return this.#endOffset
  }

  /** Keeps `bytes` themselves; they must not change any more. */
  append(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.#chunks.push(bytes)
    this.#endOffset += bytes.length
  }

  /** Writes `size` bytes from `offset` on; all of them must be kept. */
  write(offset: number, size: number, writer: Writer): void {
    const isBehindCursor = offset < this.#cursorOffset
    let index = isBehindCursor ? this.#firstIndex : this.#cursorIndex
    let chunkOffset = isBehindCursor ? this.#firstOffset : this.#cursorOffset
    const end = offset + size
    let at = offset
    while (at < end) {
      const chunk = this.#chunks[index]
      assert(chunk !== undefined, `bytes ${at} to ${end} are kept`)
      const start = at - chunkOffset
      const count = Math.min(end - at, chunk.length - start)
      if (count > 0) {
        writer.bytes(count === chunk.length ? chunk : chunk.subarray(start, start + count))
        at += count
      }
      if (at === end) break
      chunkOffset += chunk.length
      index++
    }
    this.#cursorIndex = index
    this.#cursorOffset = chunkOffset
  }

  /** Forgets the chunks that lie below `offset` as a whole. */
  releaseBelow(offset: number): void {
    let chunk = this.#chunks[this.#firstIndex]
    while (chunk !== undefined && this.#firstOffset + chunk.length <= offset) {
      this.#chunks[this.#firstIndex++] = RELEASED
      this.#firstOffset += chunk.length
      chunk = this.#chunks[this.#firstIndex]
    }
    if (this.#firstIndex === this.#chunks.length || this.#firstIndex > RELEASED_MAX_COUNT) this.#moveUp()
    if (this.#cursorOffset < this.#firstOffset) {
      this.#cursorIndex = this.#firstIndex
      this.#cursorOffset = this.#firstOffset
    }
  }

  #moveUp(): void {
    // Half of the list at least, so that moving costs no more than writing did.
    if (this.#firstIndex * 2 < this.#chunks.length) return
    this.#chunks.splice(0, this.#firstIndex)
    this.#cursorIndex = Math.max(0, this.#cursorIndex - this.#firstIndex)
    this.#firstIndex = 0
  }
}
