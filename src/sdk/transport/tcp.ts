/**
 * TCP and TLS. Tries all addresses of a host, so that a broken IPv6 route costs a quarter of a second, and resets rather than
 * closes a connection that is given up.
 */
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { EdgeError, messageOf } from '../../errors.ts'
import { refuseOtherThanFile } from '../../file-kind.ts'
import { connectToHost } from './connect-host.ts'
import { DetachedSocket } from './detached-socket.ts'
import type { Dial, DialFailureReason, Transport, TransportEvents } from './transport.ts'

export interface TcpOptions {
  readonly host: string
  readonly port: number
  readonly tls: boolean
  readonly tlsDomain: string
  readonly tlsCaFile: string
  readonly tlsValidateCertificate: boolean
  readonly nodelay: boolean
  readonly connectTimeoutMs: number
}

/** A silent peer is noticed by the protocol's own pings; this is for connections that nobody pings. */
const KEEP_ALIVE_DELAY_MS = 60_000
/** How long a connection that we end delivers what was written, and then waits for the peer's end. */
const FLUSH_TIMEOUT_MS = 10_000
const END_TIMEOUT_MS = 1000
const CLOCK_CODES = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])

/** A TCP socket, and what is read and written: itself, or TLS over it. */
export interface OpenSocket {
  readonly raw: Socket
  readonly socket: Socket
}

export function tcpDial(options: TcpOptions): Dial {
  return async (events, signal) => new TcpTransport(await openSocket(options, signal), events)
}

/** @throws {EdgeError} as a dial. */
export async function openSocket(options: TcpOptions, signal: AbortSignal): Promise<OpenSocket> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(options.connectTimeoutMs))])
  const raw = await connected(options, limit)
  try {
    raw.setNoDelay(options.nodelay)
    return { raw, socket: options.tls ? await startTls(raw, options, limit) : raw }
  } catch (error) {
    raw.destroy()
    throw error
  }
}

async function connected(options: TcpOptions, limit: AbortSignal): Promise<Socket> {
  try {
    return await abortable(connectToHost(options.host, options.port, limit), limit, options)
  } catch (error) {
    throw error instanceof EdgeError ? error : dialError(error as Error, options)
  }
}

async function startTls(raw: Socket, options: TcpOptions, limit: AbortSignal): Promise<TLSSocket> {
  const ca = options.tlsCaFile === '' ? undefined : await readCa(options.tlsCaFile)
  const socket = connectTls({
    socket: new DetachedSocket(raw),
    servername: serverName(options),
    rejectUnauthorized: options.tlsValidateCertificate,
    ...(ca === undefined ? {} : { ca }),
  })
  await abortable(secured(socket, options), limit, options)
  return socket
}

/** An address is no server name: then the certificate is checked against the address itself. */
function serverName(options: TcpOptions): string {
  const name = options.tlsDomain === '' ? options.host : options.tlsDomain
  return /^[\d.]+$|:/.test(name) ? '' : name
}

async function readCa(path: string): Promise<string> {
  try {
    refuseOtherThanFile(path)
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new EdgeError('EDGE_CONFIG_INVALID', `tls_ca_file ${path} cannot be read: ${messageOf(cause)}`, { cause })
  }
}

function secured(socket: TLSSocket, options: TcpOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const onError = (error: Error): void => reject(dialError(error, options))
  const onClose = (): void => reject(dialError(new Error('closed before it was ready'), options))
  socket.once('secureConnect', resolve).on('error', onError).on('close', onClose)
  return promise.finally(() => socket.off('close', onClose))
}

async function abortable<T>(work: Promise<T>, signal: AbortSignal, options: TcpOptions): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = (): void => {
    const address = `${options.host}:${options.port}`
    reject(new EdgeError('EDGE_UPSTREAM_TIMEOUT', `no connection to ${address} within ${options.connectTimeoutMs} ms`))
  }
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', abort)
    work.catch(() => {}) // told once, above
  }
}

function dialError(cause: Error & { code?: string }, options: TcpOptions): EdgeError {
  const code = cause.code ?? ''
  const reason: DialFailureReason = CLOCK_CODES.has(code) ? 'clock' : isCertificateCode(code) ? 'certificate' : 'route'
  const text = tlsTroubleOf(cause) ?? cause.message
  return new EdgeError('EDGE_UPSTREAM_UNREACHABLE', `${options.host}:${options.port}: ${text}`, {
    cause,
    details: { reason, systemCode: code },
  })
}

/** OpenSSL's own words are a line of source positions; its reason is the end of them. */
function tlsTroubleOf({ code, reason }: Error & { code?: string; reason?: unknown }): string | null {
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') return 'no TLS is spoken there'
  return code?.startsWith('ERR_SSL_') && typeof reason === 'string' ? `TLS: ${reason}` : null
}

function isCertificateCode(code: string): boolean {
  return /CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|SIGNATURE/.test(code)
}

class TcpTransport implements Transport {
  readonly peer: string
  readonly #raw: Socket
  readonly #socket: Socket
  readonly #events: TransportEvents
  #error: EdgeError | null = null

  constructor({ raw, socket }: OpenSocket, events: TransportEvents) {
    this.#raw = raw
    this.#socket = socket
    this.#events = events
    this.peer = `${raw.remoteAddress ?? ''}:${raw.remotePort ?? 0}`
    socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS)
    socket.on('data', (chunk: Buffer) => events.data(chunk))
    socket.on('drain', () => events.drained())
    socket.on('error', (cause) => {
      this.#error = new EdgeError('EDGE_CONNECTION_LOST', `${this.peer}: ${cause.message}`, { cause })
    })
    socket.on('close', () => this.#events.closed(this.#error))
  }

  write(bytes: Uint8Array): boolean {
    return this.#socket.write(bytes)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  end(): void {
    const destroyAfter = (ms: number) => setTimeout(() => this.#socket.destroy(), ms).unref()
    this.#socket.end()
    // A peer that does not read, or does not end its side, would keep the socket for ever, and the program with it.
    const timer = destroyAfter(FLUSH_TIMEOUT_MS)
    this.#socket.once('finish', () => {
      clearTimeout(timer)
      destroyAfter(END_TIMEOUT_MS)
    })
  }

  abort(): void {
    this.#raw.resetAndDestroy()
    this.#socket.destroy()
  }
}
