/**
 * Typed values as user headers and option blocks carry them: `[kind:1][len:4][bytes]`, 1..255 bytes, numbers LE.
 *
 *   1 raw, 2 string, 3 bool, 4 i8, 5 i16, 6 i32, 7 i64, 8 i128, 9 u8, 10 u16, 11 u32, 12 u64, 13 u128, 14 f32, 15 f64
 */
import { EdgeError } from '../../errors.ts'
import type { Reader } from './reader.ts'
import type { Writer } from './writer.ts'

/** Names by kind code; index 0 is no kind. */
const KIND_NAMES = [
  '',
  'raw',
  'string',
  'bool',
  'int8',
  'int16',
  'int32',
  'int64',
  'int128',
  'uint8',
  'uint16',
  'uint32',
  'uint64',
  'uint128',
  'float32',
  'float64',
] as const

export type HeaderKind = Exclude<(typeof KIND_NAMES)[number], ''>

/** A value and its kind, as it lies on the wire. */
export interface HeaderValue {
  readonly kind: HeaderKind
  readonly bytes: Uint8Array
}

/** A value as a program uses it: numbers up to 32 bits and floats are `number`, larger ones `bigint`. */
export type HeaderScalar = string | boolean | number | bigint | Uint8Array

const KIND_SIZES: Readonly<Record<HeaderKind, number>> = {
  raw: 0,
  string: 0,
  bool: 1,
  int8: 1,
  int16: 2,
  int32: 4,
  int64: 8,
  int128: 16,
  uint8: 1,
  uint16: 2,
  uint32: 4,
  uint64: 8,
  uint128: 16,
  float32: 4,
  float64: 8,
}
const MAX_VALUE_BYTES = 255

const textDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const textEncoder = new TextEncoder()

/** @returns the kind's number on the wire, 1..15. */
export function headerKindCode(kind: HeaderKind): number {
  return KIND_NAMES.indexOf(kind)
}

/** @returns the kind's name (as in Iggy's JSON), or undefined for a number that is no kind. */
export function headerKindName(code: number): HeaderKind | undefined {
  const name = KIND_NAMES[code]
  return name === '' ? undefined : name
}

/** Reads `[kind:1][len:4][bytes]`; the bytes alias the payload. A fixed-size kind must have its size. */
export function readHeaderValue(reader: Reader): HeaderValue {
  const code = reader.u8()
  const kind = headerKindName(code)
  if (kind === undefined) throw reader.fail('EDGE_COMMAND_MALFORMED', 'header kind 1..15', `${code}`)
  const length = reader.u32()
  if (length === 0 || length > MAX_VALUE_BYTES) throw reader.fail('EDGE_FORMAT_INVALID', '1..255 bytes', `${length}`)
  const size = KIND_SIZES[kind]
  if (size !== 0 && size !== length) throw reader.fail('EDGE_FORMAT_INVALID', `${size} bytes of ${kind}`, `${length}`)
  return { kind, bytes: reader.bytesView(length) }
}

export function writeHeaderValue(writer: Writer, value: HeaderValue): void {
  if (value.bytes.length === 0 || value.bytes.length > MAX_VALUE_BYTES) {
    const message = `header value: expected 1..255 bytes, found ${value.bytes.length}`
    throw new EdgeError('EDGE_FORMAT_INVALID', message)
  }
  writer.u8(headerKindCode(value.kind))
  writer.longBytes(value.bytes)
}

/** @returns a string header value. */
export function stringHeader(value: string): HeaderValue {
  return { kind: 'string', bytes: textEncoder.encode(value) }
}

/**
 * @param value of the kind's type; integers are taken modulo the kind's width.
 * @returns the value as it lies on the wire.
 */
export function headerValueOf(kind: HeaderKind, value: HeaderScalar): HeaderValue {
  if (value instanceof Uint8Array) return { kind, bytes: value }
  if (kind === 'raw' || kind === 'string') return { kind, bytes: textEncoder.encode(String(value)) }
  const bytes = new Uint8Array(KIND_SIZES[kind])
  const view = new DataView(bytes.buffer)
  if (kind === 'bool') bytes[0] = value === true || value === 'true' ? 1 : 0
  else if (kind === 'float32') view.setFloat32(0, Number(value), true)
  else if (kind === 'float64') view.setFloat64(0, Number(value), true)
  else {
    let left = BigInt.asUintN(bytes.length * 8, BigInt(value))
    for (let i = 0; i < bytes.length; i++) {
      bytes[i] = Number(left & 255n)
      left >>= 8n
    }
  }
  return { kind, bytes }
}

/** @returns what the value means. @throws EDGE_FORMAT_INVALID for a string that is not UTF-8. */
export function headerScalarOf(value: HeaderValue): HeaderScalar {
  const { kind, bytes } = value
  if (kind === 'raw') return bytes
  if (kind === 'string') return decodeText(bytes)
  if (bytes.length !== KIND_SIZES[kind]) {
    const message = `header value: expected ${KIND_SIZES[kind]} bytes of ${kind}, found ${bytes.length}`
    throw new EdgeError('EDGE_FORMAT_INVALID', message)
  }
  if (kind === 'bool') return bytes[0] !== 0
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (kind === 'float32') return view.getFloat32(0, true)
  if (kind === 'float64') return view.getFloat64(0, true)
  let integer = 0n
  for (let i = bytes.length - 1; i >= 0; i--) integer = (integer << 8n) | BigInt(bytes[i] ?? 0)
  if (kind.startsWith('int')) integer = BigInt.asIntN(bytes.length * 8, integer)
  return bytes.length <= 4 ? Number(integer) : integer
}

function decodeText(bytes: Uint8Array): string {
  try {
    return textDecoder.decode(bytes)
  } catch {
    throw new EdgeError(
      'EDGE_FORMAT_INVALID',
      `header value: expected UTF-8 text, found ${bytes.length} bytes that are not`,
    )
  }
}
