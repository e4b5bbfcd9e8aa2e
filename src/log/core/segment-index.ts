/**
 * Where the blocks of one segment lie: 24 bytes a block, as they stand at the end of a closed one. An object for each block
 * would take five times as much, and a store of some gigabytes has hundreds of thousands.
 */
import { areaOf, type ByteArea, createArea, getSafeU64 } from './byte-area.ts'

/** base offset u64 | append time u64 µs | position u32 | record count u32, all little-endian. */
export const INDEX_ENTRY_SIZE = 24
const TIME_AT = 8
/** Where the position stands in an entry. */
export const INDEX_POSITION_AT = 16
const COUNT_AT = 20
const FIRST_CAPACITY = 8

/** One block. */
export interface IndexEntry {
  readonly baseOffset: bigint
  readonly firstTimeUs: bigint
  readonly position: number
  readonly recordCount: number
}

export class SegmentIndex {
  #area: ByteArea
  #count: number

  /** @param entriesBytes entries as they are stored: they are used as they lie there. */
  constructor(entriesBytes: Uint8Array = new Uint8Array(0)) {
    this.#area = areaOf(entriesBytes)
    this.#count = Math.floor(entriesBytes.length / INDEX_ENTRY_SIZE)
  }

  get count(): number {
    return this.#count
  }

  /** What it takes of memory. */
  get capacityBytes(): number {
    return this.#area.bytes.length
  }

  /** The entries as they are stored. */
  get bytesView(): Uint8Array {
    return this.#area.bytes.subarray(0, this.#count * INDEX_ENTRY_SIZE)
  }

  /** Records of all blocks. */
  get recordCount(): number {
    let sum = 0
    for (let entry = 0; entry < this.#count; entry++) {
      sum += this.#area.view.getUint32(entry * INDEX_ENTRY_SIZE + COUNT_AT, true)
    }
    return sum
  }

  push({ baseOffset, firstTimeUs, position, recordCount }: IndexEntry): void {
    const at = this.#count * INDEX_ENTRY_SIZE
    if (at === this.#area.bytes.length) this.#makeRoom()
    const { view } = this.#area
    view.setBigUint64(at, baseOffset, true)
    view.setBigUint64(at + TIME_AT, firstTimeUs, true)
    view.setUint32(at + INDEX_POSITION_AT, position, true)
    view.setUint32(at + COUNT_AT, recordCount, true)
    this.#count++
  }

  /** @returns undefined where there is none of that number. */
  entry(number: number): IndexEntry | undefined {
    if (number < 0 || number >= this.#count) return undefined
    const { view } = this.#area
    const at = number * INDEX_ENTRY_SIZE
    return {
      baseOffset: view.getBigUint64(at, true),
      firstTimeUs: view.getBigUint64(at + TIME_AT, true),
      position: view.getUint32(at + INDEX_POSITION_AT, true),
      recordCount: view.getUint32(at + COUNT_AT, true),
    }
  }

  /** How many blocks begin at or below `offset`. */
  countUpTo(offset: bigint): number {
    return this.#countBelow(0, Number(offset) + 1)
  }

  /** The blocks that begin below `offset`, as they lie here. */
  below(offset: bigint): SegmentIndex {
    const count = this.countUpTo(offset - 1n)
    return count === this.#count ? this : new SegmentIndex(this.#area.bytes.subarray(0, count * INDEX_ENTRY_SIZE))
  }

  /** How many blocks begin before `timeUs`: times never fall within a partition. */
  countBefore(timeUs: bigint): number {
    return this.#countBelow(TIME_AT, Number(timeUs))
  }

  /** Offsets and times lie below 2^53: as bigints each step of the search would make garbage. */
  #countBelow(fieldAt: number, limit: number): number {
    let low = 0
    let high = this.#count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (getSafeU64(this.#area.view, middle * INDEX_ENTRY_SIZE + fieldAt) < limit) low = middle + 1
      else high = middle
    }
    return low
  }

  #makeRoom(): void {
    const { bytes } = this.#area
    const grown = createArea(Math.max(2 * bytes.length, FIRST_CAPACITY * INDEX_ENTRY_SIZE))
    grown.bytes.set(bytes)
    this.#area = grown
  }
}
