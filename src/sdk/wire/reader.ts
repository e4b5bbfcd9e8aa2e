/**
 * Reads little-endian values from one payload. Every read checks what is left first, so a length that a peer announces
 * never makes us read or allocate past the bytes it sent.
 *
 * Truncated or unknown values and text that is not UTF-8 are EDGE_COMMAND_MALFORMED (Iggy 3), bad lengths of text are
 * EDGE_FORMAT_INVALID (Iggy 4).
 */
import { EdgeError, type ErrorCode } from '../../errors.ts'

const U64 = 64n
const textDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A `TextDecoder` costs nearly a microsecond a call, whatever the length; names of streams and topics are short. */
const SHORT_TEXT_BYTES = 64
/** Character codes of short texts on their way to a string, by length: used again each time. */
const CODES = Array.from({ length: SHORT_TEXT_BYTES + 1 }, (_, length) => new Array<number>(length).fill(0))

export class Reader {
  /** What is being read, for errors: "create_topic request". */
  readonly subject: string
  /** Which value of it, for errors; set by `struct` before each field. */
  field = ''
  readonly #bytes: Uint8Array
  /** Made for the values that need it: views are what a small request costs most. */
  #viewMade: DataView | undefined
  /** Of a reader of a part: where that lies in the bytes. */
  readonly #start: number
  readonly #end: number
  #at: number

  /** Reads `bytesView` from `start` to `end`. */
  constructor(bytesView: Uint8Array, subject: string, start = 0, end = bytesView.length) {
    this.#bytes = bytesView
    this.#start = start
    this.#end = end
    this.#at = start
    this.subject = subject
  }

  /** Bytes read so far. */
  get position(): number {
    return this.#at - this.#start
  }

  /** Bytes not read yet. */
  get remaining(): number {
    return this.#end - this.#at
  }

  u8(): number {
    return this.#bytes[this.#advance(1)] ?? 0
  }

  u16(): number {
    const at = this.#advance(2)
    return (this.#bytes[at] ?? 0) | ((this.#bytes[at + 1] ?? 0) << 8)
  }

  u32(): number {
    return u32At(this.#bytes, this.#advance(4))
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#advance(8), true)
  }

  u128(): bigint {
    const at = this.#advance(16)
    return (this.#view.getBigUint64(at + 8, true) << U64) | this.#view.getBigUint64(at, true)
  }

  f32(): number {
    return this.#view.getFloat32(this.#advance(4), true)
  }

  /** Zero is false, anything else true. */
  bool(): boolean {
    return this.u8() !== 0
  }

  /** The next `count` bytes, aliasing the payload. */
  bytesView(count: number): Uint8Array {
    const at = this.#advance(count)
    return this.#bytes.subarray(at, at + count)
  }

  /** Everything that is left, aliasing the payload. */
  restView(): Uint8Array {
    return this.bytesView(this.remaining)
  }

  /** A reader of the next `count` bytes alone. */
  sub(count: number): Reader {
    const start = this.#advance(count)
    const inner = new Reader(this.#bytes, this.subject, start, start + count)
    inner.field = this.field
    return inner
  }

  /** A reader of other bytes with the same subject: to try a second form. */
  over(bytesView: Uint8Array): Reader {
    const inner = new Reader(bytesView, this.subject)
    inner.field = this.field
    return inner
  }

  /** `[len:1][bytes]` of UTF-8, 1..255 bytes. */
  name(): string {
    const length = this.u8()
    if (length === 0) throw this.fail('EDGE_FORMAT_INVALID', '1..255 bytes of text', '0')
    return this.#text(length)
  }

  /** `[len:4][bytes]` of UTF-8, may be empty. */
  text(): string {
    return this.#text(this.u32())
  }

  /** `[len:1][bytes]`, may be empty. */
  shortBytesView(): Uint8Array {
    return this.bytesView(this.u8())
  }

  /** `[len:4][bytes]`, may be empty. */
  longBytesView(): Uint8Array {
    return this.bytesView(this.u32())
  }

  /** Reads `[len:1][bytes]` as text that may be empty. */
  shortText(): string {
    return this.#text(this.u8())
  }

  /** @returns an error that names what, which, expected and found; the caller throws it. */
  fail(code: ErrorCode, expected: string, found: string): EdgeError {
    const which = this.field === '' ? '' : ` ${this.field}`
    return new EdgeError(
      code,
      `${this.subject}:${which} before byte ${this.position}: expected ${expected}, found ${found}`,
      {
        details: { subject: this.subject, field: this.field, position: this.position },
      },
    )
  }

  get #view(): DataView {
    const { buffer, byteOffset, byteLength } = this.#bytes
    this.#viewMade ??= new DataView(buffer, byteOffset, byteLength)
    return this.#viewMade
  }

  #text(length: number): string {
    const at = this.#advance(length)
    if (length <= SHORT_TEXT_BYTES && isAscii(this.#bytes, at, at + length)) {
      return asciiText(this.#bytes, at, length)
    }
    try {
      return textDecoder.decode(this.#bytes.subarray(at, at + length))
    } catch {
      throw this.fail('EDGE_COMMAND_MALFORMED', 'UTF-8 text', `${length} bytes that are not`)
    }
  }

  #advance(count: number): number {
    const at = this.#at
    if (count > this.#end - at) {
      throw this.fail('EDGE_COMMAND_MALFORMED', `${count} more bytes`, `${this.remaining}`)
    }
    this.#at = at + count
    return at
  }
}

/** Little-endian. The caller knows that four bytes are there. */
export function u32At(bytes: Uint8Array, at: number): number {
  const low = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8)
  return (low | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24)) >>> 0
}

function isAscii(bytes: Uint8Array, start: number, end: number): boolean {
  let bits = 0
  for (let i = start; i < end; i++) bits |= bytes[i] ?? 0
  return bits < 128
}

function asciiText(bytes: Uint8Array, start: number, length: number): string {
  const codes = CODES[length] ?? []
  for (let i = 0; i < length; i++) codes[i] = bytes[start + i] ?? 0
  return String.fromCharCode.apply(null, codes)
}
