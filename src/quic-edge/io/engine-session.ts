/** One connection of our engine as a `QuicSession`, and its streams as `QuicStream`s. */
import { EdgeError } from '../../errors.ts'
import type { CloseInfo, EngineConnection, EngineStream } from '../engine/connection/api.ts'
import {
  type QuicSession,
  type QuicSessionEvents,
  type QuicSessionStats,
  type QuicStream,
  type QuicStreamEvents,
  SESSION_CODES,
  type SessionGate,
} from '../ports.ts'

export interface EngineSessionOptions {
  readonly id: number
  readonly path: string
  readonly peer: string
  readonly connection: EngineConnection
  onClosed(): void
}

export class EngineSession implements QuicSession {
  readonly id: number
  readonly path: string
  readonly peer: string
  readonly isReliableOnly = false
  readonly #connection: EngineConnection
  readonly #streams = new Set<StreamAdapter>()
  readonly #onClosed: () => void
  #events: QuicSessionEvents | undefined
  #receivedPackets = 0
  #ending: { readonly code: number; readonly reason: string } | undefined
  #isClosed = false

  constructor(options: EngineSessionOptions) {
    this.id = options.id
    this.path = options.path
    this.peer = options.peer
    this.#connection = options.connection
    this.#onClosed = options.onClosed
  }

  /** Resolves the handlers and lets events flow until the connection ends. */
  start(gate: SessionGate): void {
    const connection = this.#connection
    connection.onClosed = (info) => this.#closed(info)
    connection.onStream = (stream) => this.#incoming(stream)
    const events = gate.opened(this)
    this.#events = events
    // A handler may refuse the session within the call: nobody was there to be told.
    const { closeInfo } = connection
    if (closeInfo !== undefined) events.closed(closeInfo.code, closeInfo.reason)
  }

  sendDatagram(): 'dropped' {
    return 'dropped'
  }

  close(code: number, reason: string): void {
    this.#connection.close(code, reason)
  }

  /** Takes no more streams, and closes once there is none. */
  closeWhenIdle(code: number, reason: string): void {
    this.#ending ??= { code, reason }
    if (this.#streams.size === 0) this.close(this.#ending.code, this.#ending.reason)
  }

  /** Asks a peer that has been silent since the last call for a sign of life. */
  keepAlive(): void {
    const { receivedPackets } = this.#connection.stats
    if (receivedPackets === this.#receivedPackets) this.#connection.ping()
    this.#receivedPackets = receivedPackets
  }

  /** To be called now and then: no stream that its handler never hears of lasts from one call to the next but one. */
  giveUpUnseen(): void {
    this.#connection.giveUpUnseen(SESSION_CODES.limitReached)
  }

  stats(): QuicSessionStats {
    const { receivedBytes, sentBytes, streamCount } = this.#connection.stats
    return { bytesIn: receivedBytes, bytesOut: sentBytes, streamCount, droppedDatagrams: 0 }
  }

  #incoming(stream: EngineStream): void {
    const events = this.#events
    if (events === undefined || this.#ending !== undefined || !stream.isBidirectional) {
      giveUp(stream, SESSION_CODES.shuttingDown)
      return
    }
    this.#adopt(stream, (quicStream) => events.streamOpened(quicStream))
  }

  #adopt(stream: EngineStream, accept: (stream: QuicStream) => QuicStreamEvents | null): void {
    const adapter = new StreamAdapter(stream, () => {
      this.#streams.delete(adapter)
      if (this.#ending !== undefined) this.closeWhenIdle(this.#ending.code, this.#ending.reason)
    })
    this.#streams.add(adapter)
    adapter.start(accept(adapter))
  }

  #closed({ code, reason }: CloseInfo): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const lost = new EdgeError('EDGE_CONNECTION_LOST', 'the QUIC connection ended')
    for (const stream of [...this.#streams]) stream.over(lost)
    this.#events?.closed(code, reason)
    this.#onClosed()
  }
}

class StreamAdapter implements QuicStream {
  readonly id: number
  readonly #stream: EngineStream
  readonly #onOver: () => void
  #events: QuicStreamEvents | null = null
  #hasEnded = false
  #isOver = false

  constructor(stream: EngineStream, onOver: () => void) {
    this.id = stream.id
    this.#stream = stream
    this.#onOver = onOver
  }

  /** Lets events flow to `events`, or gives the stream up. */
  start(events: QuicStreamEvents | null): void {
    if (this.#isOver) return
    this.#events = events
    if (events === null) {
      this.reset(SESSION_CODES.limitReached)
      return
    }
    const stream = this.#stream
    stream.onData = () => this.#read()
    stream.onDrain = () => events.drained()
    stream.onReset = (code) => this.#abandoned(code)
    stream.onStop = (code) => this.#abandoned(code)
    stream.onDone = () => this.over(null)
    if (stream.resetCode !== undefined) this.#abandoned(stream.resetCode)
    else this.#read()
  }

  write(bytes: Uint8Array): boolean {
    return this.#isOver || this.#stream.write(bytes)
  }

  get unsentBytes(): number {
    return this.#isOver ? 0 : this.#stream.bufferedBytes
  }

  end(): void {
    if (!this.#isOver) this.#stream.end()
  }

  reset(code: number): void {
    if (this.#isOver) return
    giveUp(this.#stream, code)
    this.over(null)
  }

  grant(sizeBytes: number): void {
    if (!this.#isOver) this.#stream.grant(sizeBytes)
  }

  /** No more events. Idempotent. */
  over(error: EdgeError | null): void {
    if (this.#isOver) return
    this.#isOver = true
    const stream = this.#stream
    stream.onData = stream.onDrain = stream.onReset = stream.onStop = stream.onDone = null
    this.#onOver()
    this.#events?.closed(error)
  }

  #read(): void {
    for (let bytes = this.#next(); bytes !== null; bytes = this.#next()) this.#events?.data(bytes)
    if (this.#isOver || this.#hasEnded || !this.#stream.isEnded) return
    this.#hasEnded = true
    this.#events?.ended()
  }

  /** A handler may give the stream up while it is handed bytes. */
  #next(): Uint8Array | null {
    return this.#isOver ? null : this.#stream.read()
  }

  /** The peer gave up one direction: a request without its end, or an answer that nobody wants. */
  #abandoned(code: number): void {
    if (this.#isOver) return
    giveUp(this.#stream, code)
    this.over(new EdgeError('EDGE_CONNECTION_LOST', `the peer gave the stream up with code ${code}`))
  }
}

function giveUp(stream: EngineStream, code: number): void {
  stream.stopSending(code)
  stream.reset(code)
}
