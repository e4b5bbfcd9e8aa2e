/**
 * QUIC and WebTransport at the edge: sessions, streams, credit, certificates. Knows bytes, not commands.
 *
 * An edge for WebTransport listens twice on one port number: over QUIC on UDP, and the same sessions over HTTP/2 on TCP for
 * networks that block UDP. Both share one admission and one certificate. One for plain QUIC listens on UDP alone, with the
 * engine of our own: a session is a QUIC connection.
 */
import { randomBytes } from 'node:crypto'
import { type Clock, systemClock } from '../clock.ts'
import { EdgeError } from '../errors.ts'
import { type Logger, silentLogger } from '../logger.ts'
import { Admission } from './core/admission.ts'
import { limitsOf, plainLimitsOf, QUIC_EDGE_DEFAULTS } from './defaults.ts'
import { createIdentity } from './engine/tls/identity.ts'
import { type Certificate, type CertificateSource, loadCertificate } from './io/certificate.ts'
import { CertificateWatch } from './io/certificate-watch.ts'
import type { RetryPolicy } from './io/engine-driver.ts'
import { createHttp2Driver } from './io/http2-driver.ts'
import { createWebTransportDriver } from './io/webtransport-driver.ts'
import type {
  ListenOptions,
  QuicDriver,
  QuicListener,
  QuicSession,
  QuicSessionEvents,
  QuicTraffic,
  SessionGate,
  SessionLimits,
  SessionRequest,
} from './ports.ts'

export { hostOf } from './core/admission.ts'
export { limitsOf, plainLimitsOf, QUIC_EDGE_DEFAULTS } from './defaults.ts'
export { type Certificate, type CertificateSource, loadCertificate } from './io/certificate.ts'
export { CertificateWatch } from './io/certificate-watch.ts'
export * from './ports.ts'
export { QUIC_SETTINGS, WEBTRANSPORT_SETTINGS } from './settings.ts'

const EDGE_ID_SIZE = 16

interface EdgeOptions {
  readonly host: string
  /** 0 takes a number that is free for UDP and TCP. */
  readonly port: number
  readonly certificate: CertificateSource
  readonly limits?: SessionLimits
  readonly clock?: Clock
  /** While it is false a certificate of our own is not renewed. */
  readonly isClockTrusted?: () => boolean
  readonly logger?: Logger
  /** How often the certificate is looked at; for tests. */
  readonly certificateCheckMs?: number
}

export interface QuicEdgeOptions extends EdgeOptions {
  readonly hasTcpFallback: boolean
}

export interface PlainQuicOptions extends EdgeOptions {
  /** When a client proves its address before anything is kept for it: while many handshakes are under way, or ever. */
  readonly retry: RetryPolicy
  readonly reusePort?: boolean
  /**
   * The same for the next process of this edge, and for no other edge, not even one with the same private key. By default drawn for
   * this process alone: peers of the last one are not told that their connections are gone.
   */
  readonly edgeIdBytes?: Uint8Array
}

/** Who serves the sessions of one path. */
export interface PathHandler {
  /** @returns the handlers of the session; null where it is refused, and was closed with the reason. */
  opened(session: QuicSession): QuicSessionEvents | null
}

export interface QuicEdgeHandlers {
  /** By URL path, such as `/iggy`; others are answered with 404. */
  readonly paths: Readonly<Record<string, PathHandler>>
}

export interface QuicEdge {
  readonly host: string
  readonly port: number
  /** Names of the drivers that listen. */
  readonly driverNames: readonly string[]
  readonly certificate: Certificate
  readonly sessionCount: number
  readonly refusedCount: number
  /** Why one of its drivers no longer listens; empty while all do. */
  readonly failure: string
  /** What its engine counts; null where it does not. */
  traffic(): QuicTraffic | null
  /** Looks for a new certificate now. @returns whether there was one. */
  reloadCertificate(): Promise<boolean>
  /** Ends all sessions with `code`; resolves within about twice `graceMs`. Idempotent. */
  close(options?: { code?: number; graceMs?: number }): Promise<void>
}

/**
 * Starts listening; resolves when peers can connect.
 *
 * @throws EDGE_ADDRESS_IN_USE, EDGE_CONFIG_INVALID (certificate), EDGE_FEATURE_MISSING (no QUIC on this system), EDGE_IO.
 */
export async function startQuicEdge(options: QuicEdgeOptions, handlers: QuicEdgeHandlers): Promise<QuicEdge> {
  const clock = options.clock ?? systemClock
  const drivers = [await createWebTransportDriver(clock)]
  // TCP first: it can tell which port it got, and UDP then takes the same number.
  if (options.hasTcpFallback) drivers.unshift(await createHttp2Driver(clock))
  return start('webtransport', options, drivers, handlers)
}

/**
 * Starts listening for plain QUIC, without ALPN: there are no paths, `handler` serves all sessions.
 *
 * @throws as `startQuicEdge`.
 */
export async function startPlainQuic(options: PlainQuicOptions, handler: PathHandler): Promise<QuicEdge> {
  // The engine is large, and most edges do without it.
  const { createEngineDriver, PLAIN_QUIC_PATH } = await import('./io/engine-driver.ts')
  const { clock = systemClock, logger = silentLogger, retry, edgeIdBytes = randomBytes(EDGE_ID_SIZE) } = options
  const drivers = [createEngineDriver({ clock, logger, retry, edgeIdBytes })]
  const handlers = { paths: { [PLAIN_QUIC_PATH]: handler } }
  return await start('quic', { limits: plainLimitsOf(), ...options }, drivers, handlers)
}

