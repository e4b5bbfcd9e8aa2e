/**
 * WebTransport: QUIC over UDP, and HTTP/2 over TCP on the same port number where UDP is blocked. A dial tries QUIC first and
 * the other beside it after two and a half seconds; the caller sees which it got, and may look for a way back with `probeQuic`.
 *
 * One session carries one bidirectional stream here: the protocols above it put everything on it.
 */
import { systemClock } from '../../clock.ts'
import { EdgeError, messageOf, toEdgeError } from '../../errors.ts'
import { ByteStream, loadWebTransport, type PackageClientSession } from '../../quinn-transport/index.ts'
import { certificateTrouble } from './certificate-trouble.ts'
import { HEAD_START_MS, inTurns, MAX_ADDRESSES } from './connect-host.ts'
import { type HostAddress, lookupHost } from './lookup.ts'
import { networkNow } from './network.ts'
import { QuicTrouble } from './quic-trouble.ts'
import { type Attempt, firstOf } from './race.ts'
import type { Dial, DialFailureReason, Transport, TransportEvents } from './transport.ts'

export interface WebTransportOptions {
  readonly host: string
  readonly port: number
  /** `/iggy` or `/edge`. */
  readonly path: string
  /** SHA-256 of the server's certificate, hex; '' = the system's authorities decide. */
  readonly certificateHash: string
  readonly connectTimeoutMs: number
  /** Which carriers may be used. */
  readonly carrier: 'any' | Carrier
}

type Carrier = 'quic' | 'http2'

interface OpenSession {
  readonly session: PackageClientSession
  readonly stream: Awaited<ReturnType<PackageClientSession['createBidirectionalStream']>>
  readonly carrier: Carrier
  readonly url: string
}

export interface WebTransportSession extends Transport {
  readonly carrier: Carrier
  /** 0 where there are none. */
  readonly maxDatagramBytes: number
  /** Fire and forget; false when it was dropped here. */
  sendDatagram(bytes: Uint8Array): boolean
}

/** UDP that is blocked loses packets in silence: after this the TCP carrier is tried too. */
const QUIC_HEAD_START_MS = 2500
/** How long giving up a stream may take before the session is closed under it. */
const LET_GO_MS = 500
/** Datagrams that wait for the socket; beyond it they are dropped, as they are anyway on a full link. */
const MAX_QUEUED_DATAGRAMS = 64

/** Of the whole process: connections to one server come and go, and each would find out anew. */
const quicTrouble = new QuicTrouble()

/** @throws {EdgeError} EDGE_UPSTREAM_UNREACHABLE, EDGE_UPSTREAM_TIMEOUT. */
export async function dialWebTransport(
  options: WebTransportOptions,
  events: TransportEvents,
  signal: AbortSignal,
): Promise<WebTransportSession> {
  const { host, connectTimeoutMs } = options
  const place = placeOf(options)
  const isTroubled = options.carrier === 'any' && quicTrouble.isKnown(place, systemClock.monotonicUs())
  const failures: unknown[] = []
  try {
    // Of a name that leads nowhere the carriers tell no more than that there was no handshake.
    const addresses = await withLimit(lookupHost(host, signal), connectTimeoutMs, signal, host)
    const start = (carrier: Carrier): Attempt<OpenSession> => {
      const attempt = attemptOver(carrier, { ...options, addresses }, signal)
      attempt.outcome.catch((error: unknown) => failures.push(error))
      return attempt
    }
    const open = await firstOf(carriersOf(options, isTroubled), start, QUIC_HEAD_START_MS, signal)
    if (open.carrier === 'quic') quicTrouble.forget(place)
    else if (options.carrier === 'any' && !isTroubled) quicTrouble.remember(place, systemClock.monotonicUs())
    return new SessionTransport(open, events)
  } catch (error) {
    throw toEdgeError(failures.findLast(isTelling) ?? error)
  }
}

function carriersOf({ carrier }: WebTransportOptions, isTroubled: boolean): readonly Carrier[] {
  if (carrier !== 'any') return [carrier]
  return isTroubled ? ['http2', 'quic'] : ['quic', 'http2']
}

/** What holds for one way to a server holds no longer in another network. */
const placeOf = ({ host, port }: WebTransportOptions): string => `${host}:${port} from ${networkNow()}`

