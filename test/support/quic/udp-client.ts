/**
 * A QUIC client on a real socket, made of the test half of the engine: what a client of Iggy does over plain QUIC, and what one
 * may do to a server.
 */
import { randomBytes } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import type {
  CloseInfo,
  ConnectionHost,
  ConnectionLimits,
  EngineStream,
  PeerAddress,
} from '../../../src/quic-edge/engine/connection/api.ts'
import { QuicConnection } from '../../../src/quic-edge/engine/connection/connection.ts'
import { hasRetryIntegrity } from '../../../src/quic-edge/engine/crypto/retry-integrity.ts'
import { PACKET_TYPE, readLongHeader } from '../../../src/quic-edge/engine/wire/packet-header.ts'
import { addressOf, TEST_LIMITS } from './quic-pair.ts'
import { TlsClient, type TlsClientOptions } from './tls-client.ts'

/** Nothing here may keep a test waiting for longer. */
const PATIENCE_MS = 10_000

export interface UdpClientOptions {
  /** `host:port`, as listeners tell it. */
  readonly address: string
  readonly limits?: Partial<ConnectionLimits>
  readonly tls?: Partial<TlsClientOptions>
}

/** What came back on a stream: its bytes up to the end, or the code it was reset with. */
export interface Response {
  readonly bytes: Buffer
  readonly resetCode: number | undefined
}

export class UdpQuicClient implements AsyncDisposable {
  /** Settled when the connection is over, for whatever reason. */
  readonly closed: Promise<CloseInfo>
  /** Retry packets that were followed. */
  retryCount = 0
  /** Hears nothing for the time being. */
  isDeaf = false
  /** Which of its datagrams are lost, counted from 0 once it is set. */
  isLost: ((index: number) => boolean) | undefined
  #lossIndex = 0
  /** Gets a copy of each datagram; what it answers is taken as if the server had, as when somebody on the way forwards both. */
  copyPort: number | undefined
  copyAnswerCount = 0
  readonly #options: UdpClientOptions
  readonly #server: PeerAddress
  readonly #closed = Promise.withResolvers<CloseInfo>()
  readonly #connected = Promise.withResolvers<void>()
  readonly #originalId = randomBytes(8)
  #socket: Socket | undefined
  #connection: QuicConnection
  #timer: NodeJS.Timeout | undefined
  #isScheduled = false
  /** A socket that is closed before drops what it was given. */
  #lastSend: Promise<void> = Promise.resolve()

