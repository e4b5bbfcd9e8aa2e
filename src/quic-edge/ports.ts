/**
 * What quic-edge asks of its surroundings and offers to them: bytes and sessions, never commands.
 *
 * The driver port is small so that a second QUIC engine can come in without a change above it: callbacks, no promise per
 * operation, bytes in and credit out.
 */
import type { EdgeError } from '../errors.ts'

export interface QuicDriver {
  readonly name: string
  /** Binds and starts accepting; resolves when peers can connect. @throws EDGE_ADDRESS_IN_USE, EDGE_FEATURE_MISSING. */
  listen(options: ListenOptions, gate: SessionGate): Promise<QuicListener>
}

export interface ListenOptions {
  readonly host: string
  /** 0 takes a free port. */
  readonly port: number
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly limits: SessionLimits
  /** SO_REUSEPORT: whoever reserved the port keeps it reserved; where the driver can. */
  readonly reusePort?: boolean
}

/** Named bounds on what peers may make us hold. Reasons and defaults: `settings.ts`. */
export interface SessionLimits {
  readonly maxSessions: number
  readonly maxSessionsPerPeer: number
  readonly maxStreamsPerSession: number
  /** Bytes read from a session and not yet granted back by its handler; beyond it its streams are not read. */
  readonly maxUnreadBytesPerSession: number
  /** Streams of all sessions that are not read at the moment; the next one is reset. */
  readonly maxPausedStreams: number
  readonly pauseTimeoutMs: number
  readonly maxDatagramQueue: number
  readonly handshakeTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly pingIntervalMs: number
}

export interface QuicListener {
  readonly host: string
  readonly port: number
  /** Why nothing listens any more; empty while it does. Left out by drivers that go on until they are closed. */
  readonly failure?: string
  /**
   * Where replacing a certificate takes the sessions: tells before whether it can be served.
   *
   * @throws EDGE_CONFIG_INVALID, EDGE_IO.
   */
  tryCertificate?(certificatePem: string, privateKeyPem: string): Promise<void>
  /**
   * New sessions get the new certificate. A driver that cannot change it in place ends its sessions first, with 18.
   *
   * @throws {EdgeError} it cannot be served; the one before it still is.
   */
  replaceCertificate(certificatePem: string, privateKeyPem: string): Promise<void>
  /** Where the driver counts; null before it listens. */
  traffic?(): QuicTraffic | null
  /** Stops accepting, ends sessions with `code`, resolves within `graceMs`. Idempotent. Never blocks the thread. */
  close(code: number, graceMs: number): Promise<void>
}

/** Why a connection was not begun: over a limit, too many handshakes under way, a bad Retry token, or the end of the listener. */
export type QuicRefusal = 'limit' | 'handshakes' | 'token' | 'stopping'

/** What a listener has seen since its start. */
export interface QuicTraffic {
  /** That are open now. */
  readonly openConnections: number
  /** Handshakes that came through. */
  readonly acceptedConnections: number
  readonly refusedConnections: Readonly<Record<QuicRefusal, number>>
  readonly failedHandshakes: number
  /** Packets that ask a client to prove its address. */
  readonly retries: number
  /** Of connections: what authenticated, what was sent, and what of that was lost. */
  readonly receivedPackets: number
  readonly sentPackets: number
  readonly lostPackets: number
  /** Came, and were nobody's. */
  readonly strayDatagrams: number
  /** Not sent because too many waited. */
  readonly unsentDatagrams: number
}

/** Who asks for a session, before it exists. */
export interface SessionRequest {
  /** URL path, such as `/iggy`. */
  readonly path: string
  /** `address:port`, where the driver tells. */
  readonly peer: string | undefined
}

/** HTTP status of the answer: taken, no such path, over a limit or stopping. */
export type AdmissionStatus = 200 | 404 | 503

/** Where a driver asks whether to take a session, and hands it over. */
export interface SessionGate {
  admit(request: SessionRequest): AdmissionStatus
  /** What was admitted came to nothing; without this call it is forgotten after a while. */
  abandoned(request: SessionRequest): void
  /** @returns the handlers of a session that was admitted. */
  opened(session: QuicSession): QuicSessionEvents
}

export interface QuicSession {
  readonly id: number
  readonly path: string
  readonly peer: string | undefined
  /** True over TCP: no datagrams, and one lost packet delays all streams. */
  readonly isReliableOnly: boolean
  sendDatagram(bytes: Uint8Array): 'sent' | 'dropped' | 'too-big'
  close(code: number, reason: string): void
  stats(): QuicSessionStats
}

export interface QuicSessionStats {
  readonly bytesIn: number
  readonly bytesOut: number
  readonly streamCount: number
  readonly droppedDatagrams: number
}

export interface QuicSessionEvents {
  /** A peer's bidirectional stream. @returns its handlers, or null to reset it. */
  streamOpened(stream: QuicStream): QuicStreamEvents | null
  datagram(bytesView: Uint8Array): void
  closed(code: number, reason: string): void
}

export interface QuicStream {
  readonly id: number
  /** Queues owned bytes. @returns false when the peer is slow: wait for `drained` before writing more. */
  write(bytes: Uint8Array): boolean
  /** Written, and not yet taken: by the peer, where the driver can tell, else by what sends it. */
  readonly unsentBytes: number
  /** Ends our direction after what was written. */
  end(): void
  /** Gives up both directions. */
  reset(code: number): void
  /** Allows that many more bytes to be read: given back as the handler has used them up. */
  grant(sizeBytes: number): void
}

export interface QuicStreamEvents {
  /** Bytes in order; the view must not outlive the call. They count against the session until granted back. */
  data(bytesView: Uint8Array): void
  /** The peer ended its direction. */
  ended(): void
  /** Everything written has been taken by the transport. */
  drained(): void
  /** No more events follow. */
  closed(error: EdgeError | null): void
}

/** Close and reset codes that quic-edge itself gives; the numbers of `docs/protocol/edge.md`, chapter on errors. */
export const SESSION_CODES = {
  normal: 0,
  framing: 2,
  backpressure: 11,
  limitReached: 15,
  shuttingDown: 18,
  idle: 19,
} as const
