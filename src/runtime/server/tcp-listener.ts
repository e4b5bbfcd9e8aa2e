/**
 * TCP, and TLS on the same port where it is configured: told apart by the first bytes, since Iggy's clients know one port.
 *
 * Connections beyond the limit are closed at once; `TCP_NODELAY` is on, or a request costs 40 ms of delayed ack.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import { EdgeError, messageOf } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import { detectProtocol, mayBecomeTls } from '../../sdk/wire/detect.ts'
import { ConnectionCount, type Occupancy } from '../connection-count.ts'
import { KEEP_ALIVE } from '../keep-alive.ts'
import { unacknowledgedBytesOf, unsentBytesOf } from '../unsent-bytes.ts'
import type { ByteSession, ByteTransport } from './byte-session.ts'
import { FIRST_BYTES_TIMEOUT_MS, HELLO_TIMEOUT_MS } from './defaults.ts'
import { readShared } from './shared-read.ts'

export interface ListenAddress {
  readonly host: string
  readonly port: number
  /** SO_REUSEPORT: whoever reserved the port keeps it reserved. Default false: a second server on it is noticed. */
  readonly reusePort?: boolean
}

export interface TcpListenerOptions extends ListenAddress {
  readonly maxConnections: number
  readonly logger: Logger
  readonly tls: { readonly certificatePem: string; readonly privateKeyPem: string; readonly isRequired: boolean } | null
  accept(transport: ByteTransport): ByteSession
}

export interface Listener extends ListenAddress {
  readonly occupancy: Occupancy
  /** Stops accepting; connections are their owner's. Idempotent. */
  close(): Promise<void>
}

export interface TcpListener extends Listener {
  /** New connections get the new certificate; living ones keep theirs. @throws EDGE_CONFIG_INVALID, and keeps the old one. */
  replaceCertificate(certificatePem: string, privateKeyPem: string): void
}

/** @throws {EdgeError} EDGE_ADDRESS_IN_USE, EDGE_CONFIG_INVALID for a certificate that cannot be used, EDGE_IO. */
export async function listenTcp(options: TcpListenerOptions): Promise<TcpListener> {
  let secureContext = options.tls === null ? null : secureContextOf(options.tls)
  const count = new ConnectionCount(options.maxConnections)
  /** Connections that are nobody's yet: they have not told whether TLS comes. */
  const silent = new Set<Socket>()
  // Paused: whoever serves the socket decides how it is read.
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) => {
    if (!count.enter()) {
      options.logger.warn('server.connection.over_limit', { peer: addressOf(socket), limit: options.maxConnections })
      socket.destroy()
      return
    }
    socket.setKeepAlive(KEEP_ALIVE)
    const context = secureContext
    const served = context === null ? servePlain(socket, options) : sniff(socket, options, context, silent)
    served.once('close', () => count.left())
  })
  await listen(server, options, options.logger)
  const bound = server.address()
  const port = typeof bound === 'object' && bound !== null ? bound.port : options.port
  return {
    host: options.host,
    port,
    occupancy: count,
    replaceCertificate(certificatePem, privateKeyPem) {
      secureContext = secureContextOf({ certificatePem, privateKeyPem })
    },
    close() {
      const closed = closeServer(server)
      for (const socket of silent) socket.destroy()
      return closed
    },
  }
}

/** @throws {EdgeError} EDGE_ADDRESS_IN_USE, EDGE_IO. */
export function listen(
  server: Server,
  { host, port, reusePort = false }: ListenAddress,
  logger: Logger,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const code = error.code === 'EADDRINUSE' ? 'EDGE_ADDRESS_IN_USE' : 'EDGE_IO'
      reject(new EdgeError(code, `listening on ${host}:${port}: ${error.message}`, { cause: error }))
    }
    server.once('error', failed)
    server.listen({ host, port, reusePort }, () => {
      server.off('error', failed)
      // One connection could not be accepted (no file descriptor, no memory): it must not end all others.
      server.on('error', (error) => logger.warn('server.accept.failed', { port, error: error.message }))
      resolve()
    })
  })
}

export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (server.listening) server.close(() => resolve())
    else resolve()
  })
}

