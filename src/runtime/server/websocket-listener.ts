/**
 * WebSocket: the binary protocol in binary messages. Our own small frame code serves it (see docs/decisions): the clients'
 * side of RFC 6455 is narrow here, and payloads go on to the connection as they arrive, unmasked in place.
 *
 * Classic messages form a byte stream. A VSR message is exactly one request; the connection does not depend on it, since the
 * request's own head says its size.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Logger } from '../../logger.ts'
import { ConnectionCount } from '../connection-count.ts'
import { KEEP_ALIVE } from '../keep-alive.ts'
import { watchHandshakes } from '../tls-handshakes.ts'
import { unacknowledgedBytesOf, unsentBytesOf } from '../unsent-bytes.ts'
import type { ByteSession, ByteTransport } from './byte-session.ts'
import { addressOf, closeServer, type ListenAddress, type Listener, listen } from './tcp-listener.ts'
import { CLOSE_NORMAL, encodeClose, encodeWebsocketFrame, OPCODE, WebsocketDecoder } from './websocket-frames.ts'

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** A frame of 64 MiB and then some: the connection's own limit comes first. */
const MAX_MESSAGE_BYTES = 72 * 1024 * 1024
/** A handshake is one small request without a body. */
const HANDSHAKE_TIMEOUT_MS = 10_000
const TIMEOUT_CHECK_MS = 1000
const MAX_HEAD_BYTES = 16 * 1024
/** Connections that may be in their handshake beside those that are through it; more are closed as they come. */
const MAX_HANDSHAKES = 64

export interface WebsocketListenerOptions extends ListenAddress {
  readonly maxConnections: number
  readonly logger: Logger
  /** `wss://` alone; absent: `ws://`. */
  readonly tls?: { readonly certificatePem: string; readonly privateKeyPem: string }
  accept(transport: ByteTransport): ByteSession
}

export interface WebsocketListener extends Listener {
  /** New connections get the new certificate; living ones keep theirs. Over TLS only. */
  replaceCertificate(certificatePem: string, privateKeyPem: string): void
}

/** @throws {EdgeError} EDGE_ADDRESS_IN_USE, EDGE_IO. */
export async function listenWebsocket(options: WebsocketListenerOptions): Promise<WebsocketListener> {
  const count = new ConnectionCount(options.maxConnections)
  const http = {
    headersTimeout: HANDSHAKE_TIMEOUT_MS,
    requestTimeout: HANDSHAKE_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    maxHeaderSize: MAX_HEAD_BYTES,
    noDelay: true,
  }
  const refusePlain: RequestListener = (_request, response) => {
    response.writeHead(426, { upgrade: 'websocket', connection: 'close', 'content-length': 0 }).end()
  }
  const { tls } = options
  const secured = tls === undefined ? null : createSecureServer({ ...http, ...pemsOf(tls) }, refusePlain)
  const server = secured ?? createServer(http, refusePlain)
  const endHandshakes = secured === null ? () => {} : watchHandshakes(secured)
  server.on('connection', (socket: Socket) => void socket.setKeepAlive(KEEP_ALIVE))
  server.maxConnections = options.maxConnections + MAX_HANDSHAKES
  server.on('drop', () => {
    count.refusedConnections++
    options.logger.warn('server.websocket.over_limit', { limit: server.maxConnections })
  })
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', (error: Error) => options.logger.debug('server.websocket.error', { error: error.message }))
    const key = keyOf(request)
    if (key === null) return refuse(socket, '400 Bad Request')
    if (!count.enter()) {
      options.logger.warn('server.websocket.over_limit', { limit: options.maxConnections })
      return refuse(socket, '503 Service Unavailable')
    }
    socket.once('close', () => count.left())
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`,
    )
    serve(socket, request.socket, head, options)
  })
  await listen(server, options, options.logger)
  const bound = server.address()
  return {
    host: options.host,
    port: typeof bound === 'object' && bound !== null ? bound.port : options.port,
    occupancy: count,
    replaceCertificate(certificatePem, privateKeyPem) {
      secured?.setSecureContext(pemsOf({ certificatePem, privateKeyPem }))
    },
    close() {
      const closed = closeServer(server)
      // Those still in their handshake; whoever is through it belongs to its session.
      server.closeAllConnections()
      endHandshakes()
      return closed
    },
  }
}

const pemsOf = (tls: { certificatePem: string; privateKeyPem: string }) => ({
  cert: tls.certificatePem,
  key: tls.privateKeyPem,
})

function serve(socket: Duplex, peer: Socket, head: Buffer, options: WebsocketListenerOptions): void {
  let closeCode = CLOSE_NORMAL
  const session = options.accept({
    kind: 'websocket',
    address: addressOf(peer),
    write: (bytes) => socket.write(encodeWebsocketFrame(OPCODE.binary, bytes)),
    get unsentBytes() {
      return unsentBytesOf(socket)
    },
    unacknowledgedBytes: () => unacknowledgedBytesOf(socket),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    end: () => void socket.end(encodeClose(closeCode)),
    destroy: () => void socket.destroy(),
  })
  const decoder = new WebsocketDecoder(
    {
      data: (bytesView) => session.receive(bytesView),
      ping(payload) {
        // The RFC asks for an answer to the newest ping only: a peer that does not read them piles up nothing here.
        if (!socket.writableNeedDrain) socket.write(encodeWebsocketFrame(OPCODE.pong, payload))
      },
      // What was asked before it is answered before the close; a peer that keeps its side open is the session's to end.
      closed(code) {
        closeCode = code
        session.ended()
      },
    },
    MAX_MESSAGE_BYTES,
  )
  socket.on('data', (bytes: Buffer) => decoder.receive(bytes))
  socket.on('end', () => session.ended())
  socket.on('drain', () => session.drained())
  socket.on('close', () => session.closed())
  if (head.length > 0) decoder.receive(head)
}

/** @returns the key of a version 13 handshake, null for anything else. */
function keyOf(request: IncomingMessage): string | null {
  const { upgrade, 'sec-websocket-key': key, 'sec-websocket-version': version } = request.headers
  const isHandshake = request.method === 'GET' && upgrade?.toLowerCase() === 'websocket' && version === '13'
  return isHandshake && typeof key === 'string' && /^[A-Za-z0-9+/]{22}==$/.test(key) ? key : null
}

function acceptOf(key: string): string {
  return createHash('sha1')
    .update(key + GUID)
    .digest('base64')
}

function refuse(socket: Duplex, status: string): void {
  // Destroyed then: a peer that keeps its side open would take a place among the handshakes for ever.
  socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`, () => socket.destroy())
}
