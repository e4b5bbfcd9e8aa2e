/**
 * Iggy's binary protocol over QUIC. On WebTransport's `/iggy` each bidirectional stream is a connection, with a session of its
 * own; over plain QUIC the session belongs to the QUIC connection, and each stream is one request of it.
 */
import type { PathHandler, QuicSession, QuicStream, QuicStreamEvents } from '../quic-edge/index.ts'
import type { ByteSession, ByteTransport, ProtocolServer } from './server/index.ts'

/** What comes while the connection does not read is kept in blocks: how small a peer cuts it up costs nothing. */
const BLOCK_BYTES = 16 * 1024

export function serveIggySessions(server: ProtocolServer): PathHandler {
  return {
    opened: (session) => ({
      streamOpened: (stream) => serveStream(session, stream, (transport) => server.acceptByteSession(transport)),
      datagram: () => {},
      closed: () => {},
    }),
  }
}

export function serveIggyClients(server: ProtocolServer): PathHandler {
  return {
    opened(session) {
      const client = server.acceptStreamSession({
        address: addressOf(session),
        close: (code, reason) => session.close(code, reason),
      })
      return {
        streamOpened: (stream) => serveStream(session, stream, (transport) => client.accept(transport)),
        datagram: () => {},
        closed: () => client.closed(),
      }
    },
  }
}

const addressOf = ({ peer }: QuicSession): string => peer ?? 'quic'

function serveStream(
  session: QuicSession,
  stream: QuicStream,
  accept: (transport: ByteTransport) => ByteSession | null,
): QuicStreamEvents | null {
  const transport = new StreamTransport(addressOf(session), stream)
  const connection = accept(transport)
  if (connection === null) return null
  return transport.serve(connection)
}

/** A QUIC stream as the carrier of one connection. Credit is given back as the connection reads. */
class StreamTransport implements ByteTransport, QuicStreamEvents {
  readonly kind = 'quic'
  readonly address: string
  readonly #stream: QuicStream
  #session: ByteSession = NOBODY
  /** Copies of what came while the connection was not reading: bounded, since no credit is given back meanwhile. */
  #waiting: Uint8Array[] = []
  /** Bytes of the last block that are filled. */
  #filledBytes = 0
  #isPaused = false
  #hasEnded = false

  constructor(address: string, stream: QuicStream) {
    this.address = address
    this.#stream = stream
  }

  serve(session: ByteSession): this {
    this.#session = session
    return this
  }

  // ---- for the connection
  write(bytesView: Uint8Array): boolean {
    return this.#stream.write(new Uint8Array(bytesView))
  }

  get unsentBytes(): number {
    return this.#stream.unsentBytes
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    const blocks = this.#waiting
    const last = blocks.pop()
    if (last !== undefined) blocks.push(last.subarray(0, this.#filledBytes))
    this.#waiting = []
    for (const block of blocks) this.data(block)
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
      this.#keep(bytesView)
      return
    }
    this.#session.receive(bytesView)
    this.#stream.grant(bytesView.length)
  }

  #keep(bytesView: Uint8Array): void {
    let block = this.#waiting.at(-1)
    for (let at = 0; at < bytesView.length; ) {
      if (block === undefined || this.#filledBytes === block.length) {
        block = new Uint8Array(BLOCK_BYTES)
        this.#waiting.push(block)
        this.#filledBytes = 0
      }
      const part = bytesView.subarray(at, at + block.length - this.#filledBytes)
      block.set(part, this.#filledBytes)
      this.#filledBytes += part.length
      at += part.length
    }
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

/** Until the stream is served. */
const NOBODY: ByteSession = { receive() {}, ended() {}, drained() {}, closed() {} }
