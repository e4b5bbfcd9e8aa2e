/**
 * Decoded blocks, for readers that go on in small steps. They lie one behind the other in memory that is used round and
 * round, so a new one takes the place of the oldest: nothing is allocated, and where the memory is the kernels' own,
 * records are read from it without a copy. A view is good until the next `claim`.
 */
import { alignUp } from '../core/byte-area.ts'
import type { Segment } from './segment.ts'

interface CachedBlock {
  readonly segment: Segment
  readonly position: number
  /** Where it lies. */
  readonly at: number
  readonly end: number
  readonly rawView: Uint8Array
  /** Decoded before anybody asked, and nobody has yet. */
  isAhead: boolean
}

const ALIGNMENT = 8
/** A larger part of the memory would leave nothing of the other blocks. */
const LARGEST_PART = 0.5

export class BlockCache {
  readonly #bytes: Uint8Array
  /** The oldest first. Few enough to look through from behind. */
  #blocks: CachedBlock[] = []
  #next = 0
  readonly #maxAhead: number
  #aheadCount: number

  /** @param maxAhead - blocks that are read ahead at once at most. */
  constructor(bytes: Uint8Array, maxAhead = 1) {
    this.#bytes = bytes
    this.#maxAhead = maxAhead
    this.#aheadCount = maxAhead
  }

  /**
   * How many blocks should be read ahead at once: where others take the place of those that nobody has read yet, the readers
   * are too many for that.
   */
  get aheadCount(): number {
    return this.#aheadCount
  }

  /** What the blocks take that are there. */
  get sizeBytes(): number {
    return this.#blocks.reduce((sum, { rawView }) => sum + rawView.length, 0)
  }

  has(segment: Segment, position: number): boolean {
    return this.#find(segment, position) !== undefined
  }

  find(segment: Segment, position: number): Uint8Array | undefined {
    const block = this.#find(segment, position)
    if (block?.isAhead === true) {
      block.isAhead = false
      this.#aheadCount = Math.min(this.#aheadCount + 1, this.#maxAhead)
    }
    return block?.rawView
  }

  /**
   * Takes place for a block by putting out those that lie there. Until it is added, nothing keeps the next one from there.
   *
   * @returns where to put its raw bytes, or undefined for one that is too large to be kept.
   */
  claim(rawSize: number): Uint8Array | undefined {
    if (rawSize > this.#bytes.length * LARGEST_PART) return undefined
    const at = this.#next + rawSize <= this.#bytes.length ? this.#next : 0
    const end = at + rawSize
    const isCovered = (block: CachedBlock): boolean => block.end > at && block.at < end
    if (this.#blocks.some((block) => block.isAhead && isCovered(block))) this.#aheadCount = 1
    this.#blocks = this.#blocks.filter((block) => !isCovered(block))
    return this.#bytes.subarray(at, end)
  }

  /** @param rawView - the place that was claimed last, now with the block in it. */
  add(segment: Segment, position: number, rawView: Uint8Array, isAhead = false): void {
    const at = rawView.byteOffset - this.#bytes.byteOffset
    const end = at + rawView.length
    this.#blocks.push({ segment, position, at, end, rawView, isAhead })
    this.#next = alignUp(end, ALIGNMENT)
  }

  /** The file is gone or renamed. */
  forget(path: string): void {
    this.#blocks = this.#blocks.filter(({ segment }) => segment.path !== path)
  }

  clear(): void {
    this.#blocks = []
  }

  #find(segment: Segment, position: number): CachedBlock | undefined {
    return this.#blocks.findLast((block) => block.position === position && block.segment === segment)
  }
}