/** Both carriers meet the same certificate; who was silent tells less. */
function isTelling(error: unknown): boolean {
  const reason = error instanceof EdgeError ? error.details.reason : undefined
  return reason === 'certificate' || reason === 'clock'
}

/** The binary protocol's view of it: one byte stream. */
export function webTransportDial(options: WebTransportOptions): Dial {
  return (events, signal) => dialWebTransport(options, events, signal)
}

/** @returns whether QUIC gets through now: for a session on HTTP/2 that would rather leave it. */
export async function probeQuic(options: WebTransportOptions, signal: AbortSignal): Promise<boolean> {
  try {
    // So long, since a dial would take the other carrier then.
    const limited = { ...options, connectTimeoutMs: QUIC_HEAD_START_MS }
    const addresses = await withLimit(lookupHost(options.host, signal), QUIC_HEAD_START_MS, signal, options.host)
    const { session } = await attemptOver('quic', { ...limited, addresses }, signal).outcome
    closeQuietly(session, 0)
    quicTrouble.forget(placeOf(options))
    return true
  } catch {
    return false
  }
}

interface Target extends WebTransportOptions {
  readonly addresses: readonly HostAddress[]
}

function attemptOver(carrier: Carrier, target: Target, signal: AbortSignal): Attempt<OpenSession> {
  return attempt(signal, (limit) => (carrier === 'quic' ? openQuic(target, limit) : openHttp2(target, limit)))
}

function attempt(signal: AbortSignal, open: (signal: AbortSignal) => Promise<OpenSession>): Attempt<OpenSession> {
  const stop = new AbortController()
  const outcome = open(AbortSignal.any([signal, stop.signal]))
  return {
    outcome,
    abandon() {
      stop.abort()
      outcome.then(({ session }) => closeQuietly(session, 0)).catch(() => {}) // told to the race
    },
  }
}

/**
 * The addon takes the first address of a name and no other. So each is dialed by itself, where the certificate is known by
 * its hash; else it must be the name that is dialed.
 */
function openQuic(target: Target, signal: AbortSignal): Promise<OpenSession> {
  const { addresses, certificateHash, host } = target
  if (addresses.length < 2 || certificateHash === '') return openSession('quic', host, target, signal)
  const start = ({ address }: HostAddress): Attempt<OpenSession> =>
    attempt(signal, (limit) => openSession('quic', address, target, limit))
  return firstOf(inTurns(addresses).slice(0, MAX_ADDRESSES), start, HEAD_START_MS, signal)
}

async function openHttp2(target: Target, signal: AbortSignal): Promise<OpenSession> {
  try {
    return await openSession('http2', target.host, target, signal)
  } catch (error) {
    if (signal.aborted || toEdgeError(error).code === 'EDGE_UPSTREAM_TIMEOUT') throw error
    throw (await certificateTrouble(target, signal)) ?? error
  }
}

async function openSession(
  carrier: Carrier,
  host: string,
  options: WebTransportOptions,
  signal: AbortSignal,
): Promise<OpenSession> {
  const timeoutMs = options.connectTimeoutMs
  const { WebTransport } = await loadWebTransport()
  const url = `https://${host.includes(':') ? `[${host}]` : host}:${options.port}${options.path}`
  const hash = options.certificateHash
  let failure: unknown
  const session = new WebTransport(url, {
    ...(hash === '' ? {} : { serverCertificateHashes: [{ algorithm: 'sha-256', value: Uint8Array.fromHex(hash) }] }),
    ...(carrier === 'quic' ? { requireUnreliable: true } : { forceReliable: true }),
    quicConnectTimeout: timeoutMs,
    webTransportConnectTimeout: timeoutMs,
    onConnectFailed: (error) => {
      failure = error
    },
  })
  // Both are told to whoever waits below; unheard they would end the process.
  session.ready.catch(() => {})
  session.closed.catch(() => {})
  try {
    await withLimit(session.ready, timeoutMs, signal, url)
    const stream = await withLimit(session.createBidirectionalStream(), timeoutMs, signal, url)
    return { session, stream, carrier, url }
  } catch (cause) {
    closeQuietly(session, 0)
    throw dialError(failure ?? cause, url, hash === '' ? `${carrier}, without certificate_hash` : carrier)
  }
}

