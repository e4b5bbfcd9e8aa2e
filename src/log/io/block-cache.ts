/**
 * Decoded blocks, for readers that go on in small steps. They lie one behind the other in memory that is used round and
 * round, so a new one takes the place of the oldest: nothing is allocated, and where the memory is the kernels' own,
 * records are read from it without a copy. A view is good until the next `add`.
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
}

const ALIGNMENT = 8
/** A larger part of the memory would leave nothing of the other blocks. */
const LARGEST_PART = 0.5

export class BlockCache {
  readonly #bytes: Uint8Array
  /** The oldest first. Few enough to look through from behind. */
  #blocks: CachedBlock[] = []
  #next = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** What the blocks take that are there. */
  get sizeBytes(): number {
    return this.#blocks.reduce((sum, { rawView }) => sum + rawView.length, 0)
  }

  find(segment: Segment, position: number): Uint8Array | undefined {
    return this.#blocks.findLast((block) => block.position === position && block.segment === segment)?.rawView
  }

  /** Copies the block in. @returns where it lies, or undefined for one that is too large to be kept. */
  add(segment: Segment, position: number, raw: Uint8Array): Uint8Array | undefined {
    if (raw.length > this.#bytes.length * LARGEST_PART) return undefined
    const at = this.#next + raw.length <= this.#bytes.length ? this.#next : 0
    const end = at + raw.length
    this.#blocks = this.#blocks.filter((block) => block.end <= at || block.at >= end)
    const rawView = this.#bytes.subarray(at, end)
    rawView.set(raw)
    this.#blocks.push({ segment, position, at, end, rawView })
    this.#next = alignUp(end, ALIGNMENT)
    return rawView
  }

  /** The file is gone or renamed. */
  forget(path: string): void {
    this.#blocks = this.#blocks.filter(({ segment }) => segment.path !== path)
  }

  clear(): void {
    this.#blocks = []
  }
}
