/**
 * Where the batches of one partition lie in the journal: 16 bytes a batch in typed arrays, bounded by the journal's size. A
 * partition without any has no arrays: thousands rest while a few are written.
 *
 * Entries come in order of their offsets and leave from the front, when the oldest journal file is recycled. Offsets are
 * kept as doubles (exact below 2^53): a search over bigints would make garbage at each step.
 */
import { assert } from '../../assert.ts'

const FIRST_CAPACITY = 8
const ENTRY_SIZE = 16
/** A place is file number and position in one u32: positions are multiples of 8 below 64 MiB, files below 512. */
const POSITION_BITS = 23
const POSITION_UNIT = 8
export const MAX_JOURNAL_FILE_NUMBER = 510
/** In the place of a file's number: the batch waits in memory to be written again, `position` is its place there. */
export const IN_MEMORY = 511

const NO_OFFSETS = new Float64Array(0)
const NONE = new Uint32Array(0)

export class JournalIndex {
  #offsets = NO_OFFSETS
  #places = NONE
  #sizes = NONE
  #start = 0
  #end = 0

  #bytes = 0

  /** Bytes of all batches. */
  get sizeBytes(): number {
    return this.#bytes
  }

  get count(): number {
    return this.#end - this.#start
  }

  push(baseOffset: bigint, fileNumber: number, position: number, size: number): void {
    assert(this.count === 0 || Number(baseOffset) > this.#offsetAt(this.count - 1), `offsets rise: ${baseOffset}`)
    if (this.#end === this.#offsets.length) this.#makeRoom()
    this.#offsets[this.#end] = Number(baseOffset)
    this.#places[this.#end] = placeOf(fileNumber, position)
    this.#sizes[this.#end] = size
    this.#bytes += size
    this.#end++
  }

  baseOffset(entry: number): bigint {
    return BigInt(this.#offsetAt(entry))
  }

  fileNumber(entry: number): number {
    return (this.#places[this.#start + entry] ?? 0) >>> POSITION_BITS
  }

  position(entry: number): number {
    return ((this.#places[this.#start + entry] ?? 0) & ((1 << POSITION_BITS) - 1)) * POSITION_UNIT
  }

  /** Bytes of the whole batch, header and padding included. */
  size(entry: number): number {
    return this.#sizes[this.#start + entry] ?? 0
  }

  /** @returns the last entry that begins at or below `offset`, or -1. */
  find(offset: bigint): number {
    const wanted = Number(offset)
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#offsetAt(middle) <= wanted) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  /** The batch was written again, elsewhere. */
  move(baseOffset: bigint, fileNumber: number, position: number): boolean {
    // Nearly always it is a new one, behind all others.
    if (this.count === 0 || this.#offsetAt(this.count - 1) < Number(baseOffset)) return false
    const entry = this.find(baseOffset)
    if (entry < 0 || this.#offsetAt(entry) !== Number(baseOffset)) return false
    this.#places[this.#start + entry] = placeOf(fileNumber, position)
    return true
  }

  dropFirst(count: number): void {
    const dropped = Math.min(count, this.count)
    for (let entry = 0; entry < dropped; entry++) this.#bytes -= this.size(entry)
    this.#start += dropped
    if (this.#start < this.#end) return
    this.#start = 0
    this.#end = 0
    this.#offsets = NO_OFFSETS
    this.#places = NONE
    this.#sizes = NONE
  }

  #offsetAt(entry: number): number {
    return this.#offsets[this.#start + entry] ?? 0
  }

  /** Moves to the front when half is free, else doubles. */
  #makeRoom(): void {
    const { length } = this.#offsets
    const isHalfFree = length > 0 && this.#start >= length / 2
    this.#resize(isHalfFree ? length : Math.max(length * 2, FIRST_CAPACITY))
  }

  /** The three lie in one buffer: of a few batches its head is most of what they take. */
  #resize(capacity: number): void {
    const buffer = new ArrayBuffer(capacity * ENTRY_SIZE)
    const offsets = new Float64Array(buffer, 0, capacity)
    const places = new Uint32Array(buffer, offsets.byteLength, capacity)
    const sizes = new Uint32Array(buffer, offsets.byteLength + places.byteLength, capacity)
    this.#offsets = copied(this.#offsets, offsets, this.#start, this.#end)
    this.#places = copied(this.#places, places, this.#start, this.#end)
    this.#sizes = copied(this.#sizes, sizes, this.#start, this.#end)
    this.#end -= this.#start
    this.#start = 0
  }
}

const placeOf = (fileNumber: number, position: number): number =>
  ((fileNumber << POSITION_BITS) | (position / POSITION_UNIT)) >>> 0

function copied<T extends Float64Array | Uint32Array>(from: T, to: T, start: number, end: number): T {
  to.set(from.subarray(start, end))
  return to
}
