/**
 * Reading JSON with exact whole numbers: offsets, checksums and message ids have up to 39 digits, a JavaScript number holds
 * 15 to 16 of them. Pure.
 */

/** Shorter runs of digits always fit a number exactly. */
const LONG_DIGITS = /\d{16}/

/** The part of ES2026's JSON that the compiler's library does not declare yet. */
interface ExactJson {
  parse(text: string, revive: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown
}
const exactJson = JSON as unknown as ExactJson

/** @throws {SyntaxError} when `text` is not JSON. @returns whole numbers as `number` where exact, else as `bigint`. */
export function parseJson(text: string): unknown {
  // The reviver visits every value and costs several times the parse itself: only texts that may need it pay.
  if (!LONG_DIGITS.test(text)) return JSON.parse(text)
  return exactJson.parse(text, (_key, value, { source }) => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
    return source !== undefined && /^-?\d+$/.test(source) ? BigInt(source) : value
  })
}
