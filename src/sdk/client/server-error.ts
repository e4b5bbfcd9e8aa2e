/** What a server's error number means here. Numbers are Iggy's; one that is not listed is a plain refusal. Pure. */
import { EdgeError, type ErrorCode } from '../../errors.ts'
import { EVICTION_ERRORS, type EvictionReason } from '../wire/codes.ts'
import { iggyErrorName } from '../wire/error-codes.ts'
import type { VsrEviction } from '../wire/vsr/frame.ts'

const CODES: Readonly<Record<number, ErrorCode>> = {
  3: 'EDGE_COMMAND_UNKNOWN',
  4: 'EDGE_FORMAT_INVALID',
  5: 'EDGE_FEATURE_UNAVAILABLE',
  6: 'EDGE_IDENTIFIER_INVALID',
  8: 'EDGE_SHUTTING_DOWN',
  30: 'EDGE_SESSION_STALE',
  40: 'EDGE_UNAUTHENTICATED',
  41: 'EDGE_FORBIDDEN',
  42: 'EDGE_CREDENTIALS_INVALID',
  43: 'EDGE_USERNAME_INVALID',
  44: 'EDGE_PASSWORD_INVALID',
  45: 'EDGE_USER_STATUS_INVALID',
  46: 'EDGE_USER_NAME_TAKEN',
  47: 'EDGE_USER_INACTIVE',
  48: 'EDGE_ROOT_PROTECTED',
  49: 'EDGE_ROOT_PERMISSIONS_PROTECTED',
  50: 'EDGE_TOKEN_NAME_INVALID',
  51: 'EDGE_TOKEN_NAME_TAKEN',
  52: 'EDGE_TOO_MANY_TOKENS',
  53: 'EDGE_TOKEN_INVALID',
  54: 'EDGE_TOKEN_EXPIRED',
  55: 'EDGE_TOO_MANY_USERS',
  57: 'EDGE_BACKPRESSURE',
  58: 'EDGE_BACKPRESSURE',
  100: 'EDGE_CLIENT_NOT_FOUND',
  1009: 'EDGE_STREAM_NOT_FOUND',
  1010: 'EDGE_STREAM_NOT_FOUND',
  1012: 'EDGE_STREAM_NAME_TAKEN',
  1013: 'EDGE_NAME_INVALID',
  1019: 'EDGE_TOPIC_SIZE_INVALID',
  1020: 'EDGE_TOO_MANY_STREAMS',
  2010: 'EDGE_TOPIC_NOT_FOUND',
  2011: 'EDGE_TOPIC_NOT_FOUND',
  2013: 'EDGE_TOPIC_NAME_TAKEN',
  2014: 'EDGE_NAME_INVALID',
  2015: 'EDGE_TOO_MANY_PARTITIONS',
  2019: 'EDGE_PARTITION_COUNT_INVALID',
  2021: 'EDGE_TOO_MANY_TOPICS',
  3007: 'EDGE_PARTITION_NOT_FOUND',
  3008: 'EDGE_PARTITION_NOT_FOUND',
  3009: 'EDGE_TOPIC_FULL',
  3021: 'EDGE_OFFSET_NOT_FOUND',
  3022: 'EDGE_PARTITION_NOT_OWNED',
  3024: 'EDGE_TOO_MANY_OFFSETS',
  4009: 'EDGE_BATCH_EMPTY',
  4010: 'EDGE_APPEND_FAILED',
  4017: 'EDGE_HEADERS_TOO_LARGE',
  4022: 'EDGE_MESSAGE_TOO_LARGE',
  4027: 'EDGE_CHECKSUM_INVALID',
  4028: 'EDGE_KEY_LENGTH_INVALID',
  4039: 'EDGE_BATCH_CORRUPT',
  4041: 'EDGE_OPTION_UNKNOWN',
  4042: 'EDGE_OPTION_INVALID',
  4043: 'EDGE_OPTIONS_TOO_LARGE',
  4100: 'EDGE_OFFSET_INVALID',
  5000: 'EDGE_GROUP_NOT_FOUND',
  5003: 'EDGE_GROUP_NOT_FOUND',
  5004: 'EDGE_GROUP_NAME_TAKEN',
  5006: 'EDGE_MEMBER_NOT_FOUND',
  5009: 'EDGE_PARTITION_NOT_OWNED',
  14003: 'EDGE_VERSION_UNSUPPORTED',
}

/** @returns an error with the number in `details.iggyCode`, and `what` was asked for in `details.asked`. */
export function errorOfStatus(status: number, what: string): EdgeError {
  const code = CODES[status] ?? 'EDGE_UPSTREAM_REFUSED'
  return new EdgeError(code, `${what}: the server answers ${status} (${iggyErrorName(status)})`, {
    details: { iggyCode: status, asked: what },
  })
}

/** @returns the error that ends a session; details hold the reason and the protocol versions the server accepts. */
export function errorOfEviction(eviction: VsrEviction): EdgeError {
  const status = EVICTION_ERRORS[eviction.reason as EvictionReason] ?? 40
  const code = CODES[status] ?? 'EDGE_UPSTREAM_REFUSED'
  const { reason, oldestVersion, newestVersion } = eviction
  const details = { iggyCode: status, evictionReason: reason, oldestVersion, newestVersion }
  const message = `the server has ended the session: ${status} (${iggyErrorName(status)})`
  return new EdgeError(code, message, { details })
}

/** @returns the Iggy number an error came with, or undefined. */
export function iggyCodeOf(error: unknown): number | undefined {
  if (!(error instanceof EdgeError)) return undefined
  const { iggyCode } = error.details
  return typeof iggyCode === 'number' ? iggyCode : undefined
}
