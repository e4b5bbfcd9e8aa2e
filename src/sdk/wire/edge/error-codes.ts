/** Codes of `error`, `nack`, `end` and `bye`, and of the session's end: one table for both sides and the documents. */
import { EdgeError, type ErrorCode } from '../../../errors.ts'

interface CodeTraits {
  readonly code: number
  readonly meaning: string
  readonly edgeError: ErrorCode | null
  /** null: sending the same again is of no use; else the usual pause in ms. */
  readonly retryMs: number | null
  /** What becomes of the session. */
  readonly after: 'close' | 'go-on' | 'lane-held'
}

export const EDGE_CODES = {
  normal: { code: 0, meaning: 'normal end', edgeError: null, retryMs: null, after: 'close' },
  version: {
    code: 1,
    meaning: 'no common version',
    edgeError: 'EDGE_VERSION_UNSUPPORTED',
    retryMs: null,
    after: 'close',
  },
  frameInvalid: {
    code: 2,
    meaning: 'framing lost (closes), or frame not valid',
    edgeError: 'EDGE_FRAME_INVALID',
    retryMs: null,
    after: 'go-on',
  },
  frameUnknown: {
    code: 3,
    meaning: 'unknown frame or critical key',
    edgeError: 'EDGE_COMMAND_UNKNOWN',
    retryMs: null,
    after: 'go-on',
  },
  frameTooLarge: {
    code: 4,
    meaning: 'frame above the limit',
    edgeError: 'EDGE_FRAME_TOO_LARGE',
    retryMs: null,
    after: 'close',
  },
  unauthenticated: {
    code: 5,
    meaning: 'unauthenticated',
    edgeError: 'EDGE_UNAUTHENTICATED',
    retryMs: 60_000,
    after: 'close',
  },
  forbidden: { code: 6, meaning: 'not permitted', edgeError: 'EDGE_FORBIDDEN', retryMs: null, after: 'go-on' },
  notFound: {
    code: 7,
    meaning: 'no such stream, topic or partition',
    edgeError: 'EDGE_TOPIC_NOT_FOUND',
    retryMs: 60_000,
    after: 'go-on',
  },
  valueInvalid: {
    code: 8,
    meaning: 'wrong value, alias not declared, lane in use',
    edgeError: 'EDGE_READING_INVALID',
    retryMs: null,
    after: 'go-on',
  },
  readingTooLarge: {
    code: 9,
    meaning: 'reading too large for the topic',
    edgeError: 'EDGE_MESSAGE_TOO_LARGE',
    retryMs: null,
    after: 'go-on',
  },
  sequenceGap: { code: 10, meaning: 'sequence gap', edgeError: 'EDGE_SEQUENCE_GAP', retryMs: 0, after: 'lane-held' },
  noRoom: { code: 11, meaning: 'no room', edgeError: 'EDGE_BACKPRESSURE', retryMs: 250, after: 'lane-held' },
  rate: { code: 12, meaning: 'over the rate', edgeError: 'EDGE_BACKPRESSURE', retryMs: 1000, after: 'lane-held' },
  topicFull: { code: 13, meaning: 'topic full', edgeError: 'EDGE_TOPIC_FULL', retryMs: 10_000, after: 'lane-held' },
  storage: {
    code: 14,
    meaning: 'storage refuses',
    edgeError: 'EDGE_APPEND_FAILED',
    retryMs: 5000,
    after: 'lane-held',
  },
  limitReached: {
    code: 15,
    meaning: 'too many aliases, streams, devices',
    edgeError: 'EDGE_LIMIT_REACHED',
    retryMs: 60_000,
    after: 'go-on',
  },
  takenOver: {
    code: 16,
    meaning: 'taken over by a newer session of the same device',
    edgeError: 'EDGE_SESSION_SUPERSEDED',
    retryMs: 60_000,
    after: 'close',
  },
  nameInUse: {
    code: 17,
    meaning: 'name in use by another device',
    edgeError: 'EDGE_NAME_IN_USE',
    retryMs: 60_000,
    after: 'close',
  },
  shuttingDown: {
    code: 18,
    meaning: 'shutting down',
    edgeError: 'EDGE_SHUTTING_DOWN',
    retryMs: 5000,
    after: 'close',
  },
  idle: { code: 19, meaning: 'idle', edgeError: 'EDGE_IDLE', retryMs: 0, after: 'close' },
  helloTimeout: { code: 20, meaning: 'no hello in time', edgeError: 'EDGE_HELLO_TIMEOUT', retryMs: 0, after: 'close' },
  offsetGone: {
    code: 21,
    meaning: 'offset gone by retention; goes on at the oldest',
    edgeError: 'EDGE_OFFSET_GONE',
    retryMs: null,
    after: 'go-on',
  },
  unreadable: {
    code: 22,
    meaning: 'range unreadable, left out',
    edgeError: 'EDGE_BATCH_CORRUPT',
    retryMs: null,
    after: 'go-on',
  },
  internal: { code: 23, meaning: 'fault of the edge', edgeError: 'EDGE_INTERNAL', retryMs: 5000, after: 'close' },
} as const satisfies Record<string, CodeTraits>

