/**
 * The same sessions over HTTP/2 on TCP, for networks that block UDP.
 *
 * The package's HTTP/2 transport needs three things from us: a request callback (without one it grants credit that it never
 * sends), a large number of streams (it counts them for life), and everything about its connections: limits, TLS
 * timeouts, keep-alive and their end, which it leaves to whoever holds its server.
 */
import type { Http2SecureServer, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Clock } from '../../clock.ts'
import { EdgeError } from '../../errors.ts'
import { loadWebTransport, type PackageServer } from '../../quinn-transport/index.ts'
import { QUIC_EDGE_DEFAULTS } from '../defaults.ts'
import type { ListenOptions, QuicDriver, QuicListener, SessionGate } from '../ports.ts'
import { listening, PEER_HEADER, serveSessions } from './package-listener.ts'
import { SessionHost, within } from './session-host.ts'

export async function createHttp2Driver(clock: Clock): Promise<QuicDriver> {
  const library = await loadWebTransport()
  return {
    name: 'webtransport-http2',
    async listen(options, gate) {
      const host = new SessionHost(options.limits, gate, clock)
      const server = new library.Http2Server({
        host: options.host,
        port: options.port,
        secret: 'unused',
        cert: options.certificatePem,
        privKey: options.privateKeyPem,
        defaultDatagramsReadableMode: 'default',
        initialBidirectionalStreams: QUIC_EDGE_DEFAULTS.http2StreamsPerSession,
        initialStreamFlowControlWindow: QUIC_EDGE_DEFAULTS.http2StreamWindowBytes,
        streamFlowControlWindowSizeLimit: QUIC_EDGE_DEFAULTS.http2StreamWindowBytes,
        initialSessionFlowControlWindow: QUIC_EDGE_DEFAULTS.http2SessionWindowBytes,
        sessionFlowControlWindowSizeLimit: QUIC_EDGE_DEFAULTS.http2SessionWindowBytes,
      })
      return await Http2Listener.open({ server, host, options, gate })
    },
  }
}

interface ListenerParts {
  readonly server: PackageServer
  readonly host: SessionHost
  readonly options: ListenOptions
  readonly gate: SessionGate
}

class Http2Listener implements QuicListener {
  readonly host: string
  readonly port: number
  readonly #server: PackageServer
  readonly #host: SessionHost
  readonly #sockets: Set<Socket>
  #closing: Promise<void> | undefined

  static async open({ server, host, options, gate }: ListenerParts): Promise<Http2Listener> {
    try {
      serveSessions(server, gate, host, {
        isReliableOnly: true,
        maxStreamsEver: QUIC_EDGE_DEFAULTS.http2StreamsPerSession,
      })
      server.startServer()
      const sockets = guardConnections(nodeServerOf(server), options)
      const address = await listening(server, options)
      return new Http2Listener(server, host, sockets, address)
    } catch (error) {
      host.stop()
      throw error
    }
  }

  private constructor(
    server: PackageServer,
    host: SessionHost,
    sockets: Set<Socket>,
    address: { host: string; port: number },
  ) {
    this.#server = server
    this.#host = host
    this.#sockets = sockets
    this.host = address.host
    this.port = address.port
  }

  async replaceCertificate(certificatePem: string, privateKeyPem: string): Promise<void> {
    this.#server.updateCert(certificatePem, privateKeyPem, true)
  }

  close(code: number, graceMs: number): Promise<void> {
    this.#closing ??= this.#end(code, graceMs)
    return this.#closing
  }

  async #end(code: number, graceMs: number): Promise<void> {
    this.#server.stopServer()
    this.#host.closeAll(code, 'the edge stops')
    await this.#host.whenEmpty(graceMs)
    this.#host.stop()
    for (const socket of this.#sockets) socket.destroy()
    await within(graceMs, this.#server.closed, undefined)
  }
}

/** @returns the living connections. Everything that can be held without a session is bounded here, in number and time. */
function guardConnections(server: Http2SecureServer, options: ListenOptions): Set<Socket> {
  const { maxSessions, handshakeTimeoutMs } = options.limits
  const sockets = new Set<Socket>()
  /** Open CONNECT streams by `address:port`: a connection without any may stay for the handshake's time. */
  const streamCounts = new Map<string, number>()
  /** One a connection, however many sessions come and go over it. */
  const timers = new Map<Socket, NodeJS.Timeout>()
  const endWhenUnused = (socket: Socket, peer: string) => {
    clearTimeout(timers.get(socket))
    const timer = setTimeout(() => {
      if (!streamCounts.has(peer)) socket.destroy()
    }, handshakeTimeoutMs)
    timer.unref()
    timers.set(socket, timer)
  }
  server.maxConnections = maxSessions * QUIC_EDGE_DEFAULTS.http2ConnectionsPerSession
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      clearTimeout(timers.get(socket))
      timers.delete(socket)
    })
    socket.on('error', () => {}) // reported by what runs over it, or by nobody: a port scan
    socket.setKeepAlive(QUIC_EDGE_DEFAULTS.tcpKeepAlive)
    endWhenUnused(socket, peerOf(socket))
  })
  server.on('secureConnection', (socket: TLSSocket) => {
    // HTTP/1.1 has nothing to ask for here, and the package would leave it without an answer.
    if (socket.alpnProtocol !== 'h2') socket.destroy()
  })
  server.prependListener('stream', (stream: ServerHttp2Stream, headers: Record<string, unknown>) => {
    const socket = stream.session?.socket
    const peer = peerOf(socket)
    headers[PEER_HEADER] = peer
    contain(stream)
    streamCounts.set(peer, (streamCounts.get(peer) ?? 0) + 1)
    stream.once('close', () => {
      const left = (streamCounts.get(peer) ?? 1) - 1
      if (left > 0) {
        streamCounts.set(peer, left)
        return
      }
      streamCounts.delete(peer)
      const unused = [...sockets].find((one) => peerOf(one) === peer)
      if (unused !== undefined) endWhenUnused(unused, peer)
    })
  })
  return sockets
}

/**
 * The package parses a peer's capsules in listeners of its stream and throws on some that make no sense: uncaught, one
 * stranger could end the process. What is thrown there ends that stream, and with it the session.
 */
function contain(stream: ServerHttp2Stream): void {
  const emit = stream.emit.bind(stream) as (event: string | symbol, ...args: unknown[]) => boolean
  stream.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    try {
      return emit(event, ...args)
    } catch {
      stream.destroy()
      return true
    }
  }
}

function peerOf(
  socket: { readonly remoteAddress?: string | undefined; readonly remotePort?: number | undefined } | undefined,
): string {
  return `${socket?.remoteAddress}:${socket?.remotePort}`
}

/** The package keeps Node's server where its types do not show it. */
function nodeServerOf(server: PackageServer): Http2SecureServer {
  const transport = server.transportInt
  if (typeof transport === 'object' && transport !== null && 'serverInt' in transport) {
    return transport.serverInt as Http2SecureServer
  }
  throw new EdgeError(
    'EDGE_CONFIG_INVALID',
    'the TCP fallback cannot be started: certificate or private key cannot be used',
  )
}
