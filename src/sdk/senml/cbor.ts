/**
 * As much CBOR (RFC 8949) as SenML needs: numbers, text, bytes, booleans, arrays and maps, decimal fractions. Floats are
 * written in the shortest form that keeps the value. Pure; nothing is allocated by an announced length.
 */
import { concatBytes } from '../../byte-concat.ts'
import { EdgeError } from '../../errors.ts'

export type CborValue =
  | number
  | bigint
  | string
  | boolean
  | null
  | Uint8Array
  | readonly CborValue[]
  | ReadonlyMap<CborValue, CborValue>

const MAX_DEPTH = 8
const MAX_ITEMS = 100_000
const MAJOR = { unsigned: 0, negative: 1, bytes: 2, text: 3, array: 4, map: 5, tag: 6, simple: 7 } as const
const INDEFINITE = 31
const BREAK = 0xff
const TAG_DECIMAL_FRACTION = 4
const TAG_BIGFLOAT = 5

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

// ---- writing -----------------------------------------------------------------------------------------------------------

export function encodeCbor(value: CborValue): Uint8Array {
  const parts: Uint8Array[] = []
  writeValue(parts, value)
  return concatBytes(parts)
}

function writeValue(parts: Uint8Array[], value: CborValue): void {
  if (typeof value === 'number') {
    parts.push(numberBytes(value))
  } else if (typeof value === 'bigint') {
    parts.push(value < 0n ? head(MAJOR.negative, -1n - value) : head(MAJOR.unsigned, value))
  } else if (typeof value === 'string') {
    const bytes = encoder.encode(value)
    parts.push(head(MAJOR.text, bytes.length), bytes)
  } else if (typeof value === 'boolean' || value === null) {
    parts.push(Uint8Array.of(value === null ? 0xf6 : value ? 0xf5 : 0xf4))
  } else if (value instanceof Uint8Array) {
    parts.push(head(MAJOR.bytes, value.length), value)
  } else if (value instanceof Map) {
    parts.push(head(MAJOR.map, value.size))
    for (const [key, entry] of value) {
      writeValue(parts, key)
      writeValue(parts, entry)
    }
  } else if (Array.isArray(value)) {
    parts.push(head(MAJOR.array, value.length))
    for (const entry of value) writeValue(parts, entry)
  }
}

function head(major: number, argument: number | bigint): Uint8Array {
  const value = BigInt(argument)
  const type = major << 5
  if (value < 24n) return Uint8Array.of(type | Number(value))
  const size = value <= 0xffn ? 1 : value <= 0xffffn ? 2 : value <= 0xffff_ffffn ? 4 : 8
  const bytes = new Uint8Array(1 + size)
  bytes[0] = type | (24 + Math.log2(size))
  for (let i = 0; i < size; i++) bytes[size - i] = Number((value >> BigInt(8 * i)) & 0xffn)
  return bytes
}

function numberBytes(value: number): Uint8Array {
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) {
    return value < 0 ? head(MAJOR.negative, -1 - value) : head(MAJOR.unsigned, value)
  }
  const view = new DataView(new ArrayBuffer(9))
  view.setFloat16(1, value)
  if (Object.is(view.getFloat16(1), value)) return floatBytes(view, 0xf9, 3)
  view.setFloat32(1, value)
  if (Object.is(view.getFloat32(1), value)) return floatBytes(view, 0xfa, 5)
  view.setFloat64(1, value)
  return floatBytes(view, 0xfb, 9)
}

function floatBytes(view: DataView, type: number, size: number): Uint8Array {
  view.setUint8(0, type)
  return new Uint8Array(view.buffer, 0, size)
}

// ---- reading -----------------------------------------------------------------------------------------------------------

/**
 * @returns the one value that fills the bytes.
 * @throws {EdgeError} EDGE_READING_INVALID.
 */
export function decodeCbor(bytes: Uint8Array): CborValue {
  const reader = new CborReader(bytes)
  const value = reader.value(0)
  if (reader.at !== bytes.length) throw reader.fail(`${bytes.length - reader.at} bytes after the value`)
  return value
}

