/** A broker on the in-memory log, with a clock that tests move and callers for the roles they need. */
import type { Clock } from '../../src/clock.ts'
import { type Logger, silentLogger } from '../../src/logger.ts'
import {
  type BrokerSettings,
  type Caller,
  createBroker,
  type Dialect,
  type RootCredentials,
  type RunningBroker,
} from '../../src/runtime/broker/index.ts'
import { encodeRecords } from '../../src/sdk/wire/messages.ts'
import { MemoryLog } from './memory-log.ts'
import { brokerSettings } from './protocol-server.ts'

export class TestClock implements Clock {
  nowUs = 1_800_000_000_000_000n
  isTrusted = true
  /** By how much it was set. */
  setUs = 0n

  wallUs(): bigint {
    return this.nowUs + this.setUs
  }

  monotonicUs(): number {
    return Number(this.nowUs - 1_800_000_000_000_000n)
  }

  passMs(ms: number): void {
    this.nowUs += BigInt(ms) * 1000n
  }
}

export interface BrokerWorld extends AsyncDisposable {
  readonly broker: RunningBroker
  readonly log: MemoryLog
  readonly clock: TestClock
  /** Root over HTTP: all rights, no connection. */
  readonly root: Caller
  /** A new connection of that user, root when left out. */
  connect(userId?: number, dialect?: Dialect): Caller & { readonly client: NonNullable<Caller['client']> }
  /** The same data after a restart. */
  restart(): Promise<BrokerWorld>
}

export interface BrokerWorldOptions {
  readonly settings?: Partial<BrokerSettings>
  readonly root?: RootCredentials
  readonly log?: MemoryLog
  readonly clock?: TestClock
  readonly logger?: Logger
}

export async function createBrokerWorld(options: BrokerWorldOptions = {}): Promise<BrokerWorld> {
  const clock = options.clock ?? new TestClock()
  const log = options.log ?? new MemoryLog(() => clock.wallUs())
  const broker = await createBroker({
    log,
    clock,
    isClockTrusted: () => clock.isTrusted,
    logger: options.logger ?? silentLogger,
    settings: brokerSettings(options.settings),
    root: options.root ?? { username: 'iggy', password: 'iggy' },
    identity: {
      version: '0.9.0',
      addresses: () => ({ ip: '127.0.0.1', tcpPort: 1, quicPort: 2, httpPort: 3, websocketPort: 4 }),
      config: () => '[system]\n',
      recentLog: () => '{"event":"edge.ready"}\n',
    },
  })
  let port = 1000
  return {
    broker,
    log,
    clock,
    root: { dialect: 'http', userId: 0, client: null },
    connect(userId = 0, dialect = 'vsr') {
      const client = broker.openClient('tcp', `127.0.0.1:${port++}`, dialect)
      const caller = { dialect, userId: null, client }
      broker.login(caller, userId)
      return caller
    },
    async restart() {
      await broker.close()
      return createBrokerWorld({ ...options, log, clock })
    },
    async [Symbol.asyncDispose]() {
      await broker.close()
    },
  }
}

/** Messages with these ids (0n = none) and texts. */
export function batchOf(...messages: readonly (readonly [id: bigint, text: string])[]) {
  return encodeRecords(
    messages.map(([id, text]) => ({ id, payload: Buffer.from(text), originUs: 1_800_000_000_000_000n })),
  )
}
