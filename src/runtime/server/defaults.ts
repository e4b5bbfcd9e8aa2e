/** Settings of the binary protocol's listeners: sections `[tcp]` and `[websocket]`; and the bounds that have no key. */
import {
  address,
  boolean,
  duration,
  integer,
  KIB,
  MIB,
  MINUTE_MS,
  SECOND_MS,
  size,
  text,
  type ValuesOf,
} from '../../setting.ts'

export const TCP_SETTINGS = {
  enabled: boolean(true, "Serve Iggy's binary protocol over TCP."),
  address: address('127.0.0.1:8090', 'Where to listen; port 0 takes a free one.'),
  max_connections: integer(
    { default: 1024, min: 1, max: 65_536 },
    'Connections at a time; one more is closed at once.',
  ),
  max_request_size: size(
    { default: 64 * MIB, min: 64 * KIB, max: 64 * MIB },
    'A larger request is answered with an error and its connection closed.',
  ),
  max_requests_in_flight_size: size(
    { default: 96 * MIB, min: MIB, max: 1024 * MIB },
    'Bytes of requests above 64 KiB that are received at the same time, over all connections; more wait unread.',
  ),
  first_request_timeout: duration(
    { default: 30 * SECOND_MS, min: SECOND_MS, max: 10 * MINUTE_MS },
    'A connection that has not sent a whole request by then is closed.',
  ),
  stall_timeout: duration(
    { default: 30 * SECOND_MS, min: SECOND_MS, max: 10 * MINUTE_MS },
    'A request that stops in the middle, a peer that takes nothing of its answers, and a large request that comes more slowly than 2 KiB/s (or than 10 minutes for all of it) while others wait for room are given up after this time.',
  ),
  room_timeout: duration(
    { default: 10 * SECOND_MS, min: 100, max: 10 * MINUTE_MS },
    'A send that waits this long for room in the log, or for its part of `max_requests_in_flight_size`, is answered with "try again".',
  ),
  tls_enabled: boolean(false, 'Accept TLS on the same port, told from plain connections by the first bytes.'),
  tls_required: boolean(false, 'Refuse connections without TLS.'),
  tls_cert_file: text('', 'PEM file of the certificate chain.'),
  tls_key_file: text('', 'PEM file of the private key.'),
  tls_self_signed: boolean(
    false,
    'Without files: a certificate of our own, kept in the data folder, for clients to pin.',
  ),
} as const

export const WEBSOCKET_SETTINGS = {
  enabled: boolean(true, "Serve Iggy's binary protocol over WebSocket."),
  address: address('127.0.0.1:8092', 'Where to listen; port 0 takes a free one.'),
  max_connections: integer({ default: 256, min: 1, max: 65_536 }, 'Connections at a time; one more gets 503.'),
  tls_enabled: boolean(false, 'Serve over TLS alone (`wss://`).'),
  tls_cert_file: text('', 'PEM file of the certificate chain.'),
  tls_key_file: text('', 'PEM file of the private key.'),
  tls_self_signed: boolean(
    false,
    'Without files: a certificate of our own, kept in the data folder, for clients to pin.',
  ),
} as const

export type TcpSettings = ValuesOf<typeof TCP_SETTINGS>

/** What a connection keeps within. */
export interface ConnectionLimits {
  readonly maxRequestBytes: number
  readonly firstRequestTimeoutMs: number
  readonly stallTimeoutMs: number
  readonly roomTimeoutMs: number
}

export function connectionLimitsOf(settings: TcpSettings): ConnectionLimits {
  return {
    maxRequestBytes: settings.max_request_size,
    firstRequestTimeoutMs: settings.first_request_timeout,
    stallTimeoutMs: settings.stall_timeout,
    roomTimeoutMs: settings.room_timeout,
  }
}

/** Where TLS may come, a connection is nobody's until its first bytes; then `first_request_timeout` counts. */
export const FIRST_BYTES_TIMEOUT_MS = 30 * SECOND_MS
/** Sends of one connection whose promise does not hold yet; more are not read. */
export const MAX_SENDS_IN_FLIGHT = 256
/** Requests up to this size are received without asking the budget. */
export const SMALL_REQUEST_BYTES = 64 * KIB
/** And of who is not logged in up to this size: logins are smaller. */
export const STRANGERS_REQUEST_BYTES = 16 * KIB
/** With what rate a larger one has to come while others wait for the budget, bytes a second: the slowest links do twice that. */
export const LEAST_FILL_BYTES_PER_S = 2 * KIB
/** Nor may it take longer than that as a whole then, seconds: above 1.2 MiB more is asked. */
export const MAX_FILL_S = 600
/** Who is silent for so long and has not acknowledged its last answer is gone: as long as keep-alive takes. */
export const GONE_TIMEOUT_MS = 2 * MINUTE_MS
/** How long an ended connection waits for its peer to end too, once all has gone out. */
export const END_GRACE_MS = SECOND_MS
/** Any request but a send: rights to 29,000 topics, the longest there is, fit. */
export const MAX_COMMAND_BYTES = 256 * KIB
/** Replies of one turn are gathered up to this size, then written. */
export const OUTPUT_GATHER_BYTES = 256 * KIB
/** Room for them in the kernels' memory: a poll of a thousand readings fits beside what was gathered before it. */
export const OUTPUT_BUFFER_BYTES = 640 * KIB
/** Streams of one client that brought no request before its connection is closed. */
export const MAX_REFUSED_STREAMS = 16
/** Replies on all streams of one client that its peer has not taken; with more, its next requests wait. */
export const MAX_LEFT_OUTPUT_BYTES = 4 * MIB
/** Answers of one client that are read for and may be large, and are not among the above before they are there: as over TCP. */
export const MAX_LARGE_ANSWERS = 1
/** VSR replies kept per session to answer a repeated request with; the oldest go first. */
export const MAX_REPLAYS = 16
export const MAX_REPLAY_BYTES = 4 * KIB
/** A peer whose first bytes do not say what it speaks is closed after this time: within a second, as promised. */
export const UNDECIDED_TIMEOUT_MS = 500
/** Before that, on a port that also speaks TLS: as long for the rest of a hello that began. Both together end within a second. */
export const HELLO_TIMEOUT_MS = 400
/** How often time limits are looked at. */
export const SWEEP_INTERVAL_MS = 1000
