/**
 * Writes big-endian values into a buffer of the caller's, such as a datagram under construction. Pure.
 *
 * It does not grow. Whoever writes frames asks `left` first; writing past the end is a bug, caught when the bytes are taken.
 */
import { assert } from '../../../assert.ts'
import { varintSize } from './varint.ts'

export class Writer {
  readonly #buffer: Uint8Array
  readonly #start: number
  readonly #end: number
  #at: number

  /** Writes `buffer` from `at` to `end`. */
  constructor(buffer: Uint8Array, at = 0, end = buffer.length) {
    this.#buffer = buffer
    this.#start = at
    this.#end = end
    this.#at = at
  }

  /** Index in the buffer of what is written next. May be set back to give up what follows. */
  get position(): number {
    return this.#at
  }

  set position(at: number) {
    this.#at = at
  }

  get left(): number {
    return this.#end - this.#at
  }

  /** Bytes written, a view. */
  get writtenView(): Uint8Array {
    assert(this.#at <= this.#end, `Writer is within its buffer: at ${this.#at} of ${this.#end}`)
    return this.#buffer.subarray(this.#start, this.#at)
  }

  u8(value: number): void {
    this.#buffer[this.#at++] = value
  }

  u16(value: number): void {
    this.u8(value >>> 8)
    this.u8(value)
  }

  u24(value: number): void {
    this.u8(value >>> 16)
    this.u16(value)
  }

  u32(value: number): void {
    this.u16(value >>> 16)
    this.u16(value)
  }

  /** A variable-length integer in its shortest form. @param value whole, up to 2^53 - 1. */
  varint(value: number): void {
    const size = varintSize(value)
    if (size === 1) this.u8(value)
    else if (size === 2) this.varint2(value)
    else if (size === 4) this.u32(0x8000_0000 | value)
    else {
      this.u32(0xc000_0000 | Math.floor(value / 0x1_0000_0000))
      this.u32(value % 0x1_0000_0000)
    }
  }

  /** A variable-length integer in two bytes: lengths that are filled in later. @param value below 2^14. */
  varint2(value: number): void {
    this.u16(0x4000 | value)
  }

  bytes(value: Uint8Array): void {
    this.#buffer.set(value, this.#at)
    this.#at += value.length
  }

  /** `size` zero bytes, which are PADDING frames too. */
  zeros(size: number): void {
    this.#buffer.fill(0, this.#at, this.#at + size)
    this.#at += size
  }
}
