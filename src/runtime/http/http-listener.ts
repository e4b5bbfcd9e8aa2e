/**
 * The HTTP listener: `node:http` (or `node:https`) with bounds on connections, heads, bodies and time. It owns sockets
 * and timers, and knows no route.
 */
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Clock } from '../../clock.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import type { Certificate, CertificateWatch } from '../../quic-edge/index.ts'
import { parseAddress } from '../config/value.ts'
import { ConnectionCount, type Occupancy } from '../connection-count.ts'
import { KEEP_ALIVE } from '../keep-alive.ts'
import { openListenerCertificate } from '../listener-certificate.ts'
import { watchHandshakes } from '../tls-handshakes.ts'
import { unacknowledgedBytesOf, unsentBytesOf } from '../unsent-bytes.ts'
import type { HttpSettings } from './settings.ts'

export interface HttpListener {
  readonly host: string
  readonly port: number
  readonly occupancy: Occupancy
  /** What it serves now; null without TLS. */
  readonly certificate: Certificate | null
  /** Accepting, or why no longer. */
  readonly failure: EdgeError | null
  /** Stops accepting, lets running requests end, cuts what is left after `graceMs`. Idempotent. */
  close(graceMs?: number): Promise<void>
}

const MAX_HEAD_BYTES = 16 * 1024
const MAX_HEADERS = 100
/** How often timeouts of heads and requests are looked at. */
const TIMEOUT_CHECK_MS = 1000
const CLOSE_GRACE_MS = 3000
/** A peer that takes nothing of its answer is given up after this time: answers are held until they are taken. */
const ANSWER_STALL_MS = 30_000
/** What a peer gets whose bytes are no HTTP: nothing of its input comes back. */
const BAD_REQUESTS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'HTTP/1.1 431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: 'HTTP/1.1 408 Request Timeout',
}

export interface HttpListenerOptions {
  readonly settings: HttpSettings
  readonly onRequest: RequestListener
  readonly clock: Clock
  readonly logger: Logger
  /** SO_REUSEPORT. Default false. */
  readonly reusePort?: boolean | undefined
  /** Default `ANSWER_STALL_MS`. */
  readonly answerStallMs?: number
}

/** @throws {EdgeError} EDGE_ADDRESS_IN_USE, EDGE_CONFIG_INVALID when the certificate cannot be used, EDGE_IO. */
export async function listenHttp({
  settings,
  onRequest,
  clock,
  logger,
  reusePort = false,
  answerStallMs = ANSWER_STALL_MS,
}: HttpListenerOptions): Promise<HttpListener> {
  const { http, 'http.tls': tls } = settings
  const options = {
    maxHeaderSize: MAX_HEAD_BYTES,
    headersTimeout: http.header_timeout,
    requestTimeout: Math.max(http.request_timeout, http.header_timeout),
    keepAliveTimeout: http.idle_timeout,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    noDelay: true,
  }
  const source = { type: 'files', certificateFile: tls.cert_file, privateKeyFile: tls.key_file } as const
  const certificate = tls.enabled
    ? await openListenerCertificate({ listener: 'http', key: 'http.tls.cert_file', source, clock, logger })
    : null
  let endHandshakes = (): void => {}
  const server = certificate === null ? createServer(options, onRequest) : createSecure(certificate)
  server.maxConnections = http.max_connections
  server.maxHeadersCount = MAX_HEADERS
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => refuse(error, socket))
  const count = new ConnectionCount(http.max_connections)
  server.on('drop', () => {
    count.refusedConnections++
    logger.warn('http.connection.refused', { max_connections: http.max_connections })
  })
  server.prependListener('request', (_request, response) => {
    response.once('prefinish', () => limitSilence(response, answerStallMs))
  })
  const { host, port } = await bind(server, http.address, reusePort)
  const onClosing = (): void => {
    certificate?.close()
    endHandshakes()
  }
  return new Listener({ server, host, port, count, certificate, onClosing, logger })

  function createSecure(watched: CertificateWatch): TlsServer {
    const secure = createTlsServer({ ...options, ...secretsOf(watched.current) }, onRequest)
    endHandshakes = watchHandshakes(secure)
    watched.watch((renewed) => secure.setSecureContext(secretsOf(renewed)))
    return secure
  }
}

