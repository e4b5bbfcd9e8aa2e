/**
 * One session of the WebTransport package as a `QuicSession`: the same for QUIC and for the HTTP/2 fallback.
 *
 * Every incoming stream is taken from the package at once, whatever becomes of it: what is not taken there waits in queues
 * without a bound. Streams above the limit and all unidirectional ones are given up on the spot.
 */
import { EdgeError, messageOf } from '../../errors.ts'
import { ByteStream, type PackageSession, type PackageStream } from '../../quinn-transport/index.ts'
import { QUIC_EDGE_DEFAULTS } from '../defaults.ts'
import {
  type QuicSession,
  type QuicSessionEvents,
  type QuicSessionStats,
  type QuicStream,
  type QuicStreamEvents,
  SESSION_CODES,
  type SessionGate,
  type SessionRequest,
} from '../ports.ts'
import type { SessionHost } from './session-host.ts'

export interface DriverSessionOptions {
  readonly id: number
  readonly request: SessionRequest
  readonly isReliableOnly: boolean
  /** Streams the session may take in its life. */
  readonly maxStreamsEver: number
  readonly inner: PackageSession
  readonly host: SessionHost
}

export class DriverSession implements QuicSession {
  readonly id: number
  readonly path: string
  readonly peer: string | undefined
  readonly isReliableOnly: boolean
  readonly #inner: PackageSession
  readonly #host: SessionHost
  readonly #maxStreamsEver: number
  readonly #streams = new Map<number, { stream: ByteStream; abort(code: number, error: EdgeError): void }>()
  readonly #datagrams: DatagramSender | undefined
  #events: QuicSessionEvents | undefined
  #nextStreamId = 0
  #refusedStreamCount = 0
  #bytesIn = 0
  #bytesOut = 0
  /** What we close with ourselves; some transports report another code then. */
  #ownClose: { code: number; reason: string } | undefined
  #isClosed = false

  constructor(options: DriverSessionOptions) {
    this.id = options.id
    this.path = options.request.path
    this.peer = options.request.peer
    this.isReliableOnly = options.isReliableOnly
    this.#inner = options.inner
    this.#host = options.host
    this.#maxStreamsEver = options.maxStreamsEver
    this.#datagrams = options.isReliableOnly ? undefined : new DatagramSender(options.inner)
  }

