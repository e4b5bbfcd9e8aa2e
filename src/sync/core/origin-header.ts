/** The header that carries a record's time of origin over HTTP, where the server puts the time of arrival in its place. Pure. */
import { concatBytes } from '../../byte-concat.ts'
import { MAX_USER_HEADERS_BYTES } from '../../sdk/wire/batch.ts'
import { headerValueOf, stringHeader } from '../../sdk/wire/header-values.ts'
import { decodeUserHeaders, encodeUserHeaders } from '../../sdk/wire/user-headers.ts'

export const ORIGIN_KEY = stringHeader('edge-origin-us')
const ORIGIN_KEY_HEX = ORIGIN_KEY.bytes.toHex()

/**
 * @param originUs as this store has it.
 * @returns the headers with the time of origin, unless they have one: then it came here over HTTP, from where it is told
 *   better than here. Headers that have no room for it stay as they are.
 */
export function withOrigin(headersBytes: Uint8Array, originUs: bigint): Uint8Array {
  const header = encodeUserHeaders([{ key: ORIGIN_KEY, value: headerValueOf('uint64', originUs) }])
  const isFull = headersBytes.length + header.length > MAX_USER_HEADERS_BYTES
  return isFull || originBytesOf(headersBytes) !== undefined ? headersBytes : concatBytes([headersBytes, header])
}

/** @returns the time of origin that the headers carry, µs since the Unix epoch; null when they carry none. */
export function originOf(headersBytes: Uint8Array): bigint | null {
  return originIn(originBytesOf(headersBytes))
}

/** @param valueBytes of the header; undefined where there is none. */
export function originIn(valueBytes: Uint8Array | undefined): bigint | null {
  if (valueBytes?.length !== 8) return null
  return new DataView(valueBytes.buffer, valueBytes.byteOffset).getBigUint64(0, true)
}

function originBytesOf(headersBytes: Uint8Array): Uint8Array | undefined {
  try {
    return decodeUserHeaders(headersBytes).find(({ key }) => key.bytes.toHex() === ORIGIN_KEY_HEX)?.value.bytes
  } catch {
    // The log keeps headers unread: what they are worth is for the upstream to say.
    return undefined
  }
}
