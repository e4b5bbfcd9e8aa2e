/** Starts the listeners that the configuration asks for, and keeps what status and health say of each. */
import type { Clock } from '../clock.ts'
import { EdgeError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import {
  type Certificate,
  type CertificateWatch,
  limitsOf,
  type PathHandler,
  plainLimitsOf,
  type QuicEdge,
  type QuicTraffic,
  startPlainQuic,
  startQuicEdge,
} from '../quic-edge/index.ts'
import type { Config } from './config/schema.ts'
import { type Address, parseAddress } from './config/value.ts'
import type { Occupancy } from './connection-count.ts'
import { serveIggyClients } from './iggy-sessions.ts'
import {
  certificateSourceOf,
  openListenerCertificate,
  ownCertificateFolder,
  type TlsSettings,
} from './listener-certificate.ts'
import type { ListenerOccupancy, ListenerReport, ListenerStatus } from './observe/index.ts'
import { type Listener, listenTcp, listenWebsocket, type ProtocolServer, STREAM_CLIENT_CODES } from './server/index.ts'

export type ListenerName = 'tcp' | 'websocket' | 'webtransport' | 'quic' | 'http'

/** A bound listener, as much of it as status, health and closing need. */
export interface Bound {
  readonly host: string
  readonly port: number
  close(): Promise<void>
  /** Why it no longer works; empty while it does. */
  readonly failure?: () => string
  /** What it serves now; null without TLS. */
  readonly certificate?: () => Certificate | null
  readonly occupancy: () => Occupancy
  /** Of plain QUIC. */
  readonly quicTraffic?: () => QuicTraffic | null
}

/** All listeners by name; those that are off have no `bound`. */
export class Listeners {
  readonly #bound = new Map<ListenerName, Bound>()
  readonly #enabled: ReadonlySet<ListenerName>

  constructor(config: Config) {
    const names = ['tcp', 'websocket', 'webtransport', 'quic', 'http'] as const
    this.#enabled = new Set(names.filter((name) => config[name].enabled))
  }

  isEnabled(name: ListenerName): boolean {
    return this.#enabled.has(name)
  }

  add(name: ListenerName, bound: Bound): void {
    this.#bound.set(name, bound)
  }

  port(name: ListenerName): number {
    return this.#bound.get(name)?.port ?? 0
  }

  /** `host:port`, or empty when it does not listen. */
  address(name: ListenerName): string {
    const bound = this.#bound.get(name)
    return bound === undefined ? '' : formatAddress(bound)
  }

  /** Of the listeners that serve one. */
  certificates(): readonly { readonly name: ListenerName; readonly certificate: Certificate }[] {
    return [...this.#bound].flatMap(([name, bound]) => {
      const certificate = bound.certificate?.() ?? null
      return certificate === null ? [] : [{ name, certificate }]
    })
  }

  /** Null while plain QUIC is off. */
  quicTraffic(): QuicTraffic | null {
    return this.#bound.get('quic')?.quicTraffic?.() ?? null
  }

  /** Of those that are on. */
  occupancies(): readonly ListenerOccupancy[] {
    return [...this.#bound].map(([name, { occupancy }]) => ({ name, ...occupancyOf(occupancy()) }))
  }

  reports(): readonly (ListenerReport & ListenerStatus)[] {
    const names: readonly ListenerName[] = ['tcp', 'websocket', 'http', 'webtransport', 'quic']
    return names.map((name) => {
      const bound = this.#bound.get(name)
      const cause = bound?.failure?.() ?? ''
      return {
        name,
        isEnabled: this.isEnabled(name),
        state: bound === undefined ? 'starting' : cause === '' ? 'running' : 'failed',
        cause,
        host: bound?.host ?? '',
        port: bound?.port ?? 0,
        isTcp: name !== 'webtransport' && name !== 'quic',
        isFull: isFull(bound?.occupancy()),
        address: this.address(name),
        certificate: bound?.certificate?.() ?? null,
      }
    })
  }

  /** Stops accepting everywhere at once; resolves when the connections are gone, which is their owners' business. */
  async close(): Promise<void> {
    const bound = [...this.#bound.values()]
    this.#bound.clear()
    await Promise.all(bound.map((each) => each.close()))
  }
}

/** Whoever comes now is turned away: so would be who only looks whether it answers. */
const isFull = (occupancy: Occupancy | undefined): boolean =>
  occupancy !== undefined && occupancy.openConnections >= occupancy.maxConnections

export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

export interface ProtocolParts {
  readonly config: Config
  readonly server: ProtocolServer
  readonly clock: Clock
  readonly isClockTrusted: () => boolean
  readonly logger: Logger
  /** Where a certificate of our own is kept. */
  readonly dataPath: string
  /** Of the data folder: no other edge has it. */
  readonly storeId: Uint8Array
}

export async function startTcp(parts: ProtocolParts): Promise<Bound> {
  const { tcp, system } = parts.config
  const certificate = tcp.tls_enabled ? await openCertificate('tcp', tcp, parts) : null
  const listener = await listenTcp({
    ...addressOf(tcp.address),
    reusePort: system.reuse_port,
    maxConnections: tcp.max_connections,
    logger: parts.logger,
    tls: certificate === null ? null : { ...certificate.current, isRequired: tcp.tls_required },
    accept: parts.server.acceptByteSession.bind(parts.server),
  })
  return withCertificate(listener, certificate)
}

export async function startWebsocket(parts: ProtocolParts): Promise<Bound> {
  const { websocket, system } = parts.config
  const certificate = websocket.tls_enabled ? await openCertificate('websocket', websocket, parts) : null
  const listener = await listenWebsocket({
    ...addressOf(websocket.address),
    reusePort: system.reuse_port,
    maxConnections: websocket.max_connections,
    logger: parts.logger,
    ...(certificate === null ? {} : { tls: certificate.current }),
    accept: parts.server.acceptByteSession.bind(parts.server),
  })
  return withCertificate(listener, certificate)
}

export async function startQuic({
  config,
  server,
  clock,
  isClockTrusted,
  logger,
  dataPath,
  storeId,
}: ProtocolParts): Promise<Bound> {
  const { quic, system } = config
  const edge = await startPlainQuic(
    {
      ...addressOf(quic.address),
      reusePort: system.reuse_port,
      certificate: certificateSourceOf(quic, dataPath),
      limits: plainLimitsOf(quic),
      retry: quic.retry,
      edgeIdBytes: storeId,
      clock,
      isClockTrusted,
      logger,
    },
    serveIggyClients(server),
  )
  const bound = boundOf(edge, quic.max_connections, () => edge.close({ code: STREAM_CLIENT_CODES.shutdown }))
  return { ...bound, quicTraffic: () => edge.traffic() }
}

/** @param close ends its sessions too. */
export function boundOf(edge: QuicEdge, maxConnections: number, close = () => edge.close()): Bound {
  return {
    host: edge.host,
    port: edge.port,
    failure: () => edge.failure,
    certificate: () => edge.certificate,
    occupancy: () => ({
      openConnections: edge.sessionCount,
      maxConnections,
      refusedConnections: edge.refusedCount,
    }),
    close,
  }
}

/** Of a counter its values now. */
const occupancyOf = ({ openConnections, maxConnections, refusedConnections }: Occupancy): Occupancy => ({
  openConnections,
  maxConnections,
  refusedConnections,
})

function openCertificate(listener: ListenerName, settings: TlsSettings, parts: ProtocolParts) {
  const { clock, isClockTrusted, logger, dataPath } = parts
  const source = certificateSourceOf(settings, dataPath)
  const key = `${listener}.tls_cert_file`
  return openListenerCertificate({ listener, key, source, clock, isClockTrusted, logger })
}

/** The listener follows its certificate until it is closed. */
function withCertificate(
  listener: Listener & { replaceCertificate(certificatePem: string, privateKeyPem: string): void },
  certificate: CertificateWatch | null,
): Bound {
  certificate?.watch(({ certificatePem, privateKeyPem }) => listener.replaceCertificate(certificatePem, privateKeyPem))
  return {
    host: listener.host,
    port: listener.port,
    certificate: () => certificate?.current ?? null,
    occupancy: () => listener.occupancy,
    close() {
      certificate?.close()
      return listener.close()
    },
  }
}

export interface WebTransportParts {
  readonly config: Config
  readonly clock: Clock
  readonly isClockTrusted: () => boolean
  readonly logger: Logger
  /** Where a certificate of our own is kept. */
  readonly dataPath: string
  readonly paths: Readonly<Record<string, PathHandler>>
}

export async function startWebTransport({
  config,
  clock,
  isClockTrusted,
  logger,
  dataPath,
  paths,
}: WebTransportParts): Promise<QuicEdge> {
  const settings = config.webtransport
  const hasFiles = settings.tls_cert_file !== ''
  return startQuicEdge(
    {
      ...addressOf(settings.address),
      certificate: hasFiles
        ? { type: 'files', certificateFile: settings.tls_cert_file, privateKeyFile: settings.tls_key_file }
        : { type: 'self-signed', directory: ownCertificateFolder(dataPath) },
      hasTcpFallback: settings.tcp_fallback,
      limits: limitsOf(settings),
      clock,
      isClockTrusted,
      logger,
    },
    { paths },
  )
}

function addressOf(text: string): Address {
  const address = parseAddress(text)
  // The schema has checked it.
  if (address === null) throw new EdgeError('EDGE_CONFIG_INVALID', `address ${text}: expected host:port`)
  return address
}