/** Reads into the buffer that all plain connections share. */
function servePlain(accepted: Socket, options: TcpListenerOptions): Socket {
  // The session needs the socket's transport, and the socket the session's reader: the first read comes later than both.
  let session: ByteSession | null = null
  const socket = readShared(accepted, (view) => session?.receive(view))
  session = serve(socket, options)
  socket.resume()
  return socket
}

/** Waits for the first bytes, then gives them to whoever they are for. */
function sniff(socket: Socket, options: TcpListenerOptions, secureContext: SecureContext, silent: Set<Socket>): Socket {
  logErrors(socket, options.logger)
  silent.add(socket)
  let bytes: Buffer = Buffer.alloc(0)
  // A peer that only looked whether somebody listens: half of its connection would stay.
  const leave = () => void socket.destroy()
  // Of one that stopped after a byte or two, the session says what they were.
  const stop = () => (bytes.length === 0 ? leave() : decide())
  const look = (piece: Buffer): void => {
    bytes = bytes.length === 0 ? piece : Buffer.concat([bytes, piece])
    if (mayBecomeTls(bytes)) socket.setTimeout(HELLO_TIMEOUT_MS)
    else decide()
  }
  const decide = (): void => {
    socket.setTimeout(0)
    socket.off('data', look)
    socket.off('timeout', stop)
    socket.off('end', leave)
    silent.delete(socket)
    socket.pause()
    socket.unshift(bytes)
    if (detectProtocol(bytes) === 'tls') {
      const secured = new TLSSocket(socket, { isServer: true, secureContext })
      secured.on('error', () => socket.destroy())
      serveData(secured, options)
    } else if (options.tls?.isRequired === true) {
      options.logger.warn('server.connection.tls_required', { peer: addressOf(socket) })
      socket.destroy()
    } else {
      serveData(socket, options)
      socket.resume()
    }
  }
  socket.setTimeout(FIRST_BYTES_TIMEOUT_MS, stop)
  socket.once('end', leave)
  socket.once('close', () => silent.delete(socket))
  socket.on('data', look)
  socket.resume()
  return socket
}

function serveData(socket: Socket, options: TcpListenerOptions): void {
  const session = serve(socket, options)
  socket.on('data', (bytes: Buffer) => session.receive(bytes))
}

/** Everything but the reading. */
function serve(socket: Socket, options: TcpListenerOptions): ByteSession {
  logErrors(socket, options.logger)
  const session = options.accept(transportOf(socket, () => session.drained()))
  socket.on('end', () => session.ended())
  socket.on('close', () => session.closed())
  return session
}

/** An error without a listener would end the process; the close that follows does the work. */
function logErrors(socket: Socket, logger: Logger): void {
  socket.on('error', (error) =>
    logger.debug('server.connection.error', { peer: addressOf(socket), error: error.message }),
  )
}

const NOTHING = new Uint8Array(0)

function transportOf(socket: Socket, onDrained: () => void): ByteTransport {
  return {
    kind: 'tcp',
    address: addressOf(socket),
    write(bytesView) {
      socket.write(bytesView)
      if (socket.writableLength === 0) return true
      // The socket tells only of large backlogs that they are gone; an empty write is done when those before it are.
      socket.write(NOTHING, (error) => {
        // Behind it another write may be under way, which has its own.
        if (error == null && socket.writableLength === 0) onDrained()
      })
      return false
    },
    get unsentBytes() {
      return unsentBytesOf(socket)
    },
    unacknowledgedBytes: () => unacknowledgedBytesOf(socket),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    end: () => void socket.end(),
    destroy: () => void socket.destroy(),
  }
}

export function addressOf(socket: Socket): string {
  const { remoteAddress, remotePort, remoteFamily } = socket
  if (remoteAddress === undefined) return 'unknown'
  return remoteFamily === 'IPv6' ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`
}

export function secureContextOf(tls: { certificatePem: string; privateKeyPem: string }): SecureContext {
  try {
    return createSecureContext({ cert: tls.certificatePem, key: tls.privateKeyPem })
  } catch (cause) {
    const reason = messageOf(cause)
    throw new EdgeError('EDGE_CONFIG_INVALID', `TLS certificate and key: ${reason}`, { cause })
  }
}
