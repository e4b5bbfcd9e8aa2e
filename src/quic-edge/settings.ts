/**
 * Sections `[webtransport]` and `[quic]`: where QUIC listens, its certificate, and what one peer and all of them may take. Keys
 * of `[quic]` have the names of Apache Iggy's server where they mean the same.
 */
import { address, boolean, choice, duration, integer, KIB, MIB, MINUTE_MS, SECOND_MS, size, text } from '../setting.ts'

export const WEBTRANSPORT_SETTINGS = {
  enabled: boolean(true, 'Listen for WebTransport: Iggy clients on /iggy, devices on /edge.'),
  address: address('0.0.0.0:8443', 'UDP address; the TCP fallback listens on the same address and number.'),
  tcp_fallback: boolean(true, 'Offer the same sessions over HTTP/2 on TCP, for networks that block UDP.'),
  tls_cert_file: text('', 'PEM certificate chain; empty: a self-signed one is made, kept and renewed.'),
  tls_key_file: text('', 'PEM private key of tls_cert_file.'),
  max_sessions: integer(
    { default: 512, min: 1, max: 100_000 },
    'Sessions at the same time; more are answered with 503.',
  ),
  max_sessions_per_peer: integer(
    { default: 64, min: 1, max: 100_000 },
    'Sessions from one address (of IPv6: one network of 64 bits), where the transport tells it: the TCP fallback does.',
  ),
  max_streams_per_session: integer(
    { default: 16, min: 1, max: 100 },
    'Open streams of one session; more are reset. The transport may hold about 1.2 MiB for each that nobody reads.',
  ),
  max_unread_per_session: size(
    { default: 256 * KIB, min: 16 * KIB, max: 64 * MIB },
    'Bytes of one session that were received and not yet worked off; beyond it its streams are not read.',
  ),
  max_paused_streams: integer(
    { default: 32, min: 1, max: 10_000 },
    'Streams of all sessions that wait unread at the same time; the next one is reset.',
  ),
  pause_timeout: duration(
    { default: 15 * SECOND_MS, min: SECOND_MS, max: 10 * MINUTE_MS },
    'A stream that was not read for so long is reset: nobody can pin memory in the transport.',
  ),
  max_datagram_queue: integer(
    { default: 256, min: 1, max: 65_536 },
    'Datagrams of one session that wait to be sent; more are dropped and counted.',
  ),
  handshake_timeout: duration(
    { default: 5 * SECOND_MS, min: 500, max: MINUTE_MS },
    'TLS of the TCP fallback, and the first stream of a session, must come within this time.',
  ),
  idle_timeout: duration(
    { default: MINUTE_MS, min: 5 * SECOND_MS, max: 60 * MINUTE_MS },
    'A session without an open stream and without datagrams is closed after this time.',
  ),
  ping_interval: duration(
    { default: 10 * SECOND_MS, min: SECOND_MS, max: 25 * SECOND_MS },
    'An empty datagram keeps address translation open; the transport ends sessions that are silent for 30 s.',
  ),
} as const

export const QUIC_SETTINGS = {
  enabled: boolean(false, "Serve Iggy's binary protocol over plain QUIC, as Iggy's own QUIC clients speak it."),
  address: address('127.0.0.1:8080', 'UDP address; port 0 takes a free one.'),
  tls_cert_file: text('', 'PEM file of the certificate chain.'),
  tls_key_file: text('', 'PEM file of the private key.'),
  tls_self_signed: boolean(
    true,
    'Without files: a certificate of our own, kept in the data folder, for clients to pin.',
  ),
  max_connections: integer({ default: 256, min: 1, max: 65_536 }, 'Connections at a time; one more is refused.'),
  max_connections_per_peer: integer(
    { default: 64, min: 1, max: 65_536 },
    'Connections from one address (of IPv6: one network of 64 bits); one more is refused.',
  ),
  max_concurrent_bidi_streams: integer(
    { default: 64, min: 1, max: 10_000 },
    'Requests that one connection may have under way.',
  ),
  receive_window: size(
    { default: 512 * KIB, min: 64 * KIB, max: 64 * MIB },
    'Bytes that one connection may have sent and that are not worked off; one stream may take half of it.',
  ),
  handshake_timeout: duration(
    { default: 10 * SECOND_MS, min: 500, max: MINUTE_MS },
    'A handshake that is not through by then is given up.',
  ),
  max_idle_timeout: duration(
    { default: 30 * SECOND_MS, min: SECOND_MS, max: 60 * MINUTE_MS },
    'A connection whose peer is silent for so long is forgotten; a client may ask for less.',
  ),
  keep_alive_interval: duration(
    { default: 10 * SECOND_MS, min: SECOND_MS, max: 10 * MINUTE_MS },
    'Idle peers are asked for a sign of life so often; it also keeps address translation open.',
  ),
  retry: choice(
    'auto',
    ['auto', 'always'],
    'Have a client prove its address before anything is kept for it: `auto` while many handshakes are under way.',
  ),
} as const
