/** WebTransport sessions on `/iggy`: each bidirectional stream is one connection of Iggy's binary protocol. */
import type { PathHandler, QuicSession, QuicStream, QuicStreamEvents } from '../quic-edge/index.ts'
import type { ByteSession, ByteTransport, ProtocolServer } from './server/index.ts'

/** Bytes of one stream that wait while the connection does not read; the session's own budget is above it. */
const MAX_WAITING_CHUNKS = 256

export function serveIggySessions(server: ProtocolServer): PathHandler {
  return {
    opened: (session) => ({
      streamOpened: (stream) => new StreamTransport(server, session, stream),
      datagram: () => {},
      closed: () => {},
    }),
  }
}

/** A QUIC stream as the carrier of one connection. Credit is given back as the connection reads. */
class StreamTransport implements ByteTransport, QuicStreamEvents {
  readonly kind = 'quic'
  readonly address: string
  readonly #stream: QuicStream
  readonly #session: ByteSession
  /** Copies of what came while the connection was not reading: bounded, since no credit is given back meanwhile. */
  #waiting: Uint8Array[] = []
  #isPaused = false
  #hasEnded = false

  constructor(server: ProtocolServer, session: QuicSession, stream: QuicStream) {
    this.address = session.peer ?? 'quic'
    this.#stream = stream
    this.#session = server.acceptByteSession(this)
  }

  // ---- for the connection
  write(bytesView: Uint8Array): boolean {
    return this.#stream.write(new Uint8Array(bytesView))
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    const chunks = this.#waiting
    this.#waiting = []
    for (const chunk of chunks) this.data(chunk)
    if (this.#hasEnded && this.#waiting.length === 0) this.#session.ended()
  }

  end(): void {
    this.#stream.end()
  }

  destroy(): void {
    this.#stream.reset(0)
  }

  // ---- for the stream
  data(bytesView: Uint8Array): void {
    if (this.#isPaused) {
      if (this.#waiting.length < MAX_WAITING_CHUNKS) this.#waiting.push(new Uint8Array(bytesView))
      else this.#stream.reset(0)
      return
    }
    this.#session.receive(bytesView)
    this.#stream.grant(bytesView.length)
  }

  ended(): void {
    this.#hasEnded = true
    if (this.#waiting.length === 0) this.#session.ended()
  }

  drained(): void {
    this.#session.drained()
  }

  closed(): void {
    this.#waiting = []
    this.#session.closed()
  }
}
