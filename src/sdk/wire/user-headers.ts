/**
 * User headers of a message: repeated key and value, each `[kind:1][len:4][bytes]`. The log and the broker keep them
 * unread; HTTP, the SDK and sync read and make them.
 */
import { EdgeError } from '../../errors.ts'
import { MAX_USER_HEADERS_BYTES } from './batch.ts'
import { type HeaderValue, readHeaderValue, writeHeaderValue } from './header-values.ts'
import { Reader } from './reader.ts'
import { Writer } from './writer.ts'

export interface UserHeader {
  readonly key: HeaderValue
  readonly value: HeaderValue
}

/** @returns the headers in their order; keys and values alias `headersView`. */
export function decodeUserHeaders(headersView: Uint8Array): readonly UserHeader[] {
  const reader = new Reader(headersView, 'user headers')
  const headers: UserHeader[] = []
  while (reader.remaining > 0) headers.push({ key: readHeaderValue(reader), value: readHeaderValue(reader) })
  return headers
}

/** @throws EDGE_HEADERS_TOO_LARGE above 100,000 bytes. */
export function encodeUserHeaders(headers: readonly UserHeader[]): Uint8Array {
  const writer = new Writer()
  for (const header of headers) {
    writeHeaderValue(writer, header.key)
    writeHeaderValue(writer, header.value)
  }
  if (writer.length > MAX_USER_HEADERS_BYTES) {
    const message = `user headers: expected at most ${MAX_USER_HEADERS_BYTES} bytes, found ${writer.length}`
    throw new EdgeError('EDGE_HEADERS_TOO_LARGE', message, { details: { sizeBytes: writer.length } })
  }
  return writer.toBytes()
}
