/**
 * The composition root: opens the log, makes the broker, starts listeners and sync, and ends them in reverse. Decides
 * nothing itself; every part gets what it needs here and from nowhere else.
 */
import { resolve } from 'node:path'
import type { Clock } from '../clock.ts'
import { type Log, openLog } from '../log/index.ts'
import type { Logger } from '../logger.ts'
import { type Sync, startSync } from '../sync/index.ts'
import { createBroker, type RootCredentials, type RunningBroker, residentBytes } from './broker/index.ts'
import { plausibleClock, watchClock } from './clock-trust.ts'
import { formatConfig } from './config/load.ts'
import type { Config } from './config/schema.ts'
import { startRefusal } from './config-problems.ts'
import { removeCurrentConfig, writeCurrentConfig } from './current-config.ts'
import { createDeadLetters } from './dead-letters.ts'
import { createEdgeDeviceBroker, type DeviceTraffic, startDeviceHub } from './device/index.ts'
import {
  budgetStoreOf,
  cursorStoreOf,
  logSourceOf,
  routeNamesOf,
  routeStatuses,
  syncLagsOf,
  syncOptionsOf,
} from './forwarding.ts'
import { startHttp } from './http/index.ts'
import { serveIggySessions } from './iggy-sessions.ts'
import { boundOf, Listeners, startQuic, startTcp, startWebsocket, startWebTransport } from './listeners.ts'
import {
  ConnectionReports,
  reportCertificate,
  reportClock,
  reportFolders,
  reportLog,
  reportRoute,
  reportSpace,
  type SyncRouteStatus,
  startHealth,
} from './observe/index.ts'
import { createProtocolServer } from './server/index.ts'
import { IGGY_VERSION, PRODUCT_VERSION } from './version.ts'

export interface EdgeOptions {
  readonly config: Config
  readonly clock: Clock
  readonly logger: Logger
  /** The newest lines of the log, for the diagnosis archive; left out of it where nobody keeps them. */
  readonly recentLog?: () => string
  readonly root: RootCredentials
  /** Told the root password that was made at the first start, at once: a start that fails later must not lose it. */
  readonly onRootPassword?: (password: string) => void
  /** As in `OpenLogOptions`. */
  readonly onProgress?: () => void
  /** Told how the edge is in one line, whenever that is another one. */
  readonly onStatus?: (line: string) => void
}

export interface Edge extends AsyncDisposable {
  readonly dataPath: string
  readonly log: Log
  readonly broker: RunningBroker
  readonly addresses: {
    readonly tcp: string
    readonly http: string
    readonly websocket: string
    readonly webtransport: string
    readonly quic: string
  }
  /** SHA-256 of the certificate devices may pin; null when WebTransport is off. */
  certificateSha256(): string | null
  /** What sync carries, route by route. */
  routes(): readonly SyncRouteStatus[]
  /** Everything that stops is stopped, everything acked is durable. Idempotent, bounded in time. */
  close(): Promise<void>
}

