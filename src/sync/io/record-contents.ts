/** What a record holds, as far as it is compared: of the local log, of a binary answer, of an HTTP answer. */
import { crc32 } from 'node:zlib'
import { unpackMessages } from '../../sdk/index.ts'
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import { ORIGIN_KEY, originIn, originOf } from '../core/origin-header.ts'
import type { RecordContent } from '../core/record-content.ts'

const ORIGIN_KEY_BASE64 = ORIGIN_KEY.bytes.toBase64()

/** @returns null when there is no such record in the batches. */
export function contentInBatches(batches: readonly StoredBatch[], offset: bigint): RecordContent | null {
  for (const batch of batches) {
    const index = Number(offset - batch.baseOffset)
    if (index < batch.skip || index >= batch.skip + batch.take) continue
    const [message] = unpackMessages({ ...batch, skip: index, take: 1 })
    if (message === undefined) return null
    return contentOf(message.payload, originOf(message.headersBytes) ?? message.originUs)
  }
  return null
}

/** A message of Iggy's REST API. */
export interface JsonMessage {
  readonly payload?: unknown
  readonly user_headers?: unknown
}

/** @returns null for a payload that is no base64. */
export function contentOfJson({ payload, user_headers: headers }: JsonMessage): RecordContent | null {
  const bytes = bytesOf(payload)
  if (bytes === undefined) return null
  const origin = Array.isArray(headers) ? headers.find((header) => header?.key?.value === ORIGIN_KEY_BASE64) : undefined
  return contentOf(bytes, originIn(bytesOf(origin?.value?.value)))
}

function contentOf(payload: Uint8Array, originUs: bigint | null): RecordContent {
  return { payloadBytes: payload.length, payloadSum: crc32(payload), originUs }
}

function bytesOf(text: unknown): Uint8Array | undefined {
  try {
    return typeof text === 'string' ? Uint8Array.fromBase64(text) : undefined
  } catch {
    return undefined
  }
}
