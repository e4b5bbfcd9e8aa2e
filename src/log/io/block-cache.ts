/**
 * Decoded blocks, for readers that go on in small steps: the least recently used go first. Bounded in number and in bytes,
 * so that one large block does not stay behind for the size of hundreds.
 */
import { BLOCK_RAW_SIZE } from '../core/segment-format.ts'
import type { Segment } from './segment.ts'

interface CachedBlock {
  readonly segment: Segment
  readonly position: number
  readonly raw: Uint8Array
}

export class BlockCache {
  readonly #maxCount: number
  /** The least recently used first. Few enough to look through from behind. */
  #blocks: CachedBlock[] = []
  #sizeBytes = 0

  constructor(maxCount: number) {
    this.#maxCount = maxCount
  }

  /** What all blocks together may take. */
  get maxSizeBytes(): number {
    return this.#maxCount * BLOCK_RAW_SIZE
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  find(segment: Segment, position: number): Uint8Array | undefined {
    const at = this.#blocks.findLastIndex((block) => block.position === position && block.segment === segment)
    const found = this.#blocks[at]
    if (found === undefined) return undefined
    if (at < this.#blocks.length - 1) {
      this.#blocks.splice(at, 1)
      this.#blocks.push(found)
    }
    return found.raw
  }

  add(segment: Segment, position: number, raw: Uint8Array): void {
    if (raw.length > this.maxSizeBytes) return
    this.#blocks.push({ segment, position, raw })
    this.#sizeBytes += raw.length
    while (this.#blocks.length > this.#maxCount || this.#sizeBytes > this.maxSizeBytes) {
      this.#sizeBytes -= this.#blocks.shift()?.raw.length ?? 0
    }
  }

  /** The file is gone or renamed. */
  forget(path: string): void {
    this.#blocks = this.#blocks.filter(({ segment }) => segment.path !== path)
    this.#sizeBytes = this.#blocks.reduce((sum, { raw }) => sum + raw.length, 0)
  }

  clear(): void {
    this.#blocks = []
    this.#sizeBytes = 0
  }
}
