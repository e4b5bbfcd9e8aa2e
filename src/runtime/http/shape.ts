/**
 * Shapes of JSON bodies: small decoders that compose. Each takes a parsed value and the dotted path to it, and gives a
 * typed one or rejects the request with 422 and a sentence that names the field, what was found and what was expected. Pure.
 */
import { rejection, wrongShape } from './rejection.ts'

export type Shape<T> = (found: unknown, path: string) => T
export type ShapeOf<S> = S extends Shape<infer T> ? T : never

type Fields = Readonly<Record<string, Shape<unknown>>>
type Decoded<F extends Fields> = { readonly [K in keyof F]: ShapeOf<F[K]> }

const U64_MAX = 2n ** 64n - 1n

export const text: Shape<string> = (found, path) => {
  if (typeof found !== 'string') throw wrongShape(path, `invalid type: ${describe(found)}, expected a string`)
  // Half a character has no bytes: it would be stored as another one.
  if (!found.isWellFormed()) throw rejection(400, `Failed to parse the request body as JSON: ${path}: lone surrogate`)
  return found
}

export const boolean: Shape<boolean> = (found, path) => {
  if (typeof found !== 'boolean') throw wrongShape(path, `invalid type: ${describe(found)}, expected a boolean`)
  return found
}

/** A whole number from 0 to `max`, which fits a JavaScript number. */
export function whole(max: number, name: string): Shape<number> {
  return (found, path) => {
    if (typeof found === 'number' && Number.isSafeInteger(found) && found >= 0 && found <= max) return found
    throw wrongShape(path, `invalid ${isWhole(found) ? 'value' : 'type'}: ${describe(found)}, expected ${name}`)
  }
}
export const u8 = whole(0xff, 'u8')
export const u32 = whole(0xffff_ffff, 'u32')

export function u64(name = 'u64'): Shape<bigint> {
  return (found, path) => {
    if (isWhole(found)) {
      const value = BigInt(found)
      if (value >= 0n && value <= U64_MAX) return value
    }
    throw wrongShape(path, `invalid ${isWhole(found) ? 'value' : 'type'}: ${describe(found)}, expected ${name}`)
  }
}

type Padding = 'whole' | 'any'

export const base64 = base64Shape('whole')
/** Where the servers of Iggy look at no padding. */
export const base64AnyPadding = base64Shape('any')

function base64Shape(padding: Padding): Shape<Uint8Array> {
  return (found, path) => {
    if (typeof found !== 'string')
      throw wrongShape(path, `invalid type: ${describe(found)}, expected a base64 encoded string`)
    const bytes = decodeBase64(found, padding)
    if (bytes === undefined) throw wrongShape(path, 'Invalid base64')
    return bytes
  }
}

/** @returns undefined when `value` is not canonical base64: not URL-safe, and no bit set behind the last byte. */
export function decodeBase64(value: string, padding: Padding = 'whole'): Uint8Array | undefined {
  const bytes = Buffer.from(value, 'base64')
  // What is canonical comes out as it went in. A pattern would run out of stack over a large payload.
  const canonical = bytes.toString('base64')
  const isRight = value === canonical || (padding === 'any' && hasLessPadding(canonical, value))
  return isRight ? new Uint8Array(bytes) : undefined
}

/** Whether `value` is `canonical` with less padding. */
function hasLessPadding(canonical: string, value: string): boolean {
  return canonical.startsWith(value) && /^={1,2}$/.test(canonical.slice(value.length))
}

export function oneOf<const N extends string>(...names: readonly N[]): Shape<N> {
  const list = names.map((name) => `\`${name}\``)
  const expected = list.length === 2 ? list.join(' or ') : `one of ${list.join(', ')}`
  return (found, path) => {
    const value = text(found, path)
    const name = names.find((each) => each === value)
    if (name === undefined) throw wrongShape(path, `unknown variant \`${value}\`, expected ${expected}`)
    return name
  }
}

/** Absent and null are the same: nothing was given. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  const decode: Shape<T | undefined> = (found, path) =>
    found === undefined || found === null ? undefined : shape(found, path)
  return Object.assign(decode, { isOptional: true })
}

export function list<T>(shape: Shape<T>, maxCount = Number.POSITIVE_INFINITY): Shape<readonly T[]> {
  return (found, path) => {
    if (!Array.isArray(found)) throw wrongShape(path, `invalid type: ${describe(found)}, expected a sequence`)
    if (found.length > maxCount) throw rejection(413, `${path}: expected at most ${maxCount}, found ${found.length}`)
    return found.map((each, index) => shape(each, `${path}[${index}]`))
  }
}

/** An object used as a map; the caller checks the keys. */
export function entries<T>(shape: Shape<T>): Shape<ReadonlyMap<string, T>> {
  return (found, path) => {
    const fields = record(found, path)
    return new Map(Object.entries(fields).map(([key, value]) => [key, shape(value, join(path, key))]))
  }
}

/** Unknown fields are ignored, as Iggy does, unless `isClosed`. */
export function object<const F extends Fields>(fields: F, options: { isClosed?: boolean } = {}): Shape<Decoded<F>> {
  const names = Object.keys(fields)
  return (found, path) => {
    const given = record(found, path)
    if (options.isClosed === true) refuseUnknown(given, names, path)
    const decoded = names.map((name) => {
      const shape = fields[name] as Shape<unknown>
      const value = Object.hasOwn(given, name) ? given[name] : undefined
      if (value === undefined && !('isOptional' in shape)) throw wrongShape(path, `missing field \`${name}\``)
      return [name, shape(value, join(path, name))]
    })
    return Object.fromEntries(decoded) as Decoded<F>
  }
}

function record(found: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof found === 'object' && found !== null && !Array.isArray(found)) return found as Record<string, unknown>
  throw wrongShape(path, `invalid type: ${describe(found)}, expected a map`)
}

function refuseUnknown(given: Readonly<Record<string, unknown>>, names: readonly string[], path: string): void {
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown === undefined) return
  const expected = names.map((name) => `\`${name}\``).join(' or ')
  throw wrongShape(join(path, unknown), `unknown field \`${unknown}\`, expected ${expected}`)
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)
const isWhole = (found: unknown): found is number | bigint => typeof found === 'bigint' || Number.isInteger(found)

/** The found value in words, never longer than a line. */
export function describe(found: unknown): string {
  if (found === null || found === undefined) return 'null'
  if (Array.isArray(found)) return 'sequence'
  if (typeof found === 'object') return 'map'
  if (typeof found === 'string') return `string ${JSON.stringify(found.slice(0, 64))}`
  if (typeof found === 'boolean') return `boolean \`${found}\``
  return isWhole(found) ? `integer \`${found}\`` : `floating point \`${String(found)}\``
}
