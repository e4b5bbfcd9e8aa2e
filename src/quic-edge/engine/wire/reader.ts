/**
 * Reads big-endian values from a part of a packet or of a TLS message. Pure.
 *
 * Every read checks what is left first, so a length that a peer announces never makes us read or allocate past the bytes
 * it sent. Views alias the bytes they come from.
 */
import { QuicError, TRANSPORT_ERROR } from './quic-error.ts'

export class Reader {
  readonly #bytes: Uint8Array
  #at: number
  readonly #end: number

  /** Reads `bytes` from `at` to `end`. */
  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = at
    this.#end = end
  }

  /** Bytes not read yet. */
  get left(): number {
    return this.#end - this.#at
  }

  /** Index in the bytes of what is read next. */
  get position(): number {
    return this.#at
  }

  u8(): number {
    return this.#bytes[this.#advance(1)] ?? 0
  }

  u16(): number {
    const at = this.#advance(2)
    return this.#u16At(at)
  }

  u24(): number {
    const at = this.#advance(3)
    return ((this.#bytes[at] ?? 0) << 16) | this.#u16At(at + 1)
  }

  u32(): number {
    return this.#u32At(this.#advance(4))
  }

  /**
   * A variable-length integer. Values past 2^53 - 1 become the nearest double: they are there to be compared with limits,
   * which lie far below or, as 2^60, on one.
   */
  varint(): number {
    const first = this.#bytes[this.#at] ?? 0
    if (first < 0x40) return this.u8()
    if (first < 0x80) return this.u16() & 0x3fff
    if (first < 0xc0) return this.u32() & 0x3fff_ffff
    const at = this.#advance(8)
    return (this.#u32At(at) & 0x3fff_ffff) * 0x1_0000_0000 + this.#u32At(at + 4)
  }

  /** The next `size` bytes, a view. */
  take(size: number): Uint8Array {
    const at = this.#advance(size)
    return this.#bytes.subarray(at, at + size)
  }

  /** Everything that is left, a view. */
  rest(): Uint8Array {
    return this.take(this.left)
  }

  /** A reader of the next `size` bytes alone. */
  part(size: number): Reader {
    const at = this.#advance(size)
    return new Reader(this.#bytes, at, at + size)
  }

  /** A reader of what follows a length of one byte, as in TLS. */
  vector8(): Reader {
    return this.part(this.u8())
  }

  /** A reader of what follows a length of two bytes. */
  vector16(): Reader {
    return this.part(this.u16())
  }

  /** A reader of what follows a length of three bytes. */
  vector24(): Reader {
    return this.part(this.u24())
  }

  #u16At(at: number): number {
    return ((this.#bytes[at] ?? 0) << 8) | (this.#bytes[at + 1] ?? 0)
  }

  #u32At(at: number): number {
    return ((this.#u16At(at) << 16) | this.#u16At(at + 2)) >>> 0
  }

  #advance(size: number): number {
    const at = this.#at
    if (size > this.#end - at) throw new QuicError(TRANSPORT_ERROR.frameEncodingError, 'truncated')
    this.#at = at + size
    return at
  }
}
