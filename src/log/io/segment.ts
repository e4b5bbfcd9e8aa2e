/** One segment file of a partition as the log knows it in memory; its bytes are read through `segment-files.ts`. */
import { formatSegmentName } from '../core/segment-format.ts'
import type { SegmentIndex } from '../core/segment-index.ts'
import type { FileCipher } from './store-keys.ts'

/** What the header of its file says. */
export interface SegmentHeading {
  /** Seeds the CRCs of its blocks. */
  readonly seed: number
  /** Opens the bodies of its blocks; undefined for a plain file. */
  readonly cipher?: FileCipher | undefined
}

/** How its header is read when it is wanted first. @throws EDGE_IO, EDGE_STORE_NEWER. */
export type ReadHeading = (segment: Segment) => SegmentHeading

interface Place {
  readonly directory: string
  readonly baseOffset: bigint
  readonly runNumber: number
}

export type SegmentFields = Place & SegmentHeading

export class Segment {
  readonly directory: string
  readonly baseOffset: bigint
  readonly runNumber: number
  /** Exclusive. Of all but the last one: where the next begins. */
  endOffset: bigint
  /** Bytes that count; behind them may lie what a crash left. */
  sizeBytes: number
  messageCount: number
  /** Takes no more blocks. */
  isClosed: boolean
  /** Holds one large batch that a journal batch refers to; a segment as others once that is repacked. */
  isExternal = false
  /** Where its blocks lie, while that is kept in memory: `SegmentFiles.index` reads it. */
  index: SegmentIndex | undefined
  /** Known once its index was. */
  blockCount: number | undefined
  /** Append time of its first batch, known once its index was; undefined also without a block. */
  firstAppendUs: bigint | undefined
  /** Append time of its last batch, when known. */
  lastAppendUs: bigint | undefined
  /** Whether that time came from a clock to be trusted; known with it. */
  isClockTrusted = true
  /** Position of the last block; 0 without one. */
  lastBlockPosition = 0
  /** Machine start of the last block's batches. */
  lastBoot = 0
  #heading: SegmentHeading | ReadHeading

  /** @param heading of a file that was not opened yet; else `name` says it. */
  constructor(name: SegmentFields)
  constructor(name: Place, heading: ReadHeading)
  constructor(name: Place & Partial<SegmentHeading>, heading?: ReadHeading) {
    this.directory = name.directory
    this.baseOffset = name.baseOffset
    this.runNumber = name.runNumber
    this.#heading = heading ?? { seed: name.seed ?? 0, cipher: name.cipher }
    this.endOffset = name.baseOffset
    this.sizeBytes = 0
    this.messageCount = 0
    this.isClosed = false
  }

  get seed(): number {
    return this.#known().seed
  }

  get cipher(): FileCipher | undefined {
    return this.#known().cipher
  }

  /** The same bytes, under the name of a segment as others, in another folder. */
  movedTo(directory: string): Segment {
    const { seed, cipher } = this
    const moved = new Segment({ ...this, directory, seed, cipher })
    return Object.assign(moved, { ...this, directory, isExternal: false, index: undefined })
  }

  get path(): string {
    return `${this.directory}/${formatSegmentName(this)}`
  }

  #known(): SegmentHeading {
    if (typeof this.#heading === 'function') this.#heading = this.#heading(this)
    return this.#heading
  }
}
