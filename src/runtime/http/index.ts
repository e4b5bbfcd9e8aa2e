/** The HTTP API of Iggy, our own routes beside it, and the inspection page. */

import type { Clock } from '../../clock.ts'
import type { Logger } from '../../logger.ts'
import type { Certificate } from '../../quic-edge/index.ts'
import type { Broker } from '../broker/api.ts'
import type { Occupancy } from '../connection-count.ts'
import type { HealthMonitor, MetricSources, OverviewSources } from '../observe/index.ts'
import { type AccountStore, Authentication } from './authentication.ts'
import { BodyReader } from './body.ts'
import { type HttpListener, listenHttp } from './http-listener.ts'
import type { Route } from './http-types.ts'
import { RequestHandler } from './request-handler.ts'
import { Router } from './router.ts'
import { consumerGroupRoutes } from './routes/consumer-groups.ts'
import { deviceTokenRoutes } from './routes/device-tokens.ts'
import { deviceRoutes } from './routes/devices.ts'
import { edgeRoutes } from './routes/edge.ts'
import { messageRoutes } from './routes/messages.ts'
import { offsetRoutes } from './routes/offsets.ts'
import { pageRoutes } from './routes/page.ts'
import { partitionRoutes } from './routes/partitions.ts'
import { personalAccessTokenRoutes } from './routes/personal-access-tokens.ts'
import { streamRoutes } from './routes/streams.ts'
import { systemRoutes } from './routes/system.ts'
import { topicRoutes } from './routes/topics.ts'
import { userRoutes } from './routes/users.ts'
import type { HttpSettings } from './settings.ts'

export { HTTP_LISTS, HTTP_SECTIONS, type HttpSettings } from './settings.ts'

export interface HttpOptions {
  readonly broker: Broker
  readonly settings: HttpSettings
  /** Keeps users, the signing secret and the revoked tokens; the log's metadata store is one. */
  readonly store: AccountStore
  readonly health: Pick<HealthMonitor, 'health'>
  readonly overview: OverviewSources
  /** Without what this listener counts itself. */
  readonly metrics: Omit<MetricSources, 'httpRequestCount' | 'httpConnectionCount'>
  readonly clock: Clock
  readonly logger: Logger
  /** SO_REUSEPORT. Default false. */
  readonly reusePort?: boolean
}

export interface HttpServer extends AsyncDisposable {
  /** Bound, `host:port`; the port is the real one. */
  readonly address: string
  readonly host: string
  readonly port: number
  readonly state: 'running' | 'failed'
  /** Why it failed; empty while it runs. */
  readonly cause: string
  /** What it serves now; null without TLS. */
  readonly certificate: Certificate | null
  readonly occupancy: Occupancy
  /** Idempotent; running requests get a few seconds to end. */
  close(): Promise<void>
}

/** @throws {EdgeError} EDGE_ADDRESS_IN_USE, EDGE_CONFIG_INVALID. */
export async function startHttp(options: HttpOptions): Promise<HttpServer> {
  const { broker, settings, clock, logger } = options
  const authentication = await Authentication.open({ broker, store: options.store, clock, settings, logger })
  let requestCount = 0
  const listenerOf: { current: HttpListener | null } = { current: null }
  const routes = routesOf(options, authentication, {
    httpRequestCount: () => requestCount,
    httpConnectionCount: () => listenerOf.current?.occupancy.openConnections ?? 0,
  })
  const handler = new RequestHandler({
    router: new Router(routes),
    authentication,
    bodies: new BodyReader({
      maxBodyBytes: settings.http.max_request_size,
      maxHeldBytes: Math.max(settings.http.max_held_bodies, settings.http.max_request_size),
    }),
    cors: settings['http.cors'],
    areReadsOpenOnLoopback: settings.http.open_reads_on_loopback,
    logger,
    onAnswered: () => requestCount++,
    onLeft: (changeBytes) => broker.answersLeft(changeBytes),
  })
  const listener = await listenHttp({
    settings,
    onRequest: (request, response) => void handler.handle(request, response),
    clock,
    logger,
    reusePort: options.reusePort,
  })
  listenerOf.current = listener
  logger.info('http.listening', { host: listener.host, port: listener.port, tls: settings['http.tls'].enabled })
  return {
    host: listener.host,
    port: listener.port,
    address: listener.host.includes(':') ? `[${listener.host}]:${listener.port}` : `${listener.host}:${listener.port}`,
    get state() {
      return listener.failure === null ? 'running' : 'failed'
    },
    get cause() {
      return listener.failure?.message ?? ''
    },
    occupancy: listener.occupancy,
    get certificate() {
      return listener.certificate
    },
    close: () => listener.close(),
    [Symbol.asyncDispose]: () => listener.close(),
  }
}

function routesOf(
  { broker, settings, health, overview, metrics, clock }: HttpOptions,
  authentication: Authentication,
  own: Pick<MetricSources, 'httpRequestCount' | 'httpConnectionCount'>,
): readonly Route[] {
  const context = { broker, authentication, clock }
  const { enabled, endpoint, access } = settings['http.metrics']
  return [
    ...systemRoutes(context),
    ...userRoutes(context),
    ...personalAccessTokenRoutes(context),
    ...streamRoutes(context),
    ...topicRoutes(context),
    ...partitionRoutes(context),
    ...messageRoutes(context),
    ...offsetRoutes(context),
    ...consumerGroupRoutes(context),
    ...deviceTokenRoutes(context),
    ...deviceRoutes(context),
    ...edgeRoutes({
      broker,
      health,
      overview,
      metrics: { ...metrics, ...own },
      metricsRoute: enabled ? { path: endpoint, access: access === 'open' ? 'public' : 'open-read' } : null,
      nowUs: () => clock.wallUs(),
    }),
    ...pageRoutes(settings.http.page),
  ]
}
