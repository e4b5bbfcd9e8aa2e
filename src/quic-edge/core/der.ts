/** The few DER encodings that an X.509 certificate needs (ITU-T X.690). Pure. */
import { concatBytes } from '../../byte-concat.ts'

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  sequence: 0x30,
  set: 0x31,
  utcTime: 0x17,
  generalizedTime: 0x18,
} as const

/** Tag, length in its shortest form, content. */
export function tagged(tag: number, ...contents: readonly Uint8Array[]): Uint8Array {
  const size = contents.reduce((sum, content) => sum + content.byteLength, 0)
  return concatBytes([Uint8Array.of(tag), lengthOf(size), ...contents])
}

export const sequence = (...items: readonly Uint8Array[]): Uint8Array => tagged(TAG.sequence, ...items)
export const set = (...items: readonly Uint8Array[]): Uint8Array => tagged(TAG.set, ...items)
export const octetString = (content: Uint8Array): Uint8Array => tagged(TAG.octetString, content)
export const boolean = (value: boolean): Uint8Array => tagged(TAG.boolean, Uint8Array.of(value ? 0xff : 0))
export const utf8String = (text: string): Uint8Array => tagged(TAG.utf8String, new TextEncoder().encode(text))
/** `[number]` around a complete value. */
export const explicit = (number: number, content: Uint8Array): Uint8Array => tagged(0xa0 | number, content)
/** `[number]` in place of the value's own tag. */
export const implicit = (number: number, content: Uint8Array): Uint8Array => tagged(0x80 | number, content)

/** Whole octets, or the lowest `unusedBits` of the last one not meant. */
export function bitString(content: Uint8Array, unusedBits = 0): Uint8Array {
  return tagged(TAG.bitString, Uint8Array.of(unusedBits), content)
}

/** A non-negative integer from its big-endian bytes. */
export function integer(bigEndian: Uint8Array): Uint8Array {
  const from = bigEndian.findIndex((byte) => byte !== 0)
  const significant = from < 0 ? Uint8Array.of(0) : bigEndian.subarray(from)
  // A set top bit would mean a negative number.
  const isNegative = (significant[0] ?? 0) >= 0x80
  return tagged(TAG.integer, isNegative ? Uint8Array.of(0) : new Uint8Array(), significant)
}

/** @param dotted such as `1.2.840.10045.4.3.2`. */
export function objectIdentifier(dotted: string): Uint8Array {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return tagged(TAG.objectIdentifier, Uint8Array.from([first * 40 + second, ...rest].flatMap(base128)))
}

/** To the second, as RFC 5280 wants it: two digits of the year while they are unambiguous, 1950 to 2049, else four. */
export function time(milliseconds: number): Uint8Array {
  const text = new Date(milliseconds).toISOString().replace(/[-:T]/g, '').slice(0, 14)
  const isShort = text >= '1950' && text < '2050'
  const [tag, digits] = isShort ? [TAG.utcTime, text.slice(2)] : [TAG.generalizedTime, text]
  return tagged(tag, new TextEncoder().encode(`${digits}Z`))
}

function lengthOf(size: number): Uint8Array {
  if (size < 0x80) return Uint8Array.of(size)
  const bytes: number[] = []
  for (let rest = size; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return Uint8Array.of(0x80 | bytes.length, ...bytes)
}

function base128(value: number): number[] {
  const bytes = [value % 128]
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift(0x80 | (rest % 128))
  return bytes
}
