/** What a record holds, as far as it is compared: of the local log, of a binary answer, of an HTTP answer. */
import { crc32 } from 'node:zlib'
import { unpackMessages } from '../../sdk/index.ts'
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import { ORIGIN_KEY_TEXT, originOf } from '../core/origin-header.ts'
import type { RecordContent } from '../core/record-content.ts'

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
  if (bytes === null) return null
  const key = new TextEncoder().encode(ORIGIN_KEY_TEXT).toBase64()
  const origin = Array.isArray(headers) ? headers.find((header) => header?.key?.value === key) : undefined
  const value = bytesOf(origin?.value?.value)
  return contentOf(bytes, value?.length === 8 ? new DataView(value.buffer).getBigUint64(0, true) : null)
}

function contentOf(payload: Uint8Array, originUs: bigint | null): RecordContent {
  return { payloadBytes: payload.length, payloadSum: crc32(payload), originUs }
}

function bytesOf(text: unknown): Uint8Array | null {
  try {
    return typeof text === 'string' ? Uint8Array.fromBase64(text) : null
  } catch {
    return null
  }
}
