/** The part of @fails-components/webtransport's interface that we use, as the W3C names it. */
import type { ReadableStream, WritableStream } from 'node:stream/web'

export interface WebTransportPackage {
  readonly Http3Server: new (args: PackageServerArguments) => PackageServer
  readonly Http2Server: new (args: PackageServerArguments) => PackageServer
  readonly WebTransport: new (url: string, args: PackageClientArguments) => PackageClientSession
  /** Resolves when the transport was looked for, whether found or not. */
  readonly quicheLoaded: Promise<unknown>
}

export interface PackageServerArguments {
  readonly host: string
  readonly port: number
  /** Of no use to our transports; the package insists on one. */
  readonly secret: string
  readonly cert: string
  readonly privKey: string
  readonly defaultDatagramsReadableMode: 'default'
  readonly initialBidirectionalStreams?: number
  readonly initialUnidirectionalStreams?: number
  readonly initialStreamFlowControlWindow?: number
  readonly streamFlowControlWindowSizeLimit?: number
  readonly initialSessionFlowControlWindow?: number
  readonly sessionFlowControlWindowSizeLimit?: number
}

export interface PackageServer {
  readonly ready: Promise<void>
  readonly closed: Promise<void>
  /** The transport: for HTTP/2 it holds Node's server as `serverInt`. */
  readonly transportInt?: unknown
  startServer(): void
  stopServer(): void
  address(): { host: string; port: number } | null
  updateCert(cert: string, privKey: string, http2only: boolean): void
  setRequestCallback(callback: (request: { header: PackageHeaders }) => Promise<PackageDecision>): void
  sessionStream(path: string, args: { noAutoPaths: boolean }): ReadableStream<PackageServerSession>
}

export type PackageHeaders = Readonly<Record<string, string | undefined>>

export interface PackageDecision {
  readonly status: number
  /** Which `sessionStream` the session comes out of. */
  readonly path?: string
  readonly userData?: unknown
}

export interface PackageSession {
  readonly ready: Promise<unknown>
  readonly closed: Promise<{ closeCode?: number; reason?: string }>
  readonly incomingBidirectionalStreams: ReadableStream<PackageStream>
  readonly incomingUnidirectionalStreams: ReadableStream<ReadableStream<Uint8Array>>
  readonly datagrams: {
    readonly readable: ReadableStream<Uint8Array>
    readonly maxDatagramSize: number
    createWritable(options?: Record<string, never>): WritableStream<Uint8Array>
  }
  createBidirectionalStream(options?: { waitUntilAvailable?: boolean }): Promise<PackageStream>
  close(info: { closeCode: number; reason: string }): void
}

export interface PackageServerSession extends PackageSession {
  readonly header: PackageHeaders
  readonly userData: unknown
  readonly peerAddress: string | undefined
}

export interface PackageClientSession extends PackageSession {
  readonly reliability: 'pending' | 'reliable-only' | 'supports-unreliable'
}

export interface PackageStream {
  readonly readable: ReadableStream<Uint8Array>
  readonly writable: WritableStream<Uint8Array>
}

export interface PackageClientArguments {
  readonly serverCertificateHashes?: readonly { readonly algorithm: 'sha-256'; readonly value: Uint8Array }[]
  readonly requireUnreliable?: boolean
  readonly forceReliable?: boolean
  readonly quicConnectTimeout?: number
  readonly webTransportConnectTimeout?: number
  readonly initialBidirectionalSendStreams?: number
  readonly onConnectFailed?: (error: unknown) => void
}