async function withLimit<T>(work: Promise<T>, timeoutMs: number, signal: AbortSignal, url: string): Promise<T> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(timeoutMs))])
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = (): void => {
    reject(new EdgeError('EDGE_UPSTREAM_TIMEOUT', `no session with ${url} within ${timeoutMs} ms`))
  }
  if (limit.aborted) abort()
  limit.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    limit.removeEventListener('abort', abort)
    work.catch(() => {}) // told once, above
  }
}

function dialError(cause: unknown, url: string, carrier: string): EdgeError {
  if (cause instanceof EdgeError) return cause
  const text = messageOf(cause)
  return new EdgeError('EDGE_UPSTREAM_UNREACHABLE', `${url} over ${carrier}: ${text}`, {
    cause,
    details: { reason: reasonOf(text) },
  })
}

/** Words of the TLS library under the addon. */
function reasonOf(text: string): DialFailureReason {
  if (!text.includes('invalid peer certificate')) return 'route'
  return /Expired|NotValidYet/.test(text) ? 'clock' : 'certificate'
}

function closeQuietly(session: PackageClientSession, closeCode: number): void {
  try {
    session.close({ closeCode, reason: '' })
  } catch {
    // Closed already.
  }
}

class SessionTransport implements WebTransportSession {
  readonly peer: string
  readonly carrier: Carrier
  readonly maxDatagramBytes: number
  readonly #session: PackageClientSession
  readonly #stream: ByteStream
  readonly #events: TransportEvents
  readonly #datagrams: WritableStreamDefaultWriter<Uint8Array> | null
  #queuedDatagrams = 0
  #isPaused = false
  #isClosed = false

  constructor({ session, stream, carrier, url }: OpenSession, events: TransportEvents) {
    this.#session = session
    this.#events = events
    this.carrier = carrier
    this.peer = url
    this.maxDatagramBytes = carrier === 'quic' ? session.datagrams.maxDatagramSize : 0
    this.#datagrams = carrier === 'quic' ? this.#openDatagrams() : null
    this.#stream = new ByteStream(
      stream,
      { received: () => !this.#isPaused },
      {
        data: (bytesView) => events.data(bytesView),
        ended: () => this.#close(null),
        drained: () => events.drained(),
        closed: (error) => this.#close(error),
      },
    )
    this.#stream.start()
    void this.#watch()
  }

  write(bytes: Uint8Array): boolean {
    return this.#stream.write(bytes)
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#stream.resume()
  }

  sendDatagram(bytes: Uint8Array): boolean {
    const writer = this.#datagrams
    const fits = bytes.byteLength <= this.maxDatagramBytes && this.#queuedDatagrams < MAX_QUEUED_DATAGRAMS
    if (writer === null || !fits || this.#isClosed) return false
    this.#queuedDatagrams += 1
    writer.write(bytes).then(
      () => {
        this.#queuedDatagrams -= 1
      },
      () => {}, // the session's end is told by `closed`
    )
    return true
  }

  end(): void {
    this.#stream.end()
  }

  abort(): void {
    this.#close(null)
  }

  #openDatagrams(): WritableStreamDefaultWriter<Uint8Array> {
    const writer = this.#session.datagrams.createWritable().getWriter() as WritableStreamDefaultWriter<Uint8Array>
    writer.closed.catch(() => {})
    writer.ready.catch(() => {})
    return writer
  }

  async #watch(): Promise<void> {
    try {
      await this.#session.closed
      this.#close(null)
    } catch (cause) {
      const text = toEdgeError(cause).message
      this.#close(new EdgeError('EDGE_CONNECTION_LOST', `${this.peer}: ${text}`, { cause }))
    }
  }

  #close(error: EdgeError | null): void {
    if (this.#isClosed) return
    this.#isClosed = true
    void this.#letGo()
    this.#events.closed(error)
  }

  /**
   * First the stream, then the session: an HTTP/2 session that is closed while its stream carries data sends Node's HTTP/2
   * code into a loop without end. A peer that does not read holds the stream up, hence the limit.
   */
  async #letGo(): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LET_GO_MS)
    })
    await Promise.race([this.#stream.reset(0), limit])
    clearTimeout(timer)
    closeQuietly(this.#session, 0)
  }
}
