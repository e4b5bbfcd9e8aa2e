/** Messages out of JSON: ids, payloads, user headers, partitioning. Pure. */
import { EdgeError } from '../../errors.ts'
import { MAX_USER_HEADERS_BYTES } from '../../sdk/wire/batch.ts'
import { type HeaderKind, headerKindCode } from '../../sdk/wire/header-values.ts'
import type { Partitioning } from '../../sdk/wire/primitives.ts'
import { Writer } from '../../sdk/wire/writer.ts'
import { wrongShape } from './rejection.ts'
import { base64, base64AnyPadding, decodeBase64, list, object, oneOf, optional, type Shape } from './shape.ts'

export interface JsonMessage {
  /** 0: none was given. */
  readonly id: bigint
  readonly payloadBytes: Uint8Array
  /** A raw block; empty for none. */
  readonly headersBytes: Uint8Array
}

const U64_MAX = 2n ** 64n - 1n
const U128_MAX = 2n ** 128n - 1n
const NO_BYTES = new Uint8Array(0)
const MAX_KEY_BYTES = 255
/** Messages of one request: until they are packed each takes some 350 bytes of the heap, whatever its payload. */
const MAX_MESSAGES = 16_384

const HEADER_KINDS = [
  ...['raw', 'string', 'bool', 'int8', 'int16', 'int32', 'int64', 'int128'],
  ...['uint8', 'uint16', 'uint32', 'uint64', 'uint128', 'float32', 'float64'],
] as readonly HeaderKind[]

/** A number of 64 bits, or text: decimal digits win, then 32 hex digits with or without dashes. Null is absent. */
const messageId: Shape<bigint> = (found, path) => {
  if (typeof found === 'number' || typeof found === 'bigint') {
    const isWhole = typeof found === 'bigint' || Number.isSafeInteger(found)
    if (isWhole && BigInt(found) >= 0n && BigInt(found) <= U64_MAX) return BigInt(found)
    throw wrongShape(path, 'Invalid message ID: ID must be a positive integer')
  }
  if (typeof found !== 'string') throw wrongShape(path, 'Invalid message ID: ID must be a number or string')
  if (/^\d{1,39}$/.test(found) && BigInt(found) <= U128_MAX) return BigInt(found)
  const hex = found.replaceAll('-', '')
  if (/^[0-9a-fA-F]{32}$/.test(hex)) return BigInt(`0x${hex}`)
  throw wrongShape(path, `Invalid message ID: Invalid ID string: '${found.slice(0, 64)}'`)
}

const payload: Shape<Uint8Array> = (found, path) => {
  if (found === null) throw wrongShape('', 'missing field `payload`')
  const bytes = typeof found === 'string' ? decodeBase64(found) : undefined
  if (bytes === undefined) throw wrongShape(path, 'Invalid base64 payload')
  if (bytes.length === 0) throw wrongShape(path, 'Failed to create message: Invalid message payload length')
  return bytes
}

const headerSide = object({ kind: oneOf(...HEADER_KINDS), value: base64AnyPadding })
const headerList = list(object({ key: headerSide, value: headerSide }))

/** Header objects, or the raw block as base64. Iggy's servers judge neither lengths nor a raw block, so nor do we. */
const userHeaders: Shape<Uint8Array> = (found, path) => {
  const block = typeof found === 'string' ? base64(found, path) : encodeHeaders(headerList(found, path))
  if (block.length <= MAX_USER_HEADERS_BYTES) return block
  const expected = `expected at most ${MAX_USER_HEADERS_BYTES} bytes, found ${block.length}`
  throw new EdgeError('EDGE_HEADERS_TOO_LARGE', `user headers: ${expected}`)
}

type HeaderSide = ReturnType<typeof headerSide>

/** Sorted by key, as Iggy stores them; of equal keys the last one counts. */
function encodeHeaders(headers: ReturnType<typeof headerList>): Uint8Array {
  const byKey = new Map(headers.map((header) => [sortKey(header.key), header]))
  const writer = new Writer()
  for (const [, { key, value }] of [...byKey].sort(([a], [b]) => (a < b ? -1 : 1))) {
    writeSide(writer, key)
    writeSide(writer, value)
  }
  return writer.toBytes()
}

function writeSide(writer: Writer, { kind, value }: HeaderSide): void {
  writer.u8(headerKindCode(kind))
  writer.longBytes(value)
}

/** Orders by kind, then by bytes. */
function sortKey({ kind, value }: HeaderSide): string {
  return (
    String.fromCharCode(headerKindCode(kind)) +
    Buffer.from(value.buffer, value.byteOffset, value.length).toString('latin1')
  )
}

const messageFields = object({ id: optional(messageId), payload, user_headers: optional(userHeaders) })

const message: Shape<JsonMessage> = (found, path) => {
  const { id, payload: payloadBytes, user_headers: headersBytes } = messageFields(found, path)
  return { id: id ?? 0n, payloadBytes, headersBytes: headersBytes ?? NO_BYTES }
}

/** `message_key` is what guides call `messages_key`. */
const partitioningFields = object({
  kind: oneOf('balanced', 'partition_id', 'messages_key', 'message_key'),
  value: base64AnyPadding,
})

const partitioning: Shape<Partitioning> = (found, path) => {
  const { kind, value } = partitioningFields(found, path)
  if (kind === 'balanced') return { kind }
  if (value.length === 0 || value.length > MAX_KEY_BYTES) {
    const expected = `expected 1..${MAX_KEY_BYTES} bytes, found ${value.length}`
    throw new EdgeError('EDGE_KEY_LENGTH_INVALID', `partitioning: ${expected}`)
  }
  if (kind !== 'partition_id') return { kind: 'key', keyView: value }
  if (value.length !== 4)
    throw new EdgeError('EDGE_COMMAND_MALFORMED', `partition id: expected 4 bytes, found ${value.length}`)
  return { kind: 'partition', partitionId: new DataView(value.buffer, value.byteOffset).getUint32(0, true) }
}

export interface SendBody {
  readonly partitioning: Partitioning
  readonly messages: readonly JsonMessage[]
}

/** The one body in which an unknown field is an error, as in Iggy. */
export const sendBody: Shape<SendBody> = object(
  { partitioning, messages: list(message, MAX_MESSAGES) },
  { isClosed: true },
)
