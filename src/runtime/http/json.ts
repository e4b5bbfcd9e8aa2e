/**
 * JSON with exact whole numbers: offsets, checksums and message ids have up to 39 digits, a JavaScript number holds 15 to
 * 16 of them. Reading gives `bigint` where a number would lose digits; writing puts them out bare, without quotes. Pure.
 */

/** Shorter runs of digits always fit a number exactly. */
const LONG_DIGITS = /\d{16}/

/** A number as JSON text, which `JSON.stringify` copies unchanged. */
export interface RawJson {
  readonly rawJSON: string
}

/** The part of ES2026's JSON that the compiler's library does not declare yet. */
interface ExactJson {
  rawJSON(text: string): RawJson
  parse(text: string, revive: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown
}
const exactJson = JSON as unknown as ExactJson

export type JsonValue = string | number | boolean | null | RawJson | readonly JsonValue[] | JsonObject
export interface JsonObject {
  readonly [name: string]: JsonValue
}

/** @throws {SyntaxError} when `text` is not JSON. @returns whole numbers as `number` where exact, else as `bigint`. */
export function parseJson(text: string): unknown {
  // The reviver visits every value and costs several times the parse itself: only texts that may need it pay.
  if (!LONG_DIGITS.test(text)) return JSON.parse(text)
  return exactJson.parse(text, (_key, value, { source }) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
    return source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value
  })
}

/** A whole number for a view: every digit reaches the client. */
export function exact(value: bigint): number | RawJson {
  return value <= Number.MAX_SAFE_INTEGER && value >= Number.MIN_SAFE_INTEGER
    ? Number(value)
    : exactJson.rawJSON(value.toString())
}

export const stringifyJson = (value: JsonValue): string => JSON.stringify(value)

/** As `stringifyJson`, for values with `bigint` anywhere inside. Slower; for what is asked for now and then. */
export function stringifyExact(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) => (typeof inner === 'bigint' ? exact(inner) : inner))
}
