/**
 * What quic-edge asks of its surroundings and offers to them: bytes and sessions, never commands.
 *
 * The driver port is small so that a second QUIC engine can come in without a change above it: callbacks, no promise per
 * operation, bytes in and credit out.
 */
import type { EdgeError } from '../errors.ts'

/** What one QUIC stack can do; what it cannot is refused at start, by name. */
export interface DriverTraits {
  readonly hasDatagrams: boolean
  readonly hasPeerAddress: boolean
  readonly hasClientCertificates: boolean
  readonly hasOrigin: boolean
  readonly isUdp: boolean
}

export interface QuicDriver {
  readonly name: string
  readonly traits: DriverTraits
  /** Binds and starts accepting; resolves when peers can connect. @throws EDGE_ADDRESS_IN_USE, EDGE_FEATURE_MISSING. */
  listen(options: ListenOptions, handler: SessionHandler): Promise<QuicListener>
}

export interface ListenOptions {
  readonly host: string
  /** 0 takes a free port. */
  readonly port: number
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly limits: SessionLimits
}

/** Named bounds on what peers may make us hold. */
export interface SessionLimits {
  readonly maxSessions: number
  readonly maxStreamsPerSession: number
  /** Bytes read from a session and not yet taken by its handler; beyond it the stream is not read. */
  readonly maxUnreadBytesPerSession: number
  readonly maxDatagramQueue: number
  readonly handshakeTimeoutMs: number
  readonly idleTimeoutMs: number
}

export interface QuicListener {
  readonly host: string
  readonly port: number
  readonly sessionCount: number
  /** New sessions get the new certificate; living ones keep theirs. */
  replaceCertificate(certificatePem: string, privateKeyPem: string): Promise<void>
  /** Stops accepting, ends sessions with `code`, resolves within `graceMs`. Idempotent. Never blocks the thread. */
  close(code: number, graceMs: number): Promise<void>
}

/** @returns the handlers of the session, or null to refuse it (404 for an unknown path, 503 over a limit). */
export type SessionHandler = (session: QuicSession) => QuicSessionEvents | null

export interface QuicSession {
  readonly id: number
  /** URL path of the WebTransport session, such as `/iggy`. */
  readonly path: string
  readonly peer: string | undefined
  readonly origin: string | undefined
  readonly isReliableOnly: boolean
  readonly maxDatagramSize: number
  openStream(events: QuicStreamEvents): void
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
