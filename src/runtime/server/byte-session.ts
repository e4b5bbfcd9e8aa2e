/** What carries a connection, and what a connection is to its carrier: TCP, TLS, WebSocket and QUIC streams alike. */

/** The carrier's side. */
export interface ByteTransport {
  readonly kind: 'tcp' | 'quic' | 'websocket'
  /** "ip:port", or "quic" where the driver does not tell. */
  readonly address: string
  /** Queues owned bytes, one call a turn. @returns false when the peer is slow: `drained` follows. */
  write(bytes: Uint8Array): boolean
  /** Stops and resumes reading. */
  pause(): void
  resume(): void
  /** Closes once everything written has gone out. */
  end(): void
  /** Closes now. */
  destroy(): void
}

/** The connection's side. */
export interface ByteSession {
  /** Bytes in order; used up or copied when the call returns. */
  receive(bytesView: Uint8Array): void
  /** The peer sends no more; what it asked for is still answered. */
  ended(): void
  drained(): void
  /** The carrier is gone. Idempotent. */
  closed(): void
}