/**
 * The socket's own limit of silence while an answer goes out; when it is out, that of an idle connection follows. Node does not see
 * all that goes on, least of all over TLS: whether anything was taken since the last time, we look ourselves.
 */
function limitSilence(response: ServerResponse, stallMs: number): void {
  const { socket } = response
  if (socket === null) return
  let before: readonly [number, number | null] | null = null
  response.on('timeout', () => {
    const now = [unsentBytesOf(socket), unacknowledgedBytesOf(socket)] as const
    if (before?.[0] === now[0] && before[1] === now[1]) socket.destroy()
    else socket.setTimeout(stallMs)
    before = now
  })
  socket.setTimeout(stallMs)
}

const secretsOf = ({ certificatePem, privateKeyPem }: Certificate) => ({ cert: certificatePem, key: privateKeyPem })

interface ListenerParts {
  readonly server: Server | TlsServer
  readonly host: string
  readonly port: number
  readonly count: ConnectionCount
  readonly certificate: CertificateWatch | null
  readonly onClosing: () => void
  readonly logger: Logger
}

class Listener implements HttpListener {
  readonly host: string
  readonly port: number
  readonly occupancy: ConnectionCount
  failure: EdgeError | null = null
  private readonly server: Server | TlsServer
  private readonly secrets: CertificateWatch | null
  private readonly onClosing: () => void
  private closing: Promise<void> | null = null

  constructor({ server, host, port, count, certificate, onClosing, logger }: ListenerParts) {
    this.server = server
    this.host = host
    this.port = port
    this.occupancy = count
    this.secrets = certificate
    this.onClosing = onClosing
    server.on('error', (cause) => {
      this.failure = toEdgeError(cause)
      logger.error('http.listener.failed', { reason: cause.message })
    })
    this.countConnections()
    this.closeWhenAnswered()
  }

  get certificate(): Certificate | null {
    return this.secrets?.current ?? null
  }

  close(graceMs = CLOSE_GRACE_MS): Promise<void> {
    this.closing ??= new Promise((resolve) => {
      const cut = setTimeout(() => this.server.closeAllConnections(), graceMs)
      this.server.close(() => {
        clearTimeout(cut)
        resolve()
      })
      this.server.closeIdleConnections()
      this.onClosing()
    })
    return this.closing
  }

  /** While closing, a kept connection ends with the answer it waited for. */
  private closeWhenAnswered(): void {
    this.server.on('request', (_request, response) => {
      response.once('close', () => {
        // The connection counts as idle only after this event.
        if (this.closing !== null) setImmediate(() => this.server.closeIdleConnections())
      })
    })
  }

  private countConnections(): void {
    this.server.on('connection', (socket: Socket) => {
      socket.setKeepAlive(KEEP_ALIVE)
      this.occupancy.openConnections++
      socket.once('close', () => this.occupancy.left())
    })
  }
}

function bind(
  server: Server | TlsServer,
  address: string,
  reusePort: boolean,
): Promise<{ host: string; port: number }> {
  const parsed = parseAddress(address)
  if (parsed === null) throw new EdgeError('EDGE_CONFIG_INVALID', `http.address: found ${address}, expected host:port`)
  return new Promise((resolve, reject) => {
    const failed = (cause: NodeJS.ErrnoException): void => {
      const code = cause.code === 'EADDRINUSE' ? 'EDGE_ADDRESS_IN_USE' : 'EDGE_IO'
      reject(new EdgeError(code, `http.address ${address}: ${cause.message}`, { cause }))
    }
    server.once('error', failed)
    server.listen({ port: parsed.port, host: parsed.host, reusePort }, () => {
      server.off('error', failed)
      const bound = server.address() as AddressInfo
      resolve({ host: bound.address, port: bound.port })
    })
  })
}

function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const statusLine = BAD_REQUESTS[error.code ?? ''] ?? 'HTTP/1.1 400 Bad Request'
  socket.end(`${statusLine}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`, () => socket.destroy())
}
