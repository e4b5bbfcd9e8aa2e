/** What carries a connection, and what a connection is to its carrier: TCP, TLS, WebSocket and QUIC streams alike. */

/** The carrier's side. */
export interface ByteTransport {
  readonly kind: 'tcp' | 'quic' | 'websocket'
  /** "ip:port", or "quic" where the driver does not tell. */
  readonly address: string
  /**
   * Sends bytes. @returns false when they have not all gone out: then the view must not change until `drained`, and what is
   * written meanwhile waits behind it.
   */
  write(bytesView: Uint8Array): boolean
  /** Of what was written the bytes that have not gone out, or near it: 0 when all have, and another number when some have. */
  readonly unsentBytes: number
  /**
   * Where the system below buffers too: what it keeps because the peer has not taken it, null where it does not tell. It costs a
   * millisecond to ask.
   */
  unacknowledgedBytes?(): number | null
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
  /** All that `write` was given has gone out. */
  drained(): void
  /** The carrier is gone. Idempotent. */
  closed(): void
}

/** What carries a client whose every request comes on a stream of its own: a QUIC connection. */
export interface StreamCarrier {
  /** "ip:port". */
  readonly address: string
  /** Ends the connection and all its streams; `code` is of the application's. */
  close(code: number, reason: string): void
}

/** The client's side of it. */
export interface StreamSession {
  /** A stream with a request. @returns null to reset it. */
  accept(transport: ByteTransport): ByteSession | null
  /** The connection is gone, and all its streams. Idempotent. */
  closed(): void
}
