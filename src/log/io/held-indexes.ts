/**
 * Which segments keep their index in memory: those used last, up to so many bytes in all. The others read it again when it
 * is wanted. Without that bound memory would grow with what is stored. Segments that still grow give theirs up last: it does
 * not stand in their files yet, and is put together from the header of each block.
 */
import type { Segment } from './segment.ts'

/** What an index takes besides its entries, about: their buffer and its views, and the place here. */
const INDEX_OVERHEAD_BYTES = 512

export class HeldIndexes {
  readonly #maxBytes: number
  /** In order of use, the oldest first. */
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
    this.#shrink(segment, ({ isClosed }) => isClosed)
    this.#shrink(segment, () => true)
  }

  /** The segment was removed. */
  forget(segment: Segment): void {
    this.#bytes -= this.#sizes.get(segment) ?? 0
    this.#sizes.delete(segment)
    if (segment === this.#newest) this.#newest = undefined
  }

  /** The oldest go first. */
  #shrink(used: Segment, mayGo: (segment: Segment) => boolean): void {
    if (this.#bytes <= this.#maxBytes) return
    for (const [oldest, size] of this.#sizes) {
      if (this.#bytes <= this.#maxBytes || oldest === used) return
      if (!mayGo(oldest)) continue
      this.#sizes.delete(oldest)
      this.#bytes -= size
      oldest.index = undefined
    }
  }
}
