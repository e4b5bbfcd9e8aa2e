/**
 * Writing JSON with exact whole numbers, as `exact-json.ts` reads it: offsets, checksums and message ids have up to 39 digits,
 * a JavaScript number holds 15 to 16 of them. They are put out bare, without quotes. Pure.
 */

/** A number as JSON text, which `JSON.stringify` copies unchanged. */
export interface RawJson {
  readonly rawJSON: string
}

/** The part of ES2026's JSON that the compiler's library does not declare yet. */
interface ExactJson {
  rawJSON(text: string): RawJson
}
const exactJson = JSON as unknown as ExactJson

export type JsonValue = string | number | boolean | null | RawJson | readonly JsonValue[] | JsonObject
export interface JsonObject {
  readonly [name: string]: JsonValue
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
