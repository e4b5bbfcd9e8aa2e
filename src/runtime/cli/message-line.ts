/**
 * Messages as lines of JSON: what `dump` and `message poll --output-file` write and `message send --input-file` reads. Pure.
 *
 * `{"stream":"s","topic":"t","partition":0,"offset":12,"id":"..","timestamp_us":..,"origin_us":..,"headers":"","payload":""}`
 * Bytes are base64; `id` is decimal text, as it may have 39 digits. Only `payload` is needed to send a line again.
 */
import { EdgeError, messageOf } from '../../errors.ts'
import { parseJson } from '../../exact-json.ts'
import { stringifyExact } from '../http/json.ts'

export interface MessageLine {
  readonly stream: string
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  readonly id: bigint
  readonly timestampUs: bigint
  readonly originUs: bigint
  readonly headersBytes: Uint8Array
  readonly payload: Uint8Array
}

/** What a line gives back for sending. */
export interface ReadLine {
  readonly payload: Uint8Array
  readonly headersBytes: Uint8Array
  readonly id: bigint
  readonly originUs: bigint | null
}

export function formatMessageLine(message: MessageLine): string {
  return stringifyExact({
    stream: message.stream,
    topic: message.topic,
    partition: message.partition,
    offset: message.offset,
    id: String(message.id),
    timestamp_us: message.timestampUs,
    origin_us: message.originUs,
    headers: Buffer.from(message.headersBytes).toString('base64'),
    payload: Buffer.from(message.payload).toString('base64'),
  })
}

/** @throws {EdgeError} EDGE_READING_INVALID with the number of the line, from 1. */
export function parseMessageLine(line: string, number: number): ReadLine {
  try {
    const found = parseJson(line) as Partial<Record<string, unknown>>
    const { payload, headers = '', id = '0', origin_us: originUs = null } = found
    if (typeof payload !== 'string' || typeof headers !== 'string') throw new Error('payload is missing')
    return {
      payload: Uint8Array.fromBase64(payload),
      headersBytes: Uint8Array.fromBase64(headers),
      id: BigInt(String(id)),
      originUs: originUs === null ? null : BigInt(String(originUs)),
    }
  } catch (cause) {
    const reason = messageOf(cause)
    throw new EdgeError('EDGE_READING_INVALID', `line ${number}: expected a message as JSON, found ${reason}`, {
      cause,
    })
  }
}
