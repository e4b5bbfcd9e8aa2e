/** The HTTP API before a broker on a log in memory, on a free port of loopback; for tests of everything that HTTP does. */
import { systemClock } from '../../src/clock.ts'
import { silentLogger } from '../../src/logger.ts'
import {
  BROKER_SETTINGS,
  CONSUMER_GROUP_SETTINGS,
  createBroker,
  HEARTBEAT_SETTINGS,
  MESSAGE_DEDUPLICATION_SETTINGS,
  PERSONAL_ACCESS_TOKEN_SETTINGS,
  type RunningBroker,
} from '../../src/runtime/broker/index.ts'
import { HTTP_SECTIONS, type HttpServer, type HttpSettings, startHttp } from '../../src/runtime/http/index.ts'
import type { Health, SyncRouteStatus } from '../../src/runtime/observe/index.ts'
import { defaultsOf } from '../../src/setting.ts'
import { MemoryLog } from './memory-log.ts'

export interface TestHttp extends AsyncDisposable {
  readonly log: MemoryLog
  readonly broker: RunningBroker
  readonly http: HttpServer
  readonly url: string
  /** What `/health` answers; replace to see another state. */
  health: Health
  sync: readonly SyncRouteStatus[]
  /** A second server on the same log, as after a restart. */
  restart(): Promise<TestHttp>
}

export interface TestHttpOptions {
  readonly log?: MemoryLog
  /** By section; what is absent has its default. */
  readonly settings?: { readonly [S in keyof HttpSettings]?: Partial<HttpSettings[S]> }
}

/** Root is iggy/iggy. */
export async function startTestHttp(options: TestHttpOptions = {}): Promise<TestHttp> {
  const log = options.log ?? new MemoryLog()
  const ports = { ip: '127.0.0.1', tcpPort: 8090, quicPort: 0, httpPort: 3000, websocketPort: 0 }
  const broker = await createBroker({
    log,
    clock: systemClock,
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
  const state: { health: Health; sync: readonly SyncRouteStatus[] } = {
    health: { status: 'ready', checks: [] },
    sync: [],
  }
  const watched = {
    startedAtUs,
    catalog: log.catalog,
    logStats: () => log.stats(),
    isWritable: () => log.isWritable,
    findings: () => log.findings(),
    sync: () => state.sync,
    health: () => state.health,
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
      listeners: () => [{ name: 'http', isEnabled: true, address: '127.0.0.1:3000' }],
    },
    metrics: {
      ...watched,
      userCount: () => log.metadata.users.size,
      clientCount: () => 0,
      residentBytes: () => process.memoryUsage.rss(),
      takeLoopDelayUs: () => 0,
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
    async restart() {
      await close()
      return startTestHttp({ ...options, log })
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
  return Object.fromEntries(sections) as HttpSettings
}