interface ForwardingParts {
  readonly config: Config
  readonly log: Log
  readonly broker: RunningBroker
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Starts everything the configuration enables. A failure half-way closes what was opened.
 *
 * @throws {EdgeError} EDGE_CONFIG_INVALID, EDGE_FEATURE_MISSING, EDGE_ADDRESS_IN_USE and what `openLog` throws.
 */
export async function startEdge(options: EdgeOptions): Promise<Edge> {
  const { config } = options
  // Configuration is judged before storage is touched.
  const refusal = startRefusal(config)
  if (refusal !== undefined) throw refusal
  await using opened = new AsyncDisposableStack()
  const edge = await compose({ ...options, clock: plausibleClock(options.clock) }, opened)
  const closing = opened.move()
  let closed: Promise<void> | null = null
  const close = () => {
    closed ??= closing.disposeAsync()
    return closed
  }
  return { ...edge, close, [Symbol.asyncDispose]: close }
}

async function compose(options: EdgeOptions, opened: AsyncDisposableStack) {
  const { config, clock, logger, recentLog, root, onRootPassword, onProgress, onStatus } = options
  const dataPath = resolve(config.system.path)
  const startedAtUs = clock.wallUs()
  const startedUs = clock.monotonicUs()
  let log: Log | null = null
  const clockTrust = watchClock(clock, () => log?.metadata ?? null, logger)
  const isClockTrusted = clockTrust.isTrusted
  opened.defer(() => clockTrust.close())
  log = opened.use(
    await openLog({
      path: dataPath,
      clock,
      logger,
      settings: config.log,
      retention: config.retention,
      encryption: config['log.encryption'],
      expectExisting: config.system.expect_existing,
      isClockTrusted,
      ...(onProgress === undefined ? {} : { onProgress }),
    }),
  )
  removeCurrentConfig(dataPath, logger)
  const listeners = new Listeners(config)
  const broker = opened.use(
    await createBroker({
      log,
      clock,
      isClockTrusted,
      logger,
      root,
      settings: brokerSettingsOf(config),
      identity: { ...identityOf(config, listeners), ...(recentLog === undefined ? {} : { recentLog }) },
    }),
  )
  if (broker.generatedRootPassword !== null) onRootPassword?.(broker.generatedRootPassword)
  const theLog = log
  // Before anything can be appended: what the log holds now is what an earlier process may have sent.
  const sync =
    config['sync.upstreams'].length === 0 ? null : await startForwarding({ config, log, broker, clock, logger })
  if (sync !== null) opened.use(sync)
  log.metadata.useRoutes(routeNamesOf(config))
  const routes = () => routeStatuses(sync, config, clock)
  const server = createProtocolServer({ broker, log, clock, logger, settings: config.tcp, serverVersion: IGGY_VERSION })
  // Together: a listener is closed only when the connections it accepted are gone.
  opened.defer(async () => void (await Promise.all([listeners.close(), server.close()])))

  const protocol = { config, server, clock, isClockTrusted, logger, dataPath, storeId: log.storeId }
  if (listeners.isEnabled('tcp')) listeners.add('tcp', await startTcp(protocol))
  if (listeners.isEnabled('websocket')) listeners.add('websocket', await startWebsocket(protocol))
  if (listeners.isEnabled('quic')) listeners.add('quic', await startQuic(protocol))
  let certificateSha256 = () => null as string | null
  let deviceTraffic = () => null as DeviceTraffic | null
  if (listeners.isEnabled('webtransport')) {
    const deviceBroker = createEdgeDeviceBroker({ broker, log, clock, isClockTrusted })
    opened.defer(() => deviceBroker.close())
    const devices = startDeviceHub({ broker: deviceBroker, clock, logger })
    opened.defer(() => devices.close())
    const paths = { '/iggy': serveIggySessions(server), '/edge': devices.pathHandler }
    const webtransport = await startWebTransport({ config, clock, isClockTrusted, logger, dataPath, paths })
    listeners.add('webtransport', boundOf(webtransport, config.webtransport.max_sessions))
    certificateSha256 = () => webtransport.certificate.sha256
    deviceTraffic = () => devices.traffic()
  }
  const connections = new ConnectionReports()
  const health = startHealth(
    {
      listeners: () => listeners.reports(),
      parts: () => [
        reportLog(theLog),
        reportSpace(theLog),
        reportFolders(theLog),
        reportClock(clockTrust.distrust()),
        ...listeners.certificates().map((each) => reportCertificate(each, clock.wallUs())),
        ...listeners.occupancies().map((each) => connections.report(each)),
        ...routes().map(reportRoute),
      ],
    },
    { clock, logger, ...(onStatus === undefined ? {} : { onStatus }) },
  )
  opened.defer(() => health.close())
  if (listeners.isEnabled('http')) {
    const common = {
      startedAtUs,
      catalog: log.catalog,
      logStats: () => theLog.stats(),
      findings: () => theLog.findings(),
      isWritable: () => theLog.isWritable,
      sync: routes,
      syncLags: () => syncLagsOf(sync),
      health: () => health.health,
      deviceTraffic,
    }
    const http = await startHttp({
      broker,
      settings: config,
      reusePort: config.system.reuse_port,
      store: log.metadata,
      health,
      overview: {
        ...common,
        uptimeUs: () => clock.monotonicUs() - startedUs,
        version: PRODUCT_VERSION,
        metadata: log.metadata,
        listeners: () => listeners.reports(),
      },
      metrics: {
        ...common,
        userCount: () => theLog.metadata.users.size,
        clientCount: () => server.connectionCount,
        residentBytes,
        takeLoopDelayUs: () => health.takeLoopDelayUs(),
        quicTraffic: () => listeners.quicTraffic(),
        occupancies: () => listeners.occupancies(),
      },
      clock,
      logger,
    })
    listeners.add('http', {
      host: http.host,
      port: http.port,
      certificate: () => http.certificate,
      failure: () => http.cause,
      occupancy: () => http.occupancy,
      close: () => http.close(),
    })
  }
  await health.check()
  writeCurrentConfig({ dataPath, config, listeners, logger })
  return {
    dataPath,
    log,
    broker,
    addresses: {
      tcp: listeners.address('tcp'),
      http: listeners.address('http'),
      websocket: listeners.address('websocket'),
      webtransport: listeners.address('webtransport'),
      quic: listeners.address('quic'),
    },
    certificateSha256,
    routes,
  }
}

function startForwarding({ config, log, broker, clock, logger }: ForwardingParts): Promise<Sync> {
  const deadLetters = createDeadLetters(broker)
  const stores = { cursors: cursorStoreOf(log), budgets: budgetStoreOf(log.metadata, logger) }
  return startSync(syncOptionsOf(config), { log: logSourceOf(log), ...stores, deadLetters, clock, logger })
}

function brokerSettingsOf(config: Config) {
  return {
    broker: config.broker,
    heartbeat: config.heartbeat,
    personalAccessToken: config.personal_access_token,
    consumerGroup: config.consumer_group,
    messageDeduplication: config.message_deduplication,
    defaultDurability: config.log.default_durability,
    defaultSegmentSizeBytes: config.log.segment_size,
  }
}

function identityOf(config: Config, listeners: Listeners) {
  return {
    version: IGGY_VERSION,
    addresses: () => ({
      // SDKs dial this only when there are several nodes, and there never are.
      ip: '127.0.0.1',
      tcpPort: listeners.port('tcp'),
      quicPort: listeners.port('quic'),
      httpPort: listeners.port('http'),
      websocketPort: listeners.port('websocket'),
    }),
    config: () => formatConfig(config),
  }
}
