/** Both halves of TLS, with nothing between them but a queue that a test can look into and alter. */
import type { CipherSuite } from '../../../src/quic-edge/engine/crypto/cipher-suite.ts'
import {
  LEVEL,
  type Level,
  type TlsEndpoint,
  type TlsEvents,
  type TlsServerOptions,
} from '../../../src/quic-edge/engine/tls/api.ts'
import { TlsServer } from '../../../src/quic-edge/engine/tls/tls-server.ts'
import { TlsClient, type TlsClientOptions } from './tls-client.ts'

export interface SentMessage {
  readonly level: Level
  readonly bytes: Uint8Array
}

/** What one half told its connection. */
export class TlsRecorder implements TlsEvents {
  readonly sent: SentMessage[] = []
  /** `handshake send`, `application receive` and so on, with the secret in hex. */
  readonly secrets = new Map<string, string>()
  suite: CipherSuite | undefined
  peerParameters: Uint8Array | undefined
  isDone = false

  sendHandshake(level: Level, bytes: Uint8Array): void {
    this.sent.push({ level, bytes })
  }

  keysReady(level: Level, direction: 'send' | 'receive', suite: CipherSuite, secret: Uint8Array): void {
    this.suite = suite
    const name = level === LEVEL.handshake ? 'handshake' : 'application'
    this.secrets.set(`${name} ${direction}`, Buffer.from(secret).toString('hex'))
  }

  peerTransportParameters(bytesView: Uint8Array): void {
    this.peerParameters = new Uint8Array(bytesView)
  }

  handshakeDone(): void {
    this.isDone = true
  }
}

export class TlsPair {
  readonly clientEvents = new TlsRecorder()
  readonly serverEvents = new TlsRecorder()
  readonly client: TlsClient
  readonly server: TlsServer

  constructor(client: TlsClientOptions, server: TlsServerOptions) {
    this.client = new TlsClient(client, this.clientEvents)
    this.server = new TlsServer(server, this.serverEvents)
  }

  /** Carries messages to and fro until both are silent. @param chunkSize bytes handed over at once. */
  run(chunkSize = Number.POSITIVE_INFINITY): void {
    while (this.clientEvents.sent.length + this.serverEvents.sent.length > 0) {
      carry(this.clientEvents, this.server, chunkSize)
      carry(this.serverEvents, this.client, chunkSize)
    }
  }
}

function carry(from: TlsRecorder, to: TlsEndpoint, chunkSize: number): void {
  for (const { level, bytes } of from.sent.splice(0)) {
    for (let at = 0; at < bytes.length; at += chunkSize) to.receive(level, bytes.subarray(at, at + chunkSize))
  }
}
