/**
 * What each of our errors looks like to a client: Iggy's number in each protocol generation, and the HTTP status.
 *
 * Numbers are those the real servers give in the same situation; where they drop a request in silence, the nearest one.
 * Classic has no 58 ("not accepted, try again"): 4010 stands in. Never 8, 9, 30, 31, 61 or 304 for a request's own
 * trouble: clients reconnect and repeat on those. A code without a row here does not compile.
 */
import type { EdgeError, ErrorCode } from '../../errors.ts'

export interface ErrorFace {
  readonly classic: number
  readonly vsr: number
  readonly http: number
}

const face = (classic: number, http: number, vsr = classic): ErrorFace => ({ classic, vsr, http })

export const ERROR_MAP = {
  EDGE_CONFIG_INVALID: face(2, 500),
  EDGE_FEATURE_MISSING: face(5, 500),
  EDGE_CERTIFICATE_UNUSABLE: face(2, 500),
  EDGE_ADDRESS_IN_USE: face(2, 500),
  EDGE_STORE_NEWER: face(2, 500),
  EDGE_STORE_IN_USE: face(2, 500),
  EDGE_STORE_MISSING: face(2, 500),
  EDGE_KEY_WRONG: face(70, 500),

  EDGE_FRAME_INVALID: face(3, 400),
  EDGE_FRAME_TOO_LARGE: face(3, 413),
  EDGE_COMMAND_UNKNOWN: face(3, 404),
  EDGE_COMMAND_MALFORMED: face(3, 400),
  EDGE_FORMAT_INVALID: face(4, 400, 3),
  EDGE_VERSION_UNSUPPORTED: face(7, 400, 14003),
  EDGE_FEATURE_UNAVAILABLE: face(5, 400),
  EDGE_HELLO_TIMEOUT: face(3, 408),
  EDGE_IDLE: face(3, 408),
  EDGE_SEQUENCE_GAP: face(3, 400),

  EDGE_UNAUTHENTICATED: face(40, 401),
  EDGE_FORBIDDEN: face(41, 403),
  EDGE_CREDENTIALS_INVALID: face(42, 400),
  EDGE_TOKEN_MISSING: face(77, 401),
  EDGE_TOKEN_INVALID: face(20, 401, 53),
  EDGE_TOKEN_EXPIRED: face(54, 401),
  EDGE_USER_INACTIVE: face(47, 400),
  EDGE_SESSION_SUPERSEDED: face(40, 401),
  EDGE_SESSION_STALE: face(30, 401),
  EDGE_NAME_IN_USE: face(46, 409),

  EDGE_STREAM_NOT_FOUND: face(1009, 404),
  EDGE_TOPIC_NOT_FOUND: face(2010, 404),
  EDGE_PARTITION_NOT_FOUND: face(3007, 404),
  EDGE_GROUP_NOT_FOUND: face(5000, 404),
  EDGE_MEMBER_NOT_FOUND: face(5006, 404),
  EDGE_OFFSET_NOT_FOUND: face(3021, 404),
  EDGE_OFFSET_GONE: face(4100, 404),
  EDGE_USER_NOT_FOUND: face(20, 404),
  EDGE_TOKEN_NOT_FOUND: face(20, 404),
  EDGE_CLIENT_NOT_FOUND: face(101, 404),
  EDGE_DEVICE_NOT_FOUND: face(20, 404),

  EDGE_STREAM_NAME_TAKEN: face(1012, 400),
  EDGE_TOPIC_NAME_TAKEN: face(2013, 400),
  EDGE_GROUP_NAME_TAKEN: face(5004, 400),
  EDGE_USER_NAME_TAKEN: face(46, 400),
  EDGE_TOKEN_NAME_TAKEN: face(51, 400),
  EDGE_NAME_INVALID: face(4, 400, 3),
  EDGE_USERNAME_INVALID: face(43, 400),
  EDGE_PASSWORD_INVALID: face(44, 400),
  EDGE_USER_STATUS_INVALID: face(3, 400),
  EDGE_TOKEN_NAME_INVALID: face(50, 400),
  EDGE_ROOT_PROTECTED: face(48, 400),
  EDGE_ROOT_PERMISSIONS_PROTECTED: face(49, 400),
  EDGE_IDENTIFIER_INVALID: face(6, 400),
  EDGE_PARTITION_COUNT_INVALID: face(2019, 400),
  EDGE_TOO_MANY_PARTITIONS: face(2015, 400),
  EDGE_TOPIC_SIZE_INVALID: face(1019, 400),
  EDGE_OPTION_UNKNOWN: face(4041, 400),
  EDGE_OPTION_INVALID: face(4042, 400),
  EDGE_OPTIONS_TOO_LARGE: face(4043, 400),
  EDGE_BATCH_EMPTY: face(4009, 400),
  EDGE_BATCH_INVALID: face(4036, 400),
  EDGE_BATCH_INDEX_MISSING: face(4033, 400, 3),
  EDGE_BATCH_OFFSET_NONZERO: face(4031, 400),
  EDGE_BATCH_TIMESTAMP_NONZERO: face(4032, 400),
  EDGE_BATCH_POSITION_INVALID: face(10011, 400),
  EDGE_BATCH_SIZE_INVALID: face(4036, 400, 3),
  EDGE_BATCH_CHECKSUM_INVALID: face(4039, 400),
  EDGE_MESSAGE_TOO_LARGE: face(4022, 400),
  EDGE_HEADERS_TOO_LARGE: face(4017, 400),
  EDGE_KEY_LENGTH_INVALID: face(4028, 400),
  EDGE_CHECKSUM_INVALID: face(4027, 400),
  EDGE_OFFSET_INVALID: face(4100, 400),
  EDGE_PARTITION_NOT_OWNED: face(3022, 400, 20),
  EDGE_DEVICE_ACTIVE: face(4, 400),
  EDGE_READING_INVALID: face(4, 400),

  EDGE_BACKPRESSURE: face(4010, 503, 58),
  EDGE_TOPIC_FULL: face(3009, 400),
  EDGE_LIMIT_REACHED: face(4010, 503, 58),
  EDGE_TOO_MANY_USERS: face(55, 400),
  EDGE_TOO_MANY_TOKENS: face(52, 400),
  EDGE_TOO_MANY_STREAMS: face(1020, 400),
  EDGE_TOO_MANY_TOPICS: face(2021, 400),
  EDGE_TOO_MANY_OFFSETS: face(3024, 400),
  EDGE_SHUTTING_DOWN: face(4010, 503, 58),

  EDGE_BATCH_CORRUPT: face(4039, 500),
  EDGE_DECRYPT_FAILED: face(72, 500),

  EDGE_APPEND_FAILED: face(4010, 503),
  EDGE_DISK_FULL: face(4010, 503),
  EDGE_IO: face(13000, 500),
  EDGE_INTERNAL: face(1, 500),

  // These stay within sync; a client that sees one met a fault of ours.
  EDGE_UPSTREAM_UNREACHABLE: face(1, 502),
  EDGE_UPSTREAM_TIMEOUT: face(1, 504),
  EDGE_UPSTREAM_REFUSED: face(1, 502),
  EDGE_CONNECTION_LOST: face(1, 502),
} as const satisfies Record<ErrorCode, ErrorFace>

/** @returns Iggy's number of the error in a protocol generation. */
export function iggyCodeFor(error: EdgeError, dialect: 'classic' | 'vsr'): number {
  return ERROR_MAP[error.code][dialect]
}
