/**
 * Plain QUIC on the engine of our own: a session is a QUIC connection, without ALPN and without paths.
 *
 * A connection is admitted by its first packet, before anything is computed for it, and becomes a session when its handshake
 * is through. What nobody reads stays within the engine's windows: credit goes back to the peer as handlers grant it.
 */
import { createPrivateKey, randomBytes } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { Logger } from '../../logger.ts'
import type { ConnectionHost, ConnectionLimits, EngineConnection, PeerAddress } from '../engine/connection/api.ts'
import { QuicConnection } from '../engine/connection/connection.ts'
import { EndpointSecrets } from '../engine/endpoint/endpoint-secrets.ts'
import { isSealedInitial } from '../engine/endpoint/initial-check.ts'
import { type Acceptance, Router } from '../engine/endpoint/router.ts'
import { type Entry, UdpEndpoint } from '../engine/endpoint/udp-endpoint.ts'
import type { TlsIdentity } from '../engine/tls/api.ts'
import { createIdentity } from '../engine/tls/identity.ts'
import { TlsServer } from '../engine/tls/tls-server.ts'
import { INITIAL_DATAGRAM_SIZE_MIN } from '../engine/wire/packet-header.ts'
import type {
  ListenOptions,
  QuicDriver,
  QuicListener,
  QuicTraffic,
  SessionGate,
  SessionLimits,
  SessionRequest,
} from '../ports.ts'
import { EngineSession } from './engine-session.ts'

/** The one path there is. */
export const PLAIN_QUIC_PATH = ''

export type RetryPolicy = 'auto' | 'always'

/** Handshakes under way from which on clients prove their address first, and beyond which none is begun. */
const RETRY_ABOVE_HANDSHAKES = 32
/** … and never more than that part of what all, or one address, may have: who forges addresses must not use up the rest. */
const UNPROVEN_PART = 0.5
const MAX_HANDSHAKES = 256
const MAX_RESETS_PER_SECOND = 100
const REFUSAL_LOG_INTERVAL_US = 1_000_000
const MAX_ACK_DELAY_MS = 25
/** Passes every path that QUIC may use; larger ones would have to be probed for. */
const DATAGRAM_BYTES = INITIAL_DATAGRAM_SIZE_MIN
/** Of one stream: above it handlers wait before they write more. So much on each of its streams may wait for a slow peer unseen. */
const SEND_HIGH_WATER_BYTES = 64 * 1024

let nextSessionId = 1

export interface EngineDriverOptions {
  readonly clock: Clock
  readonly logger: Logger
  readonly retry: RetryPolicy
  /** See `EndpointSecrets`. */
  readonly edgeIdBytes: Uint8Array
}

export function createEngineDriver(driverOptions: EngineDriverOptions): QuicDriver {
  return {
    name: 'quic-engine',
    async listen(options, gate) {
      const listener = new EngineListener({ ...driverOptions, options, gate })
      await listener.open()
      return listener
    },
  }
}

interface ListenerParts extends EngineDriverOptions {
  readonly options: ListenOptions
  readonly gate: SessionGate
}

class EngineListener implements QuicListener {
  readonly host: string
  port: number
  readonly #parts: ListenerParts
  readonly #limits: ConnectionLimits
  readonly #secrets: EndpointSecrets
  readonly #router: Router<Entry>
  readonly #sessions = new Set<EngineSession>()
  /** Of connections that were admitted and are no sessions: those that failed count until nothing is kept of them. */
  readonly #handshakes = new Map<EngineConnection, PeerAddress>()
  #identity: TlsIdentity
  #endpoint: UdpEndpoint | undefined
  #keepAlive: NodeJS.Timeout | undefined
  #sweep: NodeJS.Timeout | undefined
  #acceptedCount = 0
  #failedCount = 0
  #refusalToldUs = Number.NEGATIVE_INFINITY
  #closing: Promise<void> | undefined
  #onSessionClosed: (() => void) | undefined

