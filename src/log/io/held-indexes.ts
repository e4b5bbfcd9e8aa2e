/**
 * Which segments keep their index in memory: those used last, up to so many bytes in all. The others read it again when it
 * is wanted. Without that bound memory would grow with what is stored.
 */
import type { Segment } from './segment.ts'

/** What an index takes besides its entries, about. */
const INDEX_OVERHEAD_BYTES = 256

export class HeldIndexes {
  readonly #maxBytes: number
  /** In order of use, the oldest first. A segment that was removed is among them until its turn comes. */
  readonly #sizes = new Map<Segment, number>()
  #newest: Segment | undefined
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get sizeBytes(): number {
    return this.#bytes
  }

  /** The segment's index is used now; the one used last always stays. */
  use(segment: Segment): void {
    const size = INDEX_OVERHEAD_BYTES + (segment.index?.capacityBytes ?? 0)
    const before = this.#sizes.get(segment) ?? 0
    if (segment === this.#newest && size === before) return
    this.#sizes.delete(segment)
    this.#sizes.set(segment, size)
    this.#newest = segment
    this.#bytes += size - before
    for (const [oldest, oldestSize] of this.#sizes) {
      if (this.#bytes <= this.#maxBytes || oldest === segment) break
      this.#sizes.delete(oldest)
      this.#bytes -= oldestSize
      oldest.index = undefined
    }
  }
}
