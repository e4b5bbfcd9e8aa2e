/**
 * Reads CBOR (RFC 8949) for showing: into values that JSON can print. Pure. Not the codec of the device protocol: this
 * one takes every well-formed item, is bounded in depth and count, and allocates nothing by an announced length.
 */

export type CborValue = string | number | boolean | null | CborValue[] | { [key: string]: CborValue }

const MAX_DEPTH = 16
const MAX_ITEMS = 4096
const BREAK = Symbol('break')
type Item = CborValue | typeof BREAK

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Says that the bytes are no CBOR, or more of it than is shown. */
class Unreadable extends Error {}

/** @returns undefined when `bytes` is not exactly one well-formed item within the bounds. */
export function decodeCbor(bytes: Uint8Array): CborValue | undefined {
  const reader = new Decoder(bytes)
  try {
    const value = reader.item(0)
    return value === BREAK || !reader.isAtEnd ? undefined : value
  } catch (error) {
    if (error instanceof Unreadable || error instanceof TypeError) return undefined
    throw error
  }
}

class Decoder {
  private readonly bytes: Uint8Array
  private readonly view: DataView
  private position = 0
  private itemCount = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get isAtEnd(): boolean {
    return this.position === this.bytes.length
  }

  item(depth: number): Item {
    if (depth > MAX_DEPTH || ++this.itemCount > MAX_ITEMS) throw new Unreadable()
    const head = this.take(1)[0] ?? 0
    const major = head >> 5
    const info = head & 31
    if (info === 31) return this.indefinite(major, depth)
    if (major === 7) return this.simple(info)
    const argument = this.argument(info)
    switch (major) {
      case 0:
        return plainNumber(argument)
      case 1:
        return plainNumber(-1n - argument)
      case 2:
        return showBytes(this.take(argument))
      case 3:
        return utf8.decode(this.take(argument))
      case 4:
        return this.list(argument, depth)
      case 5:
        return this.map(argument, depth)
      default:
        // A tag: what it tags is what a person wants to see.
        return this.item(depth + 1)
    }
  }

  private argument(info: number): bigint {
    if (info < 24) return BigInt(info)
    if (info > 27) throw new Unreadable()
    let value = 0n
    for (const byte of this.take(1 << (info - 24))) value = (value << 8n) | BigInt(byte)
    return value
  }

  private take(length: number | bigint): Uint8Array {
    const end = BigInt(this.position) + BigInt(length)
    if (end > BigInt(this.bytes.length)) throw new Unreadable()
    const taken = this.bytes.subarray(this.position, Number(end))
    this.position = Number(end)
    return taken
  }

  private simple(info: number): Item {
    if (info === 20 || info === 21) return info === 21
    if (info === 22 || info === 23) return null
    if (info === 24) return `simple(${this.take(1)[0] ?? 0})`
    const at = this.position
    if (info === 25) return readHalf(this.take(2))
    if (info === 26 && this.take(4).length === 4) return finite(this.view.getFloat32(at))
    if (info === 27 && this.take(8).length === 8) return finite(this.view.getFloat64(at))
    if (info < 20) return `simple(${info})`
    throw new Unreadable()
  }

  private list(count: bigint, depth: number): CborValue[] {
    const values: CborValue[] = []
    for (let left = count; left > 0n; left--) values.push(this.value(depth))
    return values
  }

  private map(count: bigint, depth: number): CborValue {
    const fields: [string, CborValue][] = []
    for (let left = count; left > 0n; left--) fields.push([showKey(this.value(depth)), this.value(depth)])
    return Object.fromEntries(fields)
  }

  private indefinite(major: number, depth: number): Item {
    if (major === 7) return BREAK
    if (major < 2 || major > 5) throw new Unreadable()
    const values: CborValue[] = []
    for (let next = this.item(depth + 1); next !== BREAK; next = this.item(depth + 1)) values.push(next)
    if (major === 4) return values
    if (major === 5) {
      if (values.length % 2 !== 0) throw new Unreadable()
      const keys = values.filter((_, index) => index % 2 === 0)
      return Object.fromEntries(keys.map((key, index) => [showKey(key), values[index * 2 + 1] ?? null]))
    }
    if (!values.every((part) => typeof part === 'string')) throw new Unreadable()
    return values.join('')
  }

  private value(depth: number): CborValue {
    const item = this.item(depth + 1)
    if (item === BREAK) throw new Unreadable()
    return item
  }
}

/** JSON's numbers hold 53 bits; larger ones are shown as text. */
function plainNumber(value: bigint): CborValue {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value.toString()
}

const finite = (value: number): CborValue => (Number.isFinite(value) ? value : String(value))
const showBytes = (bytes: Uint8Array): string => `h'${Buffer.from(bytes).toString('hex')}'`
const showKey = (key: CborValue): string => (typeof key === 'string' ? key : JSON.stringify(key))

function readHalf(bytes: Uint8Array): CborValue {
  const bits = ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0)
  const exponent = (bits >> 10) & 31
  const fraction = bits & 1023
  const sign = bits & 0x8000 ? -1 : 1
  if (exponent === 31) return fraction === 0 ? String(sign * Number.POSITIVE_INFINITY) : 'NaN'
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25)
}
