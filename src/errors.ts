/**
 * The one error class and the table of everything that can go wrong.
 *
 * Every code is declared here once: its kind says who acts, `isRetryable` whether the same request may succeed later.
 * How a code looks to an Iggy or HTTP client is decided at the border (`runtime/server/error-map.ts`), never here.
 */
import { AssertionFailure } from './assert.ts'

/** Who acts on an error, and with it what the process does. */
export type ErrorKind =
  | 'config' // the operator: all problems at once, exit 78; 75 where it may pass by itself
  | 'protocol' // the peer sent what no version of the protocol allows
  | 'auth' // the caller has no, or not enough, rights
  | 'not-found' // the caller named something that is not there
  | 'invalid' // the caller sent a value that cannot be taken
  | 'capacity' // the caller, later: nothing is wrong but the amount
  | 'corruption' // bytes on the disk are not what was written: the range is set aside
  | 'io' // the disk or the operating system refuses
  | 'upstream' // the central server; stays inside sync

interface ErrorTraits {
  readonly kind: ErrorKind
  readonly isRetryable: boolean
}

export const ERROR_TABLE = {
  EDGE_CONFIG_INVALID: { kind: 'config', isRetryable: false },
  EDGE_FEATURE_MISSING: { kind: 'config', isRetryable: false },
  EDGE_CERTIFICATE_UNUSABLE: { kind: 'config', isRetryable: true },
  EDGE_ADDRESS_IN_USE: { kind: 'config', isRetryable: true },
  EDGE_STORE_NEWER: { kind: 'config', isRetryable: false },
  EDGE_STORE_IN_USE: { kind: 'config', isRetryable: true },
  EDGE_STORE_MISSING: { kind: 'config', isRetryable: true },
  EDGE_KEY_WRONG: { kind: 'config', isRetryable: false },

  EDGE_FRAME_INVALID: { kind: 'protocol', isRetryable: false },
  EDGE_FRAME_TOO_LARGE: { kind: 'protocol', isRetryable: false },
  EDGE_COMMAND_UNKNOWN: { kind: 'protocol', isRetryable: false },
  EDGE_COMMAND_MALFORMED: { kind: 'protocol', isRetryable: false },
  EDGE_FORMAT_INVALID: { kind: 'protocol', isRetryable: false },
  EDGE_VERSION_UNSUPPORTED: { kind: 'protocol', isRetryable: false },
  EDGE_FEATURE_UNAVAILABLE: { kind: 'protocol', isRetryable: false },
  EDGE_HELLO_TIMEOUT: { kind: 'protocol', isRetryable: true },
  EDGE_IDLE: { kind: 'protocol', isRetryable: true },
  EDGE_SEQUENCE_GAP: { kind: 'protocol', isRetryable: true },

  EDGE_UNAUTHENTICATED: { kind: 'auth', isRetryable: false },
  EDGE_FORBIDDEN: { kind: 'auth', isRetryable: false },
  EDGE_CREDENTIALS_INVALID: { kind: 'auth', isRetryable: false },
  EDGE_TOKEN_MISSING: { kind: 'auth', isRetryable: false },
  EDGE_TOKEN_INVALID: { kind: 'auth', isRetryable: false },
  EDGE_TOKEN_EXPIRED: { kind: 'auth', isRetryable: false },
  EDGE_USER_INACTIVE: { kind: 'auth', isRetryable: false },
  EDGE_SESSION_SUPERSEDED: { kind: 'auth', isRetryable: false },
  EDGE_SESSION_STALE: { kind: 'auth', isRetryable: true },
  EDGE_NAME_IN_USE: { kind: 'auth', isRetryable: true },

  EDGE_STREAM_NOT_FOUND: { kind: 'not-found', isRetryable: false },
  EDGE_TOPIC_NOT_FOUND: { kind: 'not-found', isRetryable: false },
  EDGE_PARTITION_NOT_FOUND: { kind: 'not-found', isRetryable: false },
  EDGE_GROUP_NOT_FOUND: { kind: 'not-found', isRetryable: false },
  EDGE_MEMBER_NOT_FOUND: { kind: 'not-found', isRetryable: false },
  EDGE_OFFSET_NOT_FOUND: { kind: 'not-found', isRetryable: false },
  EDGE_OFFSET_GONE: { kind: 'not-found', isRetryable: false },
  EDGE_USER_NOT_FOUND: { kind: 'not-found', isRetryable: false },
  EDGE_TOKEN_NOT_FOUND: { kind: 'not-found', isRetryable: false },
  EDGE_CLIENT_NOT_FOUND: { kind: 'not-found', isRetryable: false },
  EDGE_DEVICE_NOT_FOUND: { kind: 'not-found', isRetryable: false },

  EDGE_STREAM_NAME_TAKEN: { kind: 'invalid', isRetryable: false },
  EDGE_TOPIC_NAME_TAKEN: { kind: 'invalid', isRetryable: false },
  EDGE_GROUP_NAME_TAKEN: { kind: 'invalid', isRetryable: false },
  EDGE_USER_NAME_TAKEN: { kind: 'invalid', isRetryable: false },
  EDGE_TOKEN_NAME_TAKEN: { kind: 'invalid', isRetryable: false },
  EDGE_NAME_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_USERNAME_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_PASSWORD_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_USER_STATUS_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_TOKEN_NAME_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_ROOT_PROTECTED: { kind: 'invalid', isRetryable: false },
  EDGE_ROOT_PERMISSIONS_PROTECTED: { kind: 'invalid', isRetryable: false },
  EDGE_IDENTIFIER_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_PARTITION_COUNT_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_TOO_MANY_PARTITIONS: { kind: 'invalid', isRetryable: false },
  EDGE_TOPIC_SIZE_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_OPTION_UNKNOWN: { kind: 'invalid', isRetryable: false },
  EDGE_OPTION_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_OPTIONS_TOO_LARGE: { kind: 'invalid', isRetryable: false },
  EDGE_BATCH_EMPTY: { kind: 'invalid', isRetryable: false },
  EDGE_BATCH_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_BATCH_INDEX_MISSING: { kind: 'invalid', isRetryable: false },
  EDGE_BATCH_OFFSET_NONZERO: { kind: 'invalid', isRetryable: false },
  EDGE_BATCH_TIMESTAMP_NONZERO: { kind: 'invalid', isRetryable: false },
  EDGE_BATCH_POSITION_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_BATCH_SIZE_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_BATCH_CHECKSUM_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_MESSAGE_TOO_LARGE: { kind: 'invalid', isRetryable: false },
  EDGE_HEADERS_TOO_LARGE: { kind: 'invalid', isRetryable: false },
  EDGE_KEY_LENGTH_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_CHECKSUM_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_OFFSET_INVALID: { kind: 'invalid', isRetryable: false },
  EDGE_PARTITION_NOT_OWNED: { kind: 'invalid', isRetryable: false },
  EDGE_DEVICE_ACTIVE: { kind: 'invalid', isRetryable: true },
  EDGE_READING_INVALID: { kind: 'invalid', isRetryable: false },

  EDGE_BACKPRESSURE: { kind: 'capacity', isRetryable: true },
  EDGE_TOPIC_FULL: { kind: 'capacity', isRetryable: true },
  EDGE_LIMIT_REACHED: { kind: 'capacity', isRetryable: true },
  EDGE_TOO_MANY_USERS: { kind: 'capacity', isRetryable: false },
  EDGE_TOO_MANY_TOKENS: { kind: 'capacity', isRetryable: false },
  EDGE_TOO_MANY_STREAMS: { kind: 'capacity', isRetryable: false },
  EDGE_TOO_MANY_TOPICS: { kind: 'capacity', isRetryable: false },
  EDGE_TOO_MANY_OFFSETS: { kind: 'capacity', isRetryable: false },
  EDGE_SHUTTING_DOWN: { kind: 'capacity', isRetryable: true },

  EDGE_BATCH_CORRUPT: { kind: 'corruption', isRetryable: false },
  EDGE_DECRYPT_FAILED: { kind: 'corruption', isRetryable: false },

  EDGE_APPEND_FAILED: { kind: 'io', isRetryable: true },
  EDGE_DISK_FULL: { kind: 'io', isRetryable: true },
  EDGE_IO: { kind: 'io', isRetryable: true },
  EDGE_INTERNAL: { kind: 'io', isRetryable: false },

  EDGE_UPSTREAM_UNREACHABLE: { kind: 'upstream', isRetryable: true },
  EDGE_UPSTREAM_TIMEOUT: { kind: 'upstream', isRetryable: true },
  EDGE_UPSTREAM_REFUSED: { kind: 'upstream', isRetryable: false },
  EDGE_CONNECTION_LOST: { kind: 'upstream', isRetryable: true },
} as const satisfies Record<string, ErrorTraits>

