/**
 * Messages one by one, as HTTP, the SDK, devices and sync make and read them; the hot path never does. A `RecordBatch` is
 * what sends carry, a `StoredBatch` what polls give, in both dialects.
 */
import { EdgeError } from '../../errors.ts'
import { MAX_PAYLOAD_BYTES, MAX_USER_HEADERS_BYTES, type RecordBatch, type StoredBatch } from './batch.ts'
import { FAULT, faultError } from './kernel/faults.ts'
import { RecordCursor, RecordWriter } from './kernel/record-cursor.ts'

export interface OutgoingMessage {
  readonly payload: Uint8Array
  /** As `encodeUserHeaders` gives them; empty for none. */
  readonly userHeaders?: Uint8Array
  /** u128; 0 or absent: the server gives one (classic) or derives one (our log). VSR servers store 0 as it is. */
  readonly id?: bigint
  /** When it was made, µs since the Unix epoch. */
  readonly originUs: bigint
}

export interface PolledMessage {
  readonly offset: bigint
  /** u128. */
  readonly id: bigint
  readonly appendTimeUs: bigint
  readonly originUs: bigint
  /** Aliases the batch. */
  readonly payloadView: Uint8Array
  /** Aliases the batch; see `decodeUserHeaders`. */
  readonly userHeadersView: Uint8Array
}

/** Most bytes a record takes beside payload and user headers: two varints of 10, an id, a varint of 3. */
const RECORD_HEAD_BYTES = 39
const NO_HEADERS = new Uint8Array(0)
const MASK_32 = 0xffff_ffffn

/**
 * @returns a batch that owns its bytes.
 * @throws EDGE_BATCH_EMPTY, EDGE_MESSAGE_TOO_LARGE (payload above 64,000,000 bytes), EDGE_HEADERS_TOO_LARGE.
 */
export function encodeRecords(messages: readonly OutgoingMessage[]): RecordBatch {
  const [first] = messages
  if (first === undefined) throw new EdgeError('EDGE_BATCH_EMPTY', 'batch: expected at least 1 message, found 0')
  const target = new Uint8Array(messages.reduce((size, message) => size + boundOf(message), 0))
  const writer = new RecordWriter(target)
  const id = new Uint8Array(16)
  const idView = new DataView(id.buffer)
  for (const message of messages) {
    const headers = message.userHeaders ?? NO_HEADERS
    const messageId = message.id ?? 0n
    idView.setBigUint64(0, BigInt.asUintN(64, messageId), true)
    idView.setBigUint64(8, BigInt.asUintN(64, messageId >> 64n), true)
    const originLow = Number(message.originUs & MASK_32)
    const originHigh = Number(message.originUs >> 32n)
    const { payload } = message
    writer.head(originLow, originHigh, id, messageId === 0n ? -1 : 0, headers.length, payload.length)
    target.set(payload, writer.at)
    target.set(headers, writer.at + payload.length)
    writer.at += payload.length + headers.length
  }
  return { count: messages.length, baseOriginUs: first.originUs, recordsView: target.subarray(0, writer.at) }
}

function boundOf({ payload, userHeaders }: OutgoingMessage): number {
  const headersSize = userHeaders?.length ?? 0
  if (payload.length > MAX_PAYLOAD_BYTES) {
    const message = `message: expected at most ${MAX_PAYLOAD_BYTES} payload bytes, found ${payload.length}`
    throw new EdgeError('EDGE_MESSAGE_TOO_LARGE', message, { details: { sizeBytes: payload.length } })
  }
  if (headersSize > MAX_USER_HEADERS_BYTES) {
    const message = `message: expected at most ${MAX_USER_HEADERS_BYTES} bytes of user headers, found ${headersSize}`
    throw new EdgeError('EDGE_HEADERS_TOO_LARGE', message, { details: { sizeBytes: headersSize } })
  }
  return RECORD_HEAD_BYTES + payload.length + headersSize
}

/** @returns the messages that were asked for, in order. @throws EDGE_BATCH_CORRUPT when a record lies outside the batch. */
export function decodeRecords(batch: StoredBatch): PolledMessage[] {
  const messages: PolledMessage[] = []
  const { recordsView, skip, take, appendTimeUs } = batch
  const cursor = new RecordCursor(recordsView, batch.baseOriginUs)
  const view = new DataView(recordsView.buffer, recordsView.byteOffset, recordsView.length)
  const seed = batch.idSeed << 64n
  for (let i = 0; i < skip + take; i++) {
    if (!cursor.next()) throw faultError(FAULT.record, i, batch.count)
    if (i < skip) continue
    const offset = batch.baseOffset + BigInt(i)
    const { idAt, bodyAt, payloadSize, headersSize, originUs } = cursor
    const id = idAt < 0 ? seed | offset : (view.getBigUint64(idAt + 8, true) << 64n) | view.getBigUint64(idAt, true)
    messages.push({
      offset,
      id,
      appendTimeUs,
      originUs,
      payloadView: recordsView.subarray(bodyAt, bodyAt + payloadSize),
      userHeadersView: recordsView.subarray(bodyAt + payloadSize, bodyAt + payloadSize + headersSize),
    })
  }
  return messages
}
