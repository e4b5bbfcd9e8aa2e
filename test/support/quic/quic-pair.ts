/**
 * A client and a server connection in memory. Datagrams wait in a queue each way, so that a test may look into, drop or
 * repeat them; the clock is the test's.
 */
import { createHash } from 'node:crypto'
import type { ConnectionLimits, EngineStream, PeerAddress } from '../../../src/quic-edge/engine/connection/api.ts'
import { QuicConnection } from '../../../src/quic-edge/engine/connection/connection.ts'
import type { CipherSuite } from '../../../src/quic-edge/engine/crypto/cipher-suite.ts'
import type { Level, TlsEvents, TlsIdentity, TlsServerOptions } from '../../../src/quic-edge/engine/tls/api.ts'
import { TlsServer } from '../../../src/quic-edge/engine/tls/tls-server.ts'
import { makeIdentity } from './identities.ts'
import { TlsClient, type TlsClientOptions } from './tls-client.ts'

export const TEST_LIMITS: ConnectionLimits = {
  connectionWindowBytes: 1024 * 1024,
  streamWindowBytes: 256 * 1024,
  maxBidirectionalStreams: 100,
  maxUnidirectionalStreams: 10,
  sendHighWaterBytes: 256 * 1024,
  idleTimeoutMs: 30_000,
  handshakeTimeoutMs: 10_000,
  maxAckDelayMs: 25,
  datagramSize: 1200,
}

export const addressOf = (address: string, port: number): PeerAddress => ({ key: `${address}|${port}`, address, port })
export const CLIENT_ADDRESS = addressOf('192.0.2.1', 40_000)
export const SERVER_ADDRESS = addressOf('192.0.2.2', 8080)

export interface PairOptions {
  readonly nowMs?: number
  readonly client?: Partial<ConnectionLimits>
  readonly server?: Partial<ConnectionLimits>
  readonly clientTls?: Partial<TlsClientOptions>
  readonly serverTls?: Partial<TlsServerOptions>
  /** The same bytes for the same calls: makes runs repeatable, but for key pairs. */
  random?(size: number): Uint8Array
  /** A Retry token proved the client's address. */
  readonly isPeerValidated?: boolean
  /** Of the client, as the server is told by its endpoint. */
  readonly peerId?: Uint8Array
  /** As the server is told. */
  readonly originalDestinationId?: Uint8Array
}

export interface Sent {
  readonly bytes: Uint8Array
  readonly to: PeerAddress
}

let sharedIdentity: TlsIdentity | undefined
/** Making keys takes longer than a handshake: one certificate serves all tests. */
export function testIdentity(): TlsIdentity {
  sharedIdentity ??= makeIdentity('ed25519')
  return sharedIdentity
}

/** Random enough for tests, and counted: no two calls give the same. */
function countedBytes(): (size: number) => Uint8Array {
  let count = 0
  return (size) => createHash('sha512').update(String(count++)).digest().subarray(0, size)
}

/** What a connection asks of its endpoint, recorded. */
export class TestHost {
  readonly ids: string[] = []
  isAwake = false
  onWake: () => void = () => {}

  connectionIdAdded(idBytes: Uint8Array): void {
    this.ids.push(Buffer.from(idBytes).toString('hex'))
  }

  connectionIdRetired(idBytes: Uint8Array): void {
    this.ids.splice(this.ids.indexOf(Buffer.from(idBytes).toString('hex')), 1)
  }

  statelessResetToken(idBytes: Uint8Array): Uint8Array {
    return new Uint8Array(createHash('sha256').update(idBytes).digest()).slice(0, 16)
  }

  wake(): void {
    this.isAwake = true
    this.onWake()
  }
}

/** A traffic secret that TLS handed to one side, which lets a test forge what that side sends. */
export interface RecordedSecret {
  readonly level: Level
  readonly direction: 'send' | 'receive'
  readonly suite: CipherSuite
  readonly secret: Uint8Array
}

function recorded(events: TlsEvents, secrets: RecordedSecret[]): TlsEvents {
  return {
    sendHandshake: (level, bytes) => events.sendHandshake(level, bytes),
    keysReady: (level, direction, suite, secret) => {
      secrets.push({ level, direction, suite, secret })
      events.keysReady(level, direction, suite, secret)
    },
    peerTransportParameters: (bytesView) => events.peerTransportParameters(bytesView),
    handshakeDone: () => events.handshakeDone(),
  }
}

export class QuicPair {
  nowMs: number
  readonly clientSecrets: RecordedSecret[] = []
  readonly serverSecrets: RecordedSecret[] = []
  /** The client's first destination id, which its Initial keys are made of. */
  readonly initialDestinationId: Uint8Array
  readonly client: QuicConnection
  readonly server: QuicConnection
  readonly clientHost = new TestHost()
  readonly serverHost = new TestHost()
  /** Sent by the client, or the server, and not yet delivered. */
  readonly toServer: Sent[] = []
  readonly toClient: Sent[] = []
  /** From where the server sees the client's datagrams come. */
  clientAddress = CLIENT_ADDRESS