export type ErrorCode = keyof typeof ERROR_TABLE

export interface EdgeErrorOptions {
  /** Values an operator or a program may want beside the text: ids, offsets, limits. Never secrets, never payloads. */
  readonly details?: Readonly<Record<string, unknown>>
  readonly cause?: unknown
}

/** The only error that leaves a unit. The message says what, which, expected and found. */
export class EdgeError extends Error {
  override readonly name = 'EdgeError'
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message: string, options: EdgeErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.details = options.details ?? {}
  }

  get kind(): ErrorKind {
    return ERROR_TABLE[this.code].kind
  }

  get isRetryable(): boolean {
    return ERROR_TABLE[this.code].isRetryable
  }
}

/**
 * @returns `error` itself when it is one of ours, else an EDGE_INTERNAL that carries it as its cause.
 * @throws {AssertionFailure} a broken invariant is nothing to answer to: it goes on, and ends the process before it does harm.
 */
export function toEdgeError(error: unknown): EdgeError {
  if (error instanceof AssertionFailure) throw error
  if (error instanceof EdgeError) return error
  return new EdgeError('EDGE_INTERNAL', messageOf(error), { cause: error })
}

/** @returns what it says, whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** @returns the system's code (`ENOENT`) that an error of Node's has, or one of ours that was made of it; empty without one. */
export function systemCodeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  const code = error instanceof EdgeError ? error.details.code : 'code' in error ? error.code : ''
  return typeof code === 'string' ? code : ''
}
