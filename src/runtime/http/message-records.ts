/** Between messages of HTTP and records of the log. */
import { EdgeError } from '../../errors.ts'
import type { RecordBatch, StoredBatch } from '../../sdk/wire/batch.ts'
import { RecordWriter } from '../../sdk/wire/kernel/record-cursor.ts'
import { decodeUserHeaders, type UserHeader } from '../../sdk/wire/user-headers.ts'
import type { PollResult } from '../broker/api.ts'
import { exact, type JsonObject, type JsonValue } from './json.ts'
import type { JsonMessage } from './message-shapes.ts'
import { eachRecord } from './stored-records.ts'

/** What one record takes beside id, payload and headers: three varints of at most ten bytes. */
const MAX_RECORD_HEAD_BYTES = 30
const ID_BYTES = 16
const U32 = 2 ** 32

/** @param originUs when the request came: over HTTP a client cannot say when its messages were made. */
export function packMessages(messages: readonly JsonMessage[], originUs: bigint): RecordBatch {
  const room = messages.reduce(
    (total, { payloadBytes, headersBytes }) =>
      total + MAX_RECORD_HEAD_BYTES + ID_BYTES + payloadBytes.length + headersBytes.length,
    0,
  )
  const target = new Uint8Array(room)
  const writer = new RecordWriter(target)
  const idBytes = new Uint8Array(ID_BYTES)
  const [low, high] = [Number(originUs % BigInt(U32)), Number(originUs / BigInt(U32))]
  for (const { id, payloadBytes, headersBytes } of messages) {
    if (id !== 0n) putId(idBytes, id)
    writer.head(low, high, idBytes, id === 0n ? -1 : 0, headersBytes.length, payloadBytes.length)
    target.set(payloadBytes, writer.at)
    target.set(headersBytes, writer.at + payloadBytes.length)
    writer.at += payloadBytes.length + headersBytes.length
  }
  return { count: messages.length, baseOriginUs: originUs, recordsView: target.subarray(0, writer.at) }
}

function putId(target: Uint8Array, id: bigint): void {
  const view = new DataView(target.buffer)
  view.setBigUint64(0, id & 0xffff_ffff_ffff_ffffn, true)
  view.setBigUint64(8, id >> 64n, true)
}

/** Must be called in the turn that brought `polled`: its views do not live longer. */
export function viewPoll(polled: PollResult): JsonObject {
  return {
    partition_id: polled.partitionId,
    current_offset: exact(polled.currentOffset),
    count: polled.messageCount,
    messages: polled.batches.flatMap(viewBatch),
  }
}

function viewBatch(batch: StoredBatch): JsonObject[] {
  const messages: JsonObject[] = []
  eachRecord(batch, (message) => {
    messages.push({
      header: {
        checksum: exact(message.checksum),
        id: exact(message.id),
        offset: exact(message.offset),
        timestamp: exact(message.timestampUs),
        origin_timestamp: exact(message.originUs),
        user_headers_length: message.headersView.length,
        payload_length: message.payloadView.length,
        reserved: 0,
      },
      payload: toBase64(message.payloadView),
      user_headers: viewHeaders(message.headersView),
    })
  })
  return messages
}

/** A block that is no list of headers is shown as it is. */
function viewHeaders(headersView: Uint8Array): JsonValue {
  if (headersView.length === 0) return []
  try {
    return decodeUserHeaders(headersView).map(viewHeader)
  } catch (error) {
    if (error instanceof EdgeError) return toBase64(headersView)
    throw error
  }
}

function viewHeader({ key, value }: UserHeader): JsonObject {
  return {
    key: { kind: key.kind, value: toBase64(key.bytes) },
    value: { kind: value.kind, value: toBase64(value.bytes) },
  }
}

function toBase64(view: Uint8Array): string {
  return Buffer.from(view.buffer, view.byteOffset, view.length).toString('base64')
}