/** What plain QUIC would refuse. @throws EDGE_CONFIG_INVALID: a key of a kind that is not spoken there. */
export function checkPlainQuicKey(certificatePem: string, privateKeyPem: string): void {
  createIdentity(certificatePem, privateKeyPem)
}

async function start(
  name: string,
  options: EdgeOptions & { readonly reusePort?: boolean },
  drivers: readonly QuicDriver[],
  handlers: QuicEdgeHandlers,
): Promise<QuicEdge> {
  const { host, port, clock = systemClock, logger = silentLogger, limits = limitsOf(), reusePort = false } = options
  const load = () => loadCertificate(options.certificate, clock, options)
  const certificate = await load()
  const gate = new EdgeGate(handlers, new Admission(limits), clock)
  const { certificatePem, privateKeyPem } = certificate
  const listen = { host, port, certificatePem, privateKeyPem, limits, reusePort }
  const listeners = await listenOnOnePort(drivers, listen, gate)
  const watch = new CertificateWatch({ listener: name, load, logger, checkMs: options.certificateCheckMs }, certificate)
  watch.watch(async ({ certificatePem, privateKeyPem }) => {
    for (const one of listeners) await one.tryCertificate?.(certificatePem, privateKeyPem)
    // TCP first: what it refuses must not cost the sessions over QUIC.
    for (const one of listeners) await one.replaceCertificate(certificatePem, privateKeyPem)
  })
  return new RunningEdge({ host, port, gate, drivers, listeners, watch })
}

/** Asks the path's owner, and keeps count. */
class EdgeGate implements SessionGate {
  readonly admission: Admission
  readonly #paths: ReadonlyMap<string, PathHandler>
  readonly #clock: Clock

  constructor(handlers: QuicEdgeHandlers, admission: Admission, clock: Clock) {
    this.admission = admission
    this.#paths = new Map(Object.entries(handlers.paths))
    this.#clock = clock
  }

  admit(request: SessionRequest) {
    return this.admission.admit(request, this.#paths.has(request.path), this.#clock.monotonicUs() / 1000)
  }

  abandoned(request: SessionRequest): void {
    this.admission.abandoned(request.peer)
  }

  opened(session: QuicSession): QuicSessionEvents {
    this.admission.opened(session.peer)
    const events = this.#paths.get(session.path)?.opened(session)
    return {
      streamOpened: (stream) => events?.streamOpened(stream) ?? null,
      datagram: (bytesView) => events?.datagram(bytesView),
      closed: (code, reason) => {
        this.admission.closed(session.peer)
        events?.closed(code, reason)
      },
    }
  }
}

interface EdgeParts {
  /** As configured, where no driver says better. */
  readonly host: string
  readonly port: number
  readonly gate: EdgeGate
  readonly drivers: readonly QuicDriver[]
  readonly listeners: readonly QuicListener[]
  readonly watch: CertificateWatch
}

class RunningEdge implements QuicEdge {
  readonly host: string
  readonly port: number
  readonly driverNames: readonly string[]
  readonly #parts: EdgeParts
  #closing: Promise<void> | undefined

  constructor(parts: EdgeParts) {
    this.#parts = parts
    this.driverNames = parts.drivers.map((driver) => driver.name)
    this.host = parts.listeners[0]?.host ?? parts.host
    this.port = parts.listeners[0]?.port ?? parts.port
  }

  get sessionCount(): number {
    return this.#parts.gate.admission.openCount
  }

  get refusedCount(): number {
    return this.#parts.gate.admission.refusedCount
  }

  get failure(): string {
    return this.#parts.listeners.map(({ failure = '' }) => failure).find((failure) => failure !== '') ?? ''
  }

  traffic(): QuicTraffic | null {
    return this.#parts.listeners[0]?.traffic?.() ?? null
  }

  get certificate(): Certificate {
    return this.#parts.watch.current
  }

  reloadCertificate(): Promise<boolean> {
    return this.#parts.watch.reload()
  }

  close({ code = 0, graceMs = 1000 } = {}): Promise<void> {
    this.#closing ??= this.#end(code, graceMs)
    return this.#closing
  }

  async #end(code: number, graceMs: number): Promise<void> {
    this.#parts.watch.close()
    this.#parts.gate.admission.stop()
    await Promise.all(this.#parts.listeners.map((listener) => listener.close(code, graceMs)))
  }
}

/** All drivers on one number. With port 0, a number that one of them cannot have is given back and the next one tried. */
async function listenOnOnePort(
  drivers: readonly QuicDriver[],
  options: ListenOptions,
  gate: SessionGate,
): Promise<QuicListener[]> {
  for (let attempt = 1; ; attempt++) {
    const listeners: QuicListener[] = []
    let port = options.port
    try {
      for (const driver of drivers) {
        const listener = await driver.listen({ ...options, port }, gate)
        listeners.push(listener)
        port = listener.port
      }
      return listeners
    } catch (error) {
      await Promise.all(listeners.map((listener) => listener.close(0, 0)))
      const isTaken = error instanceof EdgeError && error.code === 'EDGE_ADDRESS_IN_USE'
      if (!isTaken || options.port !== 0 || attempt >= QUIC_EDGE_DEFAULTS.portAttempts) throw error
    }
  }
}
