/** Turns errors into replies: Iggy's JSON with its number, name and field, or the plain sentence of a rejection. Pure. */
import { type EdgeError, ERROR_TABLE } from '../../errors.ts'
import { IGGY_ERROR_NAMES } from '../../sdk/wire/error-codes.ts'
import { ERROR_MAP, iggyCodeFor } from '../server/error-map.ts'
import { json, plain, type Reply } from './http-types.ts'
import { rejectionStatus } from './rejection.ts'

/** The form field a number is about, as web pages show the reason beside it. */
const FIELDS: Readonly<Record<number, string>> = {
  46: 'username',
  51: 'name',
  100: 'client_id',
  1009: 'stream_id',
  1012: 'name',
  1013: 'name',
  1014: 'stream_id',
  2010: 'topic_id',
  2013: 'name',
  2014: 'name',
  2016: 'topic_id',
  3007: 'partition_id',
  4000: 'segment_id',
  4100: 'offset',
  5002: 'consumer_group_id',
  5004: 'name',
}
/** A wrong name has a number by what it was to name. */
const NAME_CODES: Readonly<Record<string, number>> = { stream: 1013, topic: 2014, group: 5005 }
const RETRY_AFTER_SECONDS = '1'

export function errorReply(error: EdgeError): Reply {
  const rejected = rejectionStatus(error)
  if (rejected !== undefined) {
    const reply = plain(error.message, rejected)
    return rejected === 503 ? withRetry(reply) : reply
  }
  const iggyCode = NAME_CODES[String(error.details.owner)] ?? iggyCodeFor(error, 'vsr')
  const httpStatus = ERROR_MAP[error.code].http
  const names: Readonly<Record<number, string>> = IGGY_ERROR_NAMES
  // What went wrong inside is for the log, not for a peer.
  const reason = error.code === 'EDGE_INTERNAL' ? 'Internal error' : error.message
  const reply = json(
    { id: iggyCode, code: names[iggyCode] ?? 'error', reason, field: FIELDS[iggyCode] ?? null },
    httpStatus,
  )
  return httpStatus === 503 && ERROR_TABLE[error.code].isRetryable ? withRetry(reply) : reply
}

function withRetry(reply: Reply): Reply {
  return { ...reply, headers: { ...reply.headers, 'retry-after': RETRY_AFTER_SECONDS } }
}
