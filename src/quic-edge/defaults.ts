/** Bounds of quic-edge that no operator needs to change, with the reason for each. */
import { defaultsOf, type ValuesOf } from '../setting.ts'
import type { SessionLimits } from './ports.ts'
import { QUIC_SETTINGS, WEBTRANSPORT_SETTINGS } from './settings.ts'

export const QUIC_EDGE_DEFAULTS = {
  /** How often idle, paused and silent sessions are looked at. */
  sweepIntervalMs: 1000,
  /** A reset that the transport has not carried out by then ends the session: only that frees a blocked write. */
  resetTimeoutMs: 5000,
  /** Streams above the limit are reset; a session that goes on trying is closed. */
  maxRefusedStreams: 64,
  /** Streams that one HTTP/2 session may open in its life: the package keeps a little of each until the session ends. */
  http2StreamsPerSession: 10_000,
  /**
   * HTTP/2 flow control windows: what a peer may send before we read (the package's own limits are 15 and 6 MiB). One
   * capsule may take four times the session's window.
   */
  http2SessionWindowBytes: 256 * 1024,
  http2StreamWindowBytes: 128 * 1024,
  /** TCP connections may be twice the sessions: a reconnecting client's old connection lingers. */
  http2ConnectionsPerSession: 2,
  /**
   * Dead TCP peers are found by the kernel, after a minute. Not by Node's own ten questions within ten seconds: a link may well be
   * away for as long.
   */
  tcpKeepAlive: { enable: true, initialDelay: 15_000, interval: 15_000, count: 3 },
  /** Certificate files are compared with what is in use this often. */
  certificateCheckMs: 30_000,
  /** quinn binds its certificate to its socket: living sessions get so long to end by themselves before it is bound anew. */
  certificateDrainMs: 20_000,
  /** quinn gives a closed socket back only after garbage collection and draining. */
  rebindTimeoutMs: 10_000,
  rebindIntervalMs: 50,
  /** Free port numbers are tried so often until one is free for UDP and TCP alike. */
  portAttempts: 16,
  /** Below 14 days, which browsers demand of certificates trusted by their hash. */
  selfSignedValidityDays: 13,
  /** Renewed when less than this is left: time for whoever pins it to learn the new hash. */
  selfSignedRenewBeforeDays: 4,
  /** A clock that was set back must not make the certificate begin in the future. */
  selfSignedBackdateHours: 1,
} as const

/** @returns limits as drivers take them, from the section's values. */
export function limitsOf(values: LimitValues = defaultsOf(WEBTRANSPORT_SETTINGS)): SessionLimits {
  return {
    maxSessions: values.max_sessions,
    maxSessionsPerPeer: values.max_sessions_per_peer,
    maxStreamsPerSession: values.max_streams_per_session,
    maxUnreadBytesPerSession: values.max_unread_per_session,
    maxPausedStreams: values.max_paused_streams,
    pauseTimeoutMs: values.pause_timeout,
    maxDatagramQueue: values.max_datagram_queue,
    handshakeTimeoutMs: values.handshake_timeout,
    idleTimeoutMs: values.idle_timeout,
    pingIntervalMs: values.ping_interval,
  }
}

type LimitKey = Exclude<
  keyof typeof WEBTRANSPORT_SETTINGS,
  'enabled' | 'address' | 'tcp_fallback' | 'tls_cert_file' | 'tls_key_file'
>
export type LimitValues = { readonly [K in LimitKey]: number }

/** @returns limits for plain QUIC: streams are requests, and there are no datagrams. */
export function plainLimitsOf(values: ValuesOf<typeof QUIC_SETTINGS> = defaultsOf(QUIC_SETTINGS)): SessionLimits {
  return {
    maxSessions: values.max_connections,
    maxSessionsPerPeer: values.max_connections_per_peer,
    maxStreamsPerSession: values.max_concurrent_bidi_streams,
    maxUnreadBytesPerSession: values.receive_window,
    maxPausedStreams: values.max_connections * values.max_concurrent_bidi_streams,
    pauseTimeoutMs: values.max_idle_timeout,
    maxDatagramQueue: 0,
    handshakeTimeoutMs: values.handshake_timeout,
    idleTimeoutMs: values.max_idle_timeout,
    pingIntervalMs: values.keep_alive_interval,
  }
}