  /** Resolves the handlers and lets events flow until the session ends. */
  start(gate: SessionGate): void {
    this.#inner.closed.then(
      (info) => this.#closed(info.closeCode ?? SESSION_CODES.normal, info.reason ?? ''),
      (error) => this.#closed(SESSION_CODES.normal, messageOf(error)),
    )
    this.#events = gate.opened(this)
    void this.#takeStreams()
    void this.#refuseUnidirectional()
    void this.#takeDatagrams()
  }

  sendDatagram(bytes: Uint8Array): 'sent' | 'dropped' | 'too-big' {
    if (this.#datagrams === undefined || this.#isClosed) return 'dropped'
    if (bytes.byteLength > this.#inner.datagrams.maxDatagramSize) return 'too-big'
    const outcome = this.#datagrams.send(bytes, this.#host.limits.maxDatagramQueue)
    if (outcome === 'sent') this.#bytesOut += bytes.byteLength
    return outcome
  }

  /** An empty datagram keeps the path open; over TCP the package itself pings. */
  ping(): void {
    this.#datagrams?.send(new Uint8Array(), this.#host.limits.maxDatagramQueue)
  }

  close(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#ownClose ??= { code, reason }
    this.#inner.close({ closeCode: code, reason })
  }

  stats(): QuicSessionStats {
    return {
      bytesIn: this.#bytesIn,
      bytesOut: this.#bytesOut,
      streamCount: this.#streams.size,
      droppedDatagrams: this.#datagrams?.droppedCount ?? 0,
    }
  }

  /** Gives up one stream that waits for its handler too long. */
  resetStream(streamId: number): void {
    const waiting = new EdgeError('EDGE_BACKPRESSURE', `stream ${streamId} was not read within the pause timeout`)
    this.#streams.get(streamId)?.abort(SESSION_CODES.backpressure, waiting)
  }

  async #takeStreams(): Promise<void> {
    try {
      for await (const stream of this.#inner.incomingBidirectionalStreams) this.#incoming(stream)
    } catch {
      // The session ended: `closed` says why.
    }
  }

  #incoming(stream: PackageStream): void {
    const isWithinLimit = this.#host.registry.streamOpened(this.id, this.#host.nowMs())
    if (!isWithinLimit || this.#events === undefined) {
      giveUp(stream, SESSION_CODES.limitReached)
      this.#refusedStreamCount++
      if (this.#refusedStreamCount > QUIC_EDGE_DEFAULTS.maxRefusedStreams) {
        this.close(SESSION_CODES.limitReached, 'too many streams')
      }
      return
    }
    if (this.#nextStreamId >= this.#maxStreamsEver) {
      this.#host.registry.streamClosed(this.id, this.#nextStreamId, this.#host.nowMs())
      giveUp(stream, SESSION_CODES.limitReached)
      this.close(SESSION_CODES.limitReached, 'streams are used up: reconnect')
      return
    }
    const events = this.#events
    this.#adopt(stream, (quicStream) => events.streamOpened(quicStream))
  }

  #adopt(stream: PackageStream, accept: (stream: QuicStream) => QuicStreamEvents | null): void {
    const id = this.#nextStreamId++
    let handler: QuicStreamEvents | undefined
    const byteStream = new ByteStream(
      stream,
      { received: (sizeBytes) => this.#received(id, sizeBytes) },
      {
        data: (bytesView) => handler?.data(bytesView),
        ended: () => handler?.ended(),
        drained: () => handler?.drained(),
        closed: (error) => {
          this.#streams.delete(id)
          this.#resume(this.#host.registry.streamClosed(this.id, id, this.#host.nowMs()))
          handler?.closed(error)
        },
      },
    )
    const abort = (code: number, error: EdgeError | null) => {
      const isStuck = byteStream.queuedBytes > 0
      const done = byteStream.reset(code, error)
      if (isStuck) this.#host.expectWithin(QUIC_EDGE_DEFAULTS.resetTimeoutMs, done, () => this.#endStuck())
    }
    this.#streams.set(id, { stream: byteStream, abort })
    handler =
      accept({
        id,
        write: (bytes) => {
          this.#bytesOut += bytes.byteLength
          return byteStream.write(bytes)
        },
        get unsentBytes() {
          return byteStream.queuedBytes
        },
        end: () => byteStream.end(),
        reset: (code) => abort(code, null),
        grant: (sizeBytes) => this.#resume(this.#host.registry.granted(this.id, id, sizeBytes)),
      }) ?? undefined
    if (handler === undefined) abort(SESSION_CODES.limitReached, null)
    else byteStream.start()
  }

  /** @returns whether the stream may be read on. */
  #received(streamId: number, sizeBytes: number): boolean {
    this.#bytesIn += sizeBytes
    const verdict = this.#host.registry.received(this.id, streamId, sizeBytes, this.#host.nowMs())
    // Not within the call: the handler still gets the bytes that were counted.
    if (verdict === 'reset') queueMicrotask(() => this.resetStream(streamId))
    return verdict === 'read-on'
  }

  #resume(streamIds: readonly number[]): void {
    for (const streamId of streamIds) this.#streams.get(streamId)?.stream.resume()
  }

  #endStuck(): void {
    this.close(SESSION_CODES.backpressure, 'a stream could not be reset: its peer does not read')
  }

  async #refuseUnidirectional(): Promise<void> {
    try {
      for await (const readable of this.#inner.incomingUnidirectionalStreams) {
        readable.cancel({ code: SESSION_CODES.framing }).catch(() => {})
      }
    } catch {
      // The session ended.
    }
  }

  async #takeDatagrams(): Promise<void> {
    try {
      for await (const datagram of this.#inner.datagrams.readable) {
        // Empty ones are pings. Over TCP there are none in our protocols; they are taken so that they do not pile up.
        if (datagram.byteLength === 0 || this.isReliableOnly) continue
        this.#bytesIn += datagram.byteLength
        this.#host.registry.datagramReceived(this.id, this.#host.nowMs())
        this.#events?.datagram(datagram)
      }
    } catch {
      // The session ended.
    }
  }

  #closed(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const lost = new EdgeError('EDGE_CONNECTION_LOST', 'the session ended')
    for (const { stream } of [...this.#streams.values()]) void stream.reset(0, lost)
    const info = this.#ownClose ?? { code, reason }
    this.#events?.closed(info.code, info.reason)
    this.#host.removed(this)
  }
}

/** The package answers a datagram with a promise; we count those that are open, so that a stalled path drops new ones. */
class DatagramSender {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  #waitingCount = 0
  droppedCount = 0

  constructor(inner: PackageSession) {
    this.#writer = inner.datagrams.createWritable().getWriter() as WritableStreamDefaultWriter<Uint8Array>
    this.#writer.closed.catch(() => {})
    this.#writer.ready.catch(() => {})
  }

  send(bytes: Uint8Array, maxWaiting: number): 'sent' | 'dropped' {
    if (this.#waitingCount >= maxWaiting) {
      this.droppedCount++
      return 'dropped'
    }
    this.#waitingCount++
    this.#writer.write(bytes).then(
      () => {
        this.#waitingCount--
      },
      () => {
        this.#waitingCount--
        this.droppedCount++
      },
    )
    return 'sent'
  }
}

function giveUp(stream: PackageStream, code: number): void {
  stream.readable.cancel({ code }).catch(() => {})
  stream.writable.abort({ code }).catch(() => {})
}