class CborReader {
  at = 0
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #items = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  fail(what: string): EdgeError {
    return new EdgeError('EDGE_READING_INVALID', `CBOR at byte ${this.at}: ${what}`)
  }

  value(depth: number): CborValue {
    if (depth > MAX_DEPTH) throw this.fail(`nested more than ${MAX_DEPTH} deep`)
    this.#items += 1
    if (this.#items > MAX_ITEMS) throw this.fail(`more than ${MAX_ITEMS} items`)
    const first = this.#byte()
    const major = first >> 5
    const info = first & 31
    switch (major) {
      case MAJOR.unsigned:
        return this.#integer(info, false)
      case MAJOR.negative:
        return this.#integer(info, true)
      case MAJOR.bytes:
        return this.#string(info, MAJOR.bytes)
      case MAJOR.text:
        return this.#text(this.#string(info, MAJOR.text))
      case MAJOR.array:
        return this.#array(info, depth)
      case MAJOR.map:
        return this.#map(info, depth)
      case MAJOR.tag:
        return this.#tagged(info, depth)
      default:
        return this.#simple(info)
    }
  }

  #byte(): number {
    const byte = this.#bytes[this.at]
    if (byte === undefined) throw this.fail('ends in the middle')
    this.at += 1
    return byte
  }

  #take(count: number): number {
    if (count > this.#bytes.length - this.at) throw this.fail('ends in the middle')
    const at = this.at
    this.at += count
    return at
  }

  #argument(info: number): bigint {
    if (info < 24) return BigInt(info)
    if (info === 24) return BigInt(this.#byte())
    if (info === 25) return BigInt(this.#view.getUint16(this.#take(2)))
    if (info === 26) return BigInt(this.#view.getUint32(this.#take(4)))
    if (info === 27) return this.#view.getBigUint64(this.#take(8))
    throw this.fail(`head with additional information ${info}`)
  }

  #length(info: number): number {
    const length = this.#argument(info)
    if (length > BigInt(this.#bytes.length)) throw this.fail(`announces ${length} items or bytes`)
    return Number(length)
  }

  #integer(info: number, isNegative: boolean): number | bigint {
    const argument = this.#argument(info)
    const value = isNegative ? -1n - argument : argument
    const number = Number(value)
    return Number.isSafeInteger(number) ? number : value
  }

  #string(info: number, major: number): Uint8Array {
    if (info !== INDEFINITE) {
      const length = this.#length(info)
      const at = this.#take(length)
      return this.#bytes.slice(at, at + length)
    }
    const chunks: number[] = []
    while (this.#bytes[this.at] !== BREAK) {
      const first = this.#byte()
      if (first >> 5 !== major || (first & 31) === INDEFINITE) throw this.fail('a chunk of another type')
      const length = this.#length(first & 31)
      const at = this.#take(length)
      for (let i = 0; i < length; i++) chunks.push(this.#bytes[at + i] ?? 0)
    }
    this.at += 1
    return Uint8Array.from(chunks)
  }

  #text(bytes: Uint8Array): string {
    try {
      return decoder.decode(bytes)
    } catch {
      throw this.fail('text that is not UTF-8')
    }
  }

  #array(info: number, depth: number): CborValue[] {
    const values: CborValue[] = []
    const wanted = info === INDEFINITE ? Number.POSITIVE_INFINITY : this.#length(info)
    while (values.length < wanted && !this.#isBreak(info)) values.push(this.value(depth + 1))
    return values
  }

  #map(info: number, depth: number): Map<CborValue, CborValue> {
    const entries = new Map<CborValue, CborValue>()
    const wanted = info === INDEFINITE ? Number.POSITIVE_INFINITY : this.#length(info)
    while (entries.size < wanted && !this.#isBreak(info)) {
      const key = this.value(depth + 1)
      if (entries.has(key)) throw this.fail(`key ${String(key)} twice`)
      entries.set(key, this.value(depth + 1))
    }
    return entries
  }

  #isBreak(info: number): boolean {
    if (info !== INDEFINITE || this.#bytes[this.at] !== BREAK) return false
    this.at += 1
    return true
  }

  /** Decimal fractions and big floats are numbers; no other tag has a meaning in SenML. */
  #tagged(info: number, depth: number): number {
    const tag = Number(this.#argument(info))
    if (tag !== TAG_DECIMAL_FRACTION && tag !== TAG_BIGFLOAT) throw this.fail(`tag ${tag}`)
    const parts = this.value(depth + 1)
    const [exponent, mantissa] = Array.isArray(parts) ? parts : []
    const isPair = typeof exponent === 'number' && (typeof mantissa === 'number' || typeof mantissa === 'bigint')
    if (!isPair || Math.abs(exponent) > 400) throw this.fail(`tag ${tag} without exponent and mantissa`)
    // Parsed as text, 2157 and -2 give exactly 21.57.
    return tag === TAG_DECIMAL_FRACTION ? Number(`${mantissa}e${exponent}`) : Number(mantissa) * 2 ** exponent
  }

  #simple(info: number): CborValue {
    switch (info) {
      case 20:
      case 21:
        return info === 21
      case 22:
        return null
      case 25:
        return this.#view.getFloat16(this.#take(2))
      case 26:
        return this.#view.getFloat32(this.#take(4))
      case 27:
        return this.#view.getFloat64(this.#take(8))
      default:
        throw this.fail(`simple value ${info}`)
    }
  }
}