  constructor(options: PairOptions = {}) {
    const nowMs = options.nowMs ?? 0
    this.nowMs = nowMs
    const random = options.random ?? countedBytes()
    const destinationId = random(8)
    this.initialDestinationId = destinationId
    this.client = new QuicConnection({
      role: 'client',
      nowMs,
      peer: SERVER_ADDRESS,
      limits: { ...TEST_LIMITS, ...options.client },
      host: this.clientHost,
      random,
      createTls: (events, transportParameters) =>
        new TlsClient({ transportParameters, random, ...options.clientTls }, recorded(events, this.clientSecrets)),
      initialDestinationIdBytes: destinationId,
      originalDestinationIdBytes: destinationId,
      retrySourceIdBytes: undefined,
      tokenBytes: new Uint8Array(),
    })
    this.server = new QuicConnection({
      role: 'server',
      nowMs,
      peer: CLIENT_ADDRESS,
      limits: { ...TEST_LIMITS, ...options.server },
      host: this.serverHost,
      random,
      createTls: (events, transportParameters) =>
        new TlsServer(
          { identity: testIdentity, alpnProtocols: [], transportParameters, random, ...options.serverTls },
          recorded(events, this.serverSecrets),
        ),
      initialDestinationIdBytes: destinationId,
      peerIdBytes: options.peerId ?? Buffer.from(this.clientHost.ids[0] ?? '', 'hex'),
      originalDestinationIdBytes: options.originalDestinationId ?? destinationId,
      retrySourceIdBytes: undefined,
      isPeerValidated: options.isPeerValidated ?? false,
    })
  }

  /** Takes what both sides have to send. @returns whether there was anything. */
  flush(): boolean {
    const before = this.toServer.length + this.toClient.length
    this.flushClient()
    this.flushServer()
    return this.toServer.length + this.toClient.length > before
  }

  flushClient(): void {
    this.client.flush(this.nowMs, (bytes, to) => this.toServer.push({ bytes, to }), Number.POSITIVE_INFINITY)
  }

  flushServer(): void {
    this.server.flush(this.nowMs, (bytes, to) => this.toClient.push({ bytes, to }), Number.POSITIVE_INFINITY)
  }

  /** Delivers what waits, in order. The server's answers to an address that the client has left are lost. */
  deliver(): void {
    for (const { bytes } of this.toServer.splice(0)) this.server.receive(bytes, this.clientAddress, this.nowMs)
    for (const { bytes, to } of this.toClient.splice(0)) {
      if (to.key === this.clientAddress.key) this.client.receive(bytes, SERVER_ADDRESS, this.nowMs)
    }
  }

  /** Moves datagrams to and fro without loss until both sides are silent. Time stands still. */
  run(): void {
    for (
      let rounds = 0;
      rounds < 10_000 && (this.flush() || this.toServer.length + this.toClient.length > 0);
      rounds++
    ) {
      this.deliver()
    }
  }

  /** Lets time pass, with what becomes due in it. */
  wait(ms: number): void {
    const endMs = this.nowMs + ms
    for (;;) {
      this.run()
      const dueMs = Math.min(this.client.deadlineMs, this.server.deadlineMs)
      if (dueMs > endMs) break
      this.nowMs = Math.max(this.nowMs, dueMs)
      for (const connection of [this.client, this.server]) {
        if (connection.deadlineMs <= this.nowMs) connection.tick(this.nowMs)
      }
    }
    this.nowMs = endMs
    this.run()
  }

  /** Opens a stream of the client's; the handshake must be done. */
  open(): EngineStream {
    const stream = this.client.openStream('bidirectional')
    if (stream === null) throw new Error('the server allows no stream')
    return stream
  }
}

/** Reads what is there, and grants it back. */
export function readAll(stream: EngineStream): Uint8Array {
  const chunks: Uint8Array[] = []
  for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) {
    chunks.push(chunk)
    stream.grant(chunk.length)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

/** Sends back what comes on a stream, as fast as it can be sent. */
export function echo(stream: EngineStream): void {
  let isPaused = false
  const go = () => {
    while (!isPaused) {
      const chunk = stream.read()
      if (chunk === null) break
      stream.grant(chunk.length)
      isPaused = !stream.write(chunk)
    }
    if (stream.isEnded && !isPaused) stream.end()
  }
  stream.onData = go
  stream.onDrain = () => {
    isPaused = false
    go()
  }
  stream.onReset = (code) => stream.reset(code)
}
