/**
 * Messages as programs see them, to and from the compact records of the wire. Pure.
 */
import { EdgeError } from '../../errors.ts'
import { MAX_PAYLOAD_BYTES, MAX_USER_HEADERS_BYTES, type RecordBatch, type StoredBatch } from '../wire/batch.ts'
import type { HeaderValue } from '../wire/header-values.ts'
import { RecordCursor, RecordWriter } from '../wire/kernel/record-cursor.ts'
import { decodeUserHeaders, encodeUserHeaders, type UserHeader } from '../wire/user-headers.ts'

/** A message to send. */
export interface OutgoingMessage {
  readonly payload: Uint8Array
  /** u128; absent or 0n: the server (classic) or this client (VSR) chooses a random one. */
  readonly id?: bigint
  readonly headers?: readonly UserHeader[]
  /** When it came about, µs since the Unix epoch; absent: now. */
  readonly originUs?: bigint
}

/** A message as it was polled; its bytes are the caller's own. */
export interface PolledMessage {
  readonly offset: bigint
  readonly id: bigint
  /** When the server took it, µs since the Unix epoch. */
  readonly timestampUs: bigint
  readonly originUs: bigint
  readonly payload: Uint8Array
  /** Encoded user headers; `decodeHeaders` reads them. */
  readonly headersBytes: Uint8Array
}

export type { HeaderValue, UserHeader }

const NO_BYTES = new Uint8Array(0)
/** What a record takes beside id, payload and headers, at most. */
const RECORD_OVERHEAD_BYTES = 40
const ID_BYTES = 16

/**
 * @param nowUs origin time of messages that name none.
 * @param newId makes an id for messages that have none; absent: they stay without.
 * @throws {EdgeError} EDGE_BATCH_EMPTY, EDGE_MESSAGE_TOO_LARGE, EDGE_HEADERS_TOO_LARGE.
 */
export function packMessages(
  messages: readonly OutgoingMessage[],
  nowUs: bigint,
  newId: (() => bigint) | null,
): RecordBatch {
  const first = messages[0]
  if (first === undefined) throw new EdgeError('EDGE_BATCH_EMPTY', 'messages to send: expected at least 1, found 0')
  const headers = messages.map((message) => encodedHeaders(message))
  const sizeBytes = messages.reduce((sum, message, index) => {
    return sum + RECORD_OVERHEAD_BYTES + checkedSize(message) + (headers[index]?.length ?? 0)
  }, 0)
  const target = new Uint8Array(sizeBytes)
  const writer = new RecordWriter(target)
  const idBytes = new Uint8Array(ID_BYTES)
  const idView = new DataView(idBytes.buffer)
  messages.forEach((message, index) => {
    const originUs = message.originUs ?? nowUs
    const id = message.id || newId?.() || 0n
    idView.setBigUint64(0, BigInt.asUintN(64, id), true)
    idView.setBigUint64(8, BigInt.asUintN(64, id >> 64n), true)
    const headersBytes = headers[index] ?? NO_BYTES
    const low = Number(originUs & 0xffff_ffffn)
    const high = Number(originUs >> 32n)
    writer.head(low, high, idBytes, id === 0n ? -1 : 0, headersBytes.length, message.payload.length)
    target.set(message.payload, writer.at)
    target.set(headersBytes, writer.at + message.payload.length)
    writer.at += message.payload.length + headersBytes.length
  })
  return {
    count: messages.length,
    baseOriginUs: first.originUs ?? nowUs,
    recordsView: target.subarray(0, writer.at),
  }
}

/**
 * For who sends messages of several callers together: one that cannot be sent is its own caller's affair.
 *
 * @throws {EdgeError} EDGE_MESSAGE_TOO_LARGE, EDGE_HEADERS_TOO_LARGE, EDGE_FORMAT_INVALID for an empty or too long header.
 */
export function refuseUnsendable(message: OutgoingMessage): void {
  checkedSize(message)
  encodedHeaders(message)
}

/** @returns the messages of a polled batch, with bytes of their own. @throws {EdgeError} EDGE_BATCH_CORRUPT. */
export function unpackMessages(batch: StoredBatch): PolledMessage[] {
  const cursor = new RecordCursor(batch.recordsView, batch.baseOriginUs)
  const messages: PolledMessage[] = []
  for (let index = 0; index < batch.skip + batch.take; index++) {
    if (!cursor.next()) {
      throw new EdgeError('EDGE_BATCH_CORRUPT', `record ${index} of batch ${batch.baseOffset} does not lie within it`)
    }
    if (index < batch.skip) continue
    const offset = batch.baseOffset + BigInt(index)
    const headersAt = cursor.bodyAt + cursor.payloadSize
    messages.push({
      offset,
      id: cursor.idAt < 0 ? (batch.idSeed << 64n) | offset : idAt(batch.recordsView, cursor.idAt),
      timestampUs: batch.appendTimeUs,
      originUs: cursor.originUs,
      payload: batch.recordsView.slice(cursor.bodyAt, headersAt),
      headersBytes: batch.recordsView.slice(headersAt, headersAt + cursor.headersSize),
    })
  }
  return messages
}

/** @returns the user headers of a polled message, in their order. */
export function decodeHeaders(message: PolledMessage): readonly UserHeader[] {
  return decodeUserHeaders(message.headersBytes)
}

function encodedHeaders(message: OutgoingMessage): Uint8Array {
  return message.headers === undefined || message.headers.length === 0 ? NO_BYTES : encodeUserHeaders(message.headers)
}

function checkedSize(message: OutgoingMessage): number {
  const sizeBytes = message.payload.length
  if (sizeBytes <= MAX_PAYLOAD_BYTES) return sizeBytes
  throw new EdgeError(
    'EDGE_MESSAGE_TOO_LARGE',
    `payload: expected at most ${MAX_PAYLOAD_BYTES} bytes, found ${sizeBytes}`,
  )
}

function idAt(bytes: Uint8Array, at: number): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, ID_BYTES)
  return (view.getBigUint64(8, true) << 64n) | view.getBigUint64(0, true)
}

export { MAX_PAYLOAD_BYTES, MAX_USER_HEADERS_BYTES }