export type EdgeCodeName = keyof typeof EDGE_CODES

/** EdgeErrors that mean the same to a device as another one in the table. */
const SAME_AS: Partial<Record<ErrorCode, EdgeCodeName>> = {
  EDGE_STREAM_NOT_FOUND: 'notFound',
  EDGE_PARTITION_NOT_FOUND: 'notFound',
  EDGE_CREDENTIALS_INVALID: 'unauthenticated',
  EDGE_TOKEN_INVALID: 'unauthenticated',
  EDGE_TOKEN_EXPIRED: 'unauthenticated',
  EDGE_USER_INACTIVE: 'unauthenticated',
  EDGE_HEADERS_TOO_LARGE: 'readingTooLarge',
  EDGE_BATCH_INVALID: 'valueInvalid',
  EDGE_BATCH_EMPTY: 'valueInvalid',
  EDGE_KEY_LENGTH_INVALID: 'valueInvalid',
  EDGE_OPTION_INVALID: 'valueInvalid',
  EDGE_DISK_FULL: 'storage',
  EDGE_IO: 'storage',
  EDGE_FEATURE_UNAVAILABLE: 'frameUnknown',
}

/** @returns the name of the code that tells a device about `error`; `internal` for what no device can act on. */
export function edgeCodeOf(error: EdgeError): EdgeCodeName {
  const names = Object.keys(EDGE_CODES) as EdgeCodeName[]
  return names.find((name) => EDGE_CODES[name].edgeError === error.code) ?? SAME_AS[error.code] ?? 'internal'
}

/** @returns the traits of a number from the wire, or undefined for one of a later version. */
export function traitsOfCode(code: number): CodeTraits | undefined {
  return Object.values(EDGE_CODES).find((traits) => traits.code === code)
}

/** What is wrong with bytes from a peer. Lost framing and frames above the limit end the session. */
export type FrameFault = 'framing' | 'frame-too-large' | 'frame-invalid' | 'frame-unknown'

const FAULT_ERRORS = {
  framing: 'EDGE_FRAME_INVALID',
  'frame-too-large': 'EDGE_FRAME_TOO_LARGE',
  'frame-invalid': 'EDGE_FRAME_INVALID',
  'frame-unknown': 'EDGE_COMMAND_UNKNOWN',
} as const satisfies Record<FrameFault, ErrorCode>

/** @returns an error whose `details.fault` says which. */
export function frameFault(fault: FrameFault, why: string): EdgeError {
  return new EdgeError(FAULT_ERRORS[fault], why, { details: { fault } })
}

/** @returns undefined for errors that did not come from reading a frame. */
export function faultOf(error: unknown): FrameFault | undefined {
  return error instanceof EdgeError ? (error.details.fault as FrameFault | undefined) : undefined
}