  constructor(parts: ListenerParts) {
    const { options, retry, edgeIdBytes } = parts
    this.#parts = parts
    this.host = options.host
    this.port = options.port
    this.#identity = createIdentity(options.certificatePem, options.privateKeyPem)
    this.#limits = connectionLimitsOf(options.limits)
    this.#secrets = new EndpointSecrets(secretOf(options.privateKeyPem), edgeIdBytes)
    this.#router = new Router({
      limits: {
        maxHandshakes: MAX_HANDSHAKES,
        retryAboveHandshakes: retry === 'always' ? 0 : unprovenHandshakes(options.limits),
        maxResetsPerSecond: MAX_RESETS_PER_SECOND,
      },
      secrets: this.#secrets,
      random: randomBytes,
      isSealed: isSealedInitial,
      admit: (from) => this.#admit(from),
    })
  }

  async open(): Promise<void> {
    const { options, logger, clock } = this.#parts
    const endpoint = await UdpEndpoint.open({
      host: options.host,
      port: options.port,
      reusePort: options.reusePort ?? false,
      router: this.#router,
      logger,
      nowMs: () => clock.monotonicUs() / 1000,
      accept: (acceptance, peer, host) => this.#accept(acceptance, peer, host),
      forgotten: (connection) => this.#forgotten(connection),
      resetToken: (idView) => this.#secrets.resetToken(idView),
    })
    this.#endpoint = endpoint
    this.port = endpoint.port
    this.#keepAlive = setInterval(() => this.#ping(), options.limits.pingIntervalMs)
    this.#keepAlive.unref()
    this.#sweep = setInterval(() => this.#giveUpUnseen(), options.limits.pauseTimeoutMs)
    this.#sweep.unref()
  }

  async replaceCertificate(certificatePem: string, privateKeyPem: string): Promise<void> {
    this.#identity = createIdentity(certificatePem, privateKeyPem)
  }

  traffic(): QuicTraffic | null {
    if (this.#endpoint === undefined) return null
    const { refused, retries } = this.#router.counts
    return {
      ...this.#endpoint.traffic,
      openConnections: this.#sessions.size,
      acceptedConnections: this.#acceptedCount,
      failedHandshakes: this.#failedCount,
      refusedConnections: refused,
      retries,
    }
  }

  close(code: number, graceMs: number): Promise<void> {
    this.#closing ??= this.#end(code, graceMs)
    return this.#closing
  }

  #admit(from: PeerAddress): boolean {
    const { gate, clock, logger, options } = this.#parts
    if (gate.admit(requestOf(from)) === 200) return true
    const nowUs = clock.monotonicUs()
    // A source may be forged: whoever forges many does not write the log.
    if (nowUs - this.#refusalToldUs >= REFUSAL_LOG_INTERVAL_US) {
      this.#refusalToldUs = nowUs
      const { maxSessions, maxSessionsPerPeer } = options.limits
      logger.warn('quic.connection.over_limit', {
        peer: textOf(from),
        limit: maxSessions,
        peer_limit: maxSessionsPerPeer,
      })
    }
    return false
  }

  #accept(acceptance: Acceptance, peer: PeerAddress, host: ConnectionHost): EngineConnection {
    const connection = new QuicConnection({
      role: 'server',
      nowMs: this.#parts.clock.monotonicUs() / 1000,
      peer,
      limits: this.#limits,
      host,
      random: randomBytes,
      createTls: (events, transportParameters) =>
        new TlsServer(
          { identity: () => this.#identity, alpnProtocols: [], transportParameters, random: randomBytes },
          events,
        ),
      ...acceptance,
    })
    this.#handshakes.set(connection, peer)
    connection.onConnected = () => this.#opened(connection, peer)
    connection.onClosed = ({ code, reason }) => {
      this.#failedCount++
      this.#parts.logger.debug('quic.handshake.failed', { peer: textOf(peer), code, reason })
    }
    return connection
  }

  #forgotten(connection: EngineConnection): void {
    const peer = this.#handshakes.get(connection)
    if (this.#handshakes.delete(connection) && peer !== undefined) this.#parts.gate.abandoned(requestOf(peer))
  }

  #opened(connection: EngineConnection, peer: PeerAddress): void {
    this.#handshakes.delete(connection)
    this.#acceptedCount++
    const session = new EngineSession({
      id: nextSessionId++,
      path: PLAIN_QUIC_PATH,
      peer: textOf(peer),
      connection,
      onClosed: () => {
        this.#sessions.delete(session)
        this.#onSessionClosed?.()
      },
    })
    this.#sessions.add(session)
    session.start(this.#parts.gate)
  }

  #ping(): void {
    for (const session of this.#sessions) session.keepAlive()
  }

  #giveUpUnseen(): void {
    for (const session of this.#sessions) session.giveUpUnseen()
  }

  /** Sessions go as soon as what they are doing is done, and at the latest when the grace is over. */
  async #end(code: number, graceMs: number): Promise<void> {
    clearInterval(this.#keepAlive)
    clearInterval(this.#sweep)
    this.#router.stop()
    for (const session of [...this.#sessions]) session.closeWhenIdle(code, 'closing')
    await this.#whenEmpty(graceMs)
    for (const session of [...this.#sessions]) session.close(code, 'closing')
    await this.#endpoint?.close()
  }

  #whenEmpty(timeoutMs: number): Promise<void> {
    if (this.#sessions.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#onSessionClosed = () => {
        if (this.#sessions.size > 0) return
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

function unprovenHandshakes({ maxSessions, maxSessionsPerPeer }: SessionLimits): number {
  return Math.min(RETRY_ABOVE_HANDSHAKES, Math.floor(Math.min(maxSessions, maxSessionsPerPeer) * UNPROVEN_PART))
}

function connectionLimitsOf(limits: SessionLimits): ConnectionLimits {
  return {
    connectionWindowBytes: limits.maxUnreadBytesPerSession,
    // Two large requests side by side do not keep each other waiting.
    streamWindowBytes: Math.ceil(limits.maxUnreadBytesPerSession / 2),
    maxBidirectionalStreams: limits.maxStreamsPerSession,
    maxUnidirectionalStreams: 0,
    sendHighWaterBytes: SEND_HIGH_WATER_BYTES,
    idleTimeoutMs: limits.idleTimeoutMs,
    handshakeTimeoutMs: limits.handshakeTimeoutMs,
    maxAckDelayMs: MAX_ACK_DELAY_MS,
    datagramSize: DATAGRAM_BYTES,
  }
}

/** The key itself: its PEM text may have the certificate beside it, or not. */
function secretOf(privateKeyPem: string): Uint8Array {
  return createPrivateKey(privateKeyPem).export({ type: 'pkcs8', format: 'der' })
}

function requestOf(peer: PeerAddress): SessionRequest {
  return { path: PLAIN_QUIC_PATH, peer: textOf(peer) }
}

/** As sockets of TCP print theirs; an IPv4 address that a dual-stack socket wraps is shown as what it is. */
function textOf({ address, port }: PeerAddress): string {
  const plain = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
  return plain.includes(':') ? `[${plain}]:${port}` : `${plain}:${port}`
}