  private constructor(options: UdpClientOptions) {
    const colon = options.address.lastIndexOf(':')
    this.#options = options
    this.#server = addressOf(
      options.address.slice(0, colon).replace(/[[\]]/g, ''),
      Number(options.address.slice(colon + 1)),
    )
    this.closed = this.#closed.promise
    this.#connection = this.#begin(this.#originalId)
  }

  /** @throws {Error} the connection was closed before it was made. */
  static async connect(options: UdpClientOptions): Promise<UdpQuicClient> {
    const client = new UdpQuicClient(options)
    await client.rebind()
    const failed = client.closed.then(({ code, reason }) => {
      throw new Error(`not connected: closed with 0x${code.toString(16)} ${reason}`)
    })
    failed.catch(() => {})
    try {
      await within(Promise.race([client.#connected.promise, failed]), 'the handshake')
    } catch (error) {
      await client[Symbol.asyncDispose]()
      throw error
    }
    return client
  }

  get connection(): QuicConnection {
    return this.#connection
  }

  /** Goes on from another port, as behind a router that has forgotten us. */
  async rebind(): Promise<void> {
    const socket = createSocket(isIPv6(this.#server.address) ? 'udp6' : 'udp4')
    socket.on('message', (datagram, from) => {
      if (from.port === this.copyPort) this.copyAnswerCount++
      this.#received(datagram)
    })
    socket.bind()
    await once(socket, 'listening')
    this.#socket?.close()
    this.#socket = socket
    this.#schedule()
  }

  open(): EngineStream {
    const stream = this.#connection.openStream('bidirectional')
    if (stream === null) throw new Error('the server allows no stream at the moment')
    return stream
  }

  /** One request as Iggy's clients send it: a stream, the bytes, the end; then all that comes back. */
  request(bytes: Uint8Array): Promise<Response> {
    const stream = this.open()
    const response = this.read(stream)
    if (bytes.length > 0) stream.write(Uint8Array.from(bytes))
    stream.end()
    return response
  }

  /** Reads a stream up to its end. */
  read(stream: EngineStream): Promise<Response> {
    const chunks: Uint8Array[] = []
    const done = Promise.withResolvers<Response>()
    const finish = (resetCode?: number) => done.resolve({ bytes: Buffer.concat(chunks), resetCode })
    const take = () => {
      for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) {
        chunks.push(Uint8Array.from(chunk))
        stream.grant(chunk.length)
      }
      if (stream.isEnded) finish()
    }
    stream.onData = take
    stream.onReset = finish
    void this.closed.then(({ code }) => done.reject(new Error(`the connection was closed with 0x${code.toString(16)}`)))
    take()
    return within(done.promise, 'a response')
  }

  /** Lets go of everything without a word, as a client that lost its power. */
  vanish(): void {
    clearTimeout(this.#timer)
    this.#socket?.close()
    this.#socket = undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection.close(0, '')
    this.#flush()
    await this.#lastSend
    this.vanish()
  }

  #begin(
    destinationId: Uint8Array,
    retry?: { readonly sourceId: Uint8Array; readonly token: Uint8Array },
  ): QuicConnection {
    const host: ConnectionHost = {
      connectionIdAdded() {},
      connectionIdRetired() {},
      statelessResetToken: () => randomBytes(16),
      wake: () => this.#schedule(),
    }
    const connection = new QuicConnection({
      role: 'client',
      nowMs: performance.now(),
      peer: this.#server,
      limits: { ...TEST_LIMITS, ...this.#options.limits },
      host,
      random: randomBytes,
      createTls: (events, transportParameters) =>
        new TlsClient({ transportParameters, random: randomBytes, ...this.#options.tls }, events),
      initialDestinationIdBytes: destinationId,
      originalDestinationIdBytes: this.#originalId,
      retrySourceIdBytes: retry?.sourceId,
      tokenBytes: retry?.token ?? new Uint8Array(0),
    })
    connection.onConnected = () => this.#connected.resolve()
    connection.onClosed = (info) => this.#closed.resolve(info)
    return connection
  }

  #received(datagram: Buffer): void {
    if (this.isDeaf) return
    const header = readLongHeader(datagram)
    if (header?.type === PACKET_TYPE.retry) {
      if (this.retryCount > 0 || !hasRetryIntegrity(this.#originalId, datagram)) return
      this.retryCount++
      const sourceId = Uint8Array.from(header.sourceIdView)
      this.#connection = this.#begin(sourceId, { sourceId, token: Uint8Array.from(header.tokenView) })
    } else {
      this.#connection.receive(datagram, this.#server, performance.now())
    }
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#flush()
    })
  }

  #flush(): void {
    const socket = this.#socket
    if (socket === undefined) return
    this.#connection.flush(
      performance.now(),
      (bytes, to) => {
        if (this.isLost?.(this.#lossIndex++)) return
        if (this.copyPort !== undefined) socket.send(bytes, this.copyPort, to.address)
        this.#lastSend = new Promise((resolve) => socket.send(bytes, to.port, to.address, () => resolve()))
      },
      Number.POSITIVE_INFINITY,
    )
    clearTimeout(this.#timer)
    const { deadlineMs } = this.#connection
    if (deadlineMs === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(() => this.#tick(), Math.max(1, Math.ceil(deadlineMs - performance.now())))
    this.#timer.unref()
  }

  #tick(): void {
    this.#connection.tick(Math.max(performance.now(), this.#connection.deadlineMs))
    this.#schedule()
  }
}

/** @throws {Error} when it takes too long. */
export async function within<T>(work: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${PATIENCE_MS} ms`)), PATIENCE_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
