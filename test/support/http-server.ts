/** The HTTP API before a broker on a log in memory, on a free port of loopback; for tests of everything that HTTP does. */
import { systemClock } from '../../src/clock.ts'
import type { Log } from '../../src/log/index.ts'
import { silentLogger } from '../../src/logger.ts'
import type { QuicTraffic } from '../../src/quic-edge/index.ts'
import {
  BROKER_SETTINGS,
  CONSUMER_GROUP_SETTINGS,
  createBroker,
  HEARTBEAT_SETTINGS,
  MESSAGE_DEDUPLICATION_SETTINGS,
  PERSONAL_ACCESS_TOKEN_SETTINGS,
  type RunningBroker,
} from '../../src/runtime/broker/index.ts'
import type { DeviceTraffic } from '../../src/runtime/device/index.ts'
import {
  HTTP_LISTS,
  HTTP_SECTIONS,
  type HttpServer,
  type HttpSettings,
  startHttp,
} from '../../src/runtime/http/index.ts'
import type { Health, SyncLags, SyncRouteStatus } from '../../src/runtime/observe/index.ts'
import { defaultsOf } from '../../src/setting.ts'
import { MemoryLog } from './memory-log.ts'

export interface TestHttp<L extends Log = MemoryLog> extends AsyncDisposable {
  readonly log: L
  readonly broker: RunningBroker
  readonly http: HttpServer
  readonly url: string
  /** What `/health` answers; replace to see another state. */
  health: Health
  sync: readonly SyncRouteStatus[]
  syncLags: SyncLags
  /** Null, as while plain QUIC is off. */
  quicTraffic: QuicTraffic | null
  /** Null, as while no device can come. */
  deviceTraffic: DeviceTraffic | null
  /** A second server on the same log, as after a restart. */
  restart(): Promise<TestHttp<L>>
}

export interface TestHttpOptions {
  /** By section; what is absent has its default. */
  readonly settings?: { readonly [S in keyof HttpSettings]?: Partial<HttpSettings[S]> }
}

export function startTestHttp(options: TestHttpOptions = {}): Promise<TestHttp> {
  return startTestHttpOn(new MemoryLog(), options)
}

/** Root is iggy/iggy. The log stays the caller's. */
export async function startTestHttpOn<L extends Log>(log: L, options: TestHttpOptions = {}): Promise<TestHttp<L>> {
  const ports = { ip: '127.0.0.1', tcpPort: 8090, quicPort: 0, httpPort: 3000, websocketPort: 0 }
  const broker = await createBroker({
    log,
    clock: systemClock,
    isClockTrusted: () => true,
    logger: silentLogger,
    root: { username: 'iggy', password: 'iggy' },
    identity: { version: '0.9.0', addresses: () => ports, config: () => '' },
    settings: {
      broker: defaultsOf(BROKER_SETTINGS),
      heartbeat: defaultsOf(HEARTBEAT_SETTINGS),
      personalAccessToken: defaultsOf(PERSONAL_ACCESS_TOKEN_SETTINGS),
      consumerGroup: defaultsOf(CONSUMER_GROUP_SETTINGS),
      messageDeduplication: defaultsOf(MESSAGE_DEDUPLICATION_SETTINGS),
      defaultDurability: 'durable',
      defaultSegmentSizeBytes: 16 * 1024 * 1024,
    },
  })
  const startedAtUs = systemClock.wallUs()
  const state: Pick<TestHttp, 'health' | 'sync' | 'syncLags' | 'quicTraffic' | 'deviceTraffic'> = {
    health: { status: 'ready', checks: [] },
    sync: [],
    syncLags: { lagOf: () => null },
    quicTraffic: null,
    deviceTraffic: null,
  }
  const watched = {
    startedAtUs,
    catalog: log.catalog,
    logStats: () => log.stats(),
    isWritable: () => log.isWritable,
    findings: () => log.findings(),
    sync: () => state.sync,
    health: () => state.health,
    deviceTraffic: () => state.deviceTraffic,
  }
  const http = await startHttp({
    broker,
    store: log.metadata,
    clock: systemClock,
    logger: silentLogger,
    settings: settingsOf(options),
    health: {
      get health() {
        return state.health
      },
    },
    overview: {
      ...watched,
      version: '0.9.0',
      metadata: log.metadata,
      syncLags: () => state.syncLags,
      uptimeUs: () => 1_000_000,
      listeners: () => [{ name: 'http', isEnabled: true, address: '127.0.0.1:3000', certificate: null }],
    },
    metrics: {
      ...watched,
      userCount: () => log.metadata.users.size,
      clientCount: () => 0,
      residentBytes: () => process.memoryUsage.rss(),
      takeLoopDelayUs: () => 0,
      occupancies: () => [{ name: 'http', openConnections: 1, maxConnections: 2, refusedConnections: 3 }],
      quicTraffic: () => state.quicTraffic,
    },
  })
  const close = async (): Promise<void> => {
    await http.close()
    await broker.close()
  }
  return {
    log,
    broker,
    http,
    url: `http://${http.address}`,
    get health() {
      return state.health
    },
    set health(health) {
      state.health = health
    },
    get sync() {
      return state.sync
    },
    set sync(routes) {
      state.sync = routes
    },
    get syncLags() {
      return state.syncLags
    },
    set syncLags(syncLags) {
      state.syncLags = syncLags
    },
    get quicTraffic() {
      return state.quicTraffic
    },
    set quicTraffic(traffic) {
      state.quicTraffic = traffic
    },
    get deviceTraffic() {
      return state.deviceTraffic
    },
    set deviceTraffic(traffic) {
      state.deviceTraffic = traffic
    },
    async restart() {
      await close()
      return startTestHttpOn(log, options)
    },
    [Symbol.asyncDispose]: close,
  }
}

function settingsOf({ settings = {} }: TestHttpOptions): HttpSettings {
  const given: Readonly<Record<string, object | undefined>> = { ...settings }
  const sections = Object.entries(HTTP_SECTIONS).map(([section, table]) => {
    const address = section === 'http' ? { address: '127.0.0.1:0' } : {}
    return [section, { ...defaultsOf(table), ...address, ...given[section] }]
  })
  const lists = Object.keys(HTTP_LISTS).map((list) => [list, given[list] ?? []])
  return Object.fromEntries([...sections, ...lists]) as HttpSettings
}
