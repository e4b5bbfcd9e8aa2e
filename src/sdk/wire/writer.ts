/**
 * Writes little-endian values into a buffer that is used again and again, and grows when it must.
 *
 * The buffer may be a region of the kernels' memory (`kernel.reserve`): then messages are expanded in place. When it
 * does not suffice the bytes move to an own buffer of twice the size, until `reset` returns to the first one.
 */
import { assert } from '../../assert.ts'
import { EdgeError, type ErrorCode } from '../../errors.ts'

const FIRST_BYTES = 256
/** The largest answer: 128 MiB of messages, with room for the heads of many small ones. Requests end at 64 MiB. */
export const MAX_WRITER_BYTES = 144 * 1024 * 1024
const MAX_NAME_BYTES = 255
const MASK_64 = 0xffff_ffff_ffff_ffffn

const textEncoder = new TextEncoder()

export class Writer {
  /** Which value is being written, for errors; set by `struct` before each field. */
  field = ''
  #firstBuffer: Uint8Array
  #buffer: Uint8Array
  #view: DataView
  #length = 0

  /** @param buffer where to write first; kept and written over after each `reset`. */
  constructor(buffer: Uint8Array = new Uint8Array(FIRST_BYTES)) {
    this.#firstBuffer = buffer
    this.#buffer = buffer
    this.#view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
  }

  /** Bytes written since the last `reset`. */
  get length(): number {
    return this.#length
  }

  /** The whole current buffer; bytes up to `length` are written. Ask again after anything that may grow it. */
  get bufferView(): Uint8Array {
    return this.#buffer
  }

  /** The bytes written, aliasing the buffer: valid until the next write or reset. */
  get writtenView(): Uint8Array {
    return this.#buffer.subarray(0, this.#length)
  }

  /** The first buffer did not suffice. */
  get hasGrown(): boolean {
    return this.#buffer !== this.#firstBuffer
  }

  /** @returns a copy of the bytes written. */
  toBytes(): Uint8Array {
    return this.#buffer.slice(0, this.#length)
  }

  /** Begins anew in the first buffer; a larger one is let go. */
  reset(): void {
    this.#length = 0
    if (this.#buffer !== this.#firstBuffer) this.#use(this.#firstBuffer)
  }

  /** Begins anew in another first buffer. @returns the one before, which is the caller's from now on. */
  replaceFirst(buffer: Uint8Array): Uint8Array {
    const before = this.#firstBuffer
    this.#firstBuffer = buffer
    this.#length = 0
    this.#use(buffer)
    return before
  }

  /** Takes back everything after `length`: for replies that turn out to be errors. */
  truncate(length: number): void {
    assert(length <= this.#length, `Writer.truncate to ${length} of ${this.#length} bytes`)
    this.#length = length
  }

  /** Makes room for `count` bytes after `length` without writing them; `advance` then takes those that were filled. */
  ensure(count: number): void {
    const needed = this.#length + count
    if (needed > this.#buffer.length) this.#grow(needed)
  }

  /** Counts `count` bytes as written that were put into `bufferView` after `ensure`. */
  advance(count: number): void {
    assert(this.#length + count <= this.#buffer.length, `Writer.advance by ${count} past the ensured room`)
    this.#length += count
  }

  u8(value: number): void {
    const at = this.#claim(1)
    this.#view.setUint8(at, value)
  }

  u16(value: number): void {
    const at = this.#claim(2)
    this.#view.setUint16(at, value, true)
  }

  u32(value: number): void {
    const at = this.#claim(4)
    this.#view.setUint32(at, value, true)
  }

  u64(value: bigint): void {
    const at = this.#claim(8)
    this.#view.setBigUint64(at, value, true)
  }

  u128(value: bigint): void {
    const at = this.#claim(16)
    this.#view.setBigUint64(at, value & MASK_64, true)
    this.#view.setBigUint64(at + 8, value >> 64n, true)
  }

  f32(value: number): void {
    const at = this.#claim(4)
    this.#view.setFloat32(at, value, true)
  }

  bool(value: boolean): void {
    this.u8(value ? 1 : 0)
  }

  bytes(value: Uint8Array): void {
    const at = this.#claim(value.length)
    this.#buffer.set(value, at)
  }

  zeros(count: number): void {
    const at = this.#claim(count)
    this.#buffer.fill(0, at, at + count)
  }

  /** `[len:1][bytes]`, 1..255 bytes of UTF-8. @throws EDGE_NAME_INVALID. */
  name(value: string): void {
    if (value === '') throw new EdgeError('EDGE_NAME_INVALID', 'name: expected 1..255 bytes, found 0')
    this.shortText(value)
  }

  /** `[len:1][bytes]`, 0..255 bytes of UTF-8. @throws EDGE_NAME_INVALID. */
  shortText(value: string): void {
    this.shortBytes(textEncoder.encode(value))
  }

  /** `[len:4][bytes]` of UTF-8. */
  text(value: string): void {
    this.longBytes(textEncoder.encode(value))
  }

  /** `[len:1][bytes]`, 0..255 bytes. @throws EDGE_NAME_INVALID. */
  shortBytes(value: Uint8Array): void {
    if (value.length > MAX_NAME_BYTES) {
      throw new EdgeError('EDGE_NAME_INVALID', `name: expected at most 255 bytes, found ${value.length}`)
    }
    this.u8(value.length)
    this.bytes(value)
  }

  /** `[len:4][bytes]`. */
  longBytes(value: Uint8Array): void {
    this.u32(value.length)
    this.bytes(value)
  }

  /** @returns an error that names which, expected and found; the caller throws it. */
  fail(code: ErrorCode, expected: string, found: string): EdgeError {
    const which = this.field === '' ? 'value' : this.field
    return new EdgeError(code, `${which}: expected ${expected}, found ${found}`, { details: { field: this.field } })
  }

  /** Overwrites four bytes written before: lengths that are known only at the end. */
  patchU32(position: number, value: number): void {
    assert(position + 4 <= this.#length, `Writer.patchU32 at ${position} of ${this.#length} bytes`)
    this.#view.setUint32(position, value, true)
  }

  /** Call it before touching the buffer or its view: it may put larger ones in their place. */
  #claim(count: number): number {
    this.ensure(count)
    const at = this.#length
    this.#length = at + count
    return at
  }

  #grow(needed: number): void {
    if (needed > MAX_WRITER_BYTES) {
      const message = `encoded bytes: expected at most ${MAX_WRITER_BYTES}, found ${needed}`
      throw new EdgeError('EDGE_FRAME_TOO_LARGE', message, { details: { sizeBytes: needed } })
    }
    const larger = new Uint8Array(Math.min(MAX_WRITER_BYTES, Math.max(needed, this.#buffer.length * 2)))
    larger.set(this.#buffer.subarray(0, this.#length))
    this.#use(larger)
  }

  #use(buffer: Uint8Array): void {
    this.#buffer = buffer
    this.#view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
  }
}
