/** A server of the binary protocol in this process, on the in-memory log unless told otherwise; and a plain socket to it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Clock, systemClock } from '../../src/clock.ts'
import type { Log } from '../../src/log/index.ts'
import { type Logger, silentLogger } from '../../src/logger.ts'
import {
  BROKER_SETTINGS,
  type BrokerSettings,
  CONSUMER_GROUP_SETTINGS,
  createBroker,
  DEFAULT_ROOT,
  HEARTBEAT_SETTINGS,
  MESSAGE_DEDUPLICATION_SETTINGS,
  PERSONAL_ACCESS_TOKEN_SETTINGS,
  type RunningBroker,
} from '../../src/runtime/broker/index.ts'
import {
  createProtocolServer,
  listenTcp,
  type ProtocolServer,
  TCP_SETTINGS,
  type TcpListener,
  type TcpSettings,
} from '../../src/runtime/server/index.ts'
import { defaultsOf } from '../../src/setting.ts'
import { MemoryLog } from './memory-log.ts'

const READ_TIMEOUT_MS = 5000

export interface TestServer extends AsyncDisposable {
  readonly broker: RunningBroker
  readonly log: Log
  readonly server: ProtocolServer
  readonly listener: TcpListener
}

export interface TestServerOptions {
  readonly log?: Log
  readonly clock?: Clock
  readonly logger?: Logger
  readonly tcp?: Partial<TcpSettings>
  readonly broker?: Partial<BrokerSettings>
  readonly tls?: { certificatePem: string; privateKeyPem: string; isRequired: boolean }
}

export function brokerSettings(changes: Partial<BrokerSettings> = {}): BrokerSettings {
  return {
    broker: defaultsOf(BROKER_SETTINGS),
    heartbeat: defaultsOf(HEARTBEAT_SETTINGS),
    personalAccessToken: defaultsOf(PERSONAL_ACCESS_TOKEN_SETTINGS),
    consumerGroup: defaultsOf(CONSUMER_GROUP_SETTINGS),
    messageDeduplication: defaultsOf(MESSAGE_DEDUPLICATION_SETTINGS),
    defaultDurability: 'durable',
    defaultSegmentSizeBytes: 16 * 1024 * 1024,
    ...changes,
  }
}

/** Root is iggy/iggy; the listener has a free port on loopback. */
export async function startProtocolServer(options: TestServerOptions = {}): Promise<TestServer> {
  const clock = options.clock ?? systemClock
  const logger = options.logger ?? silentLogger
  const log = options.log ?? new MemoryLog(() => clock.wallUs())
  const settings = brokerSettings(options.broker)
  let tcpPort = 0
  const identity = {
    version: '0.9.0',
    addresses: () => ({ ip: '127.0.0.1', tcpPort, quicPort: 0, httpPort: 0, websocketPort: 0 }),
    config: () => '',
  }
  const broker = await createBroker({
    log,
    clock,
    isClockTrusted: () => true,
    logger,
    settings,
    root: DEFAULT_ROOT,
    identity,
  })
  const tcp = { ...defaultsOf(TCP_SETTINGS), ...options.tcp }
  const server = createProtocolServer({ broker, log, clock, logger, settings: tcp, serverVersion: '0.9.0' })
  const listener = await listenTcp({
    host: '127.0.0.1',
    port: 0,
    maxConnections: tcp.max_connections,
    logger,
    tls: options.tls ?? null,
    accept: (transport) => server.acceptByteSession(transport),
  })
  tcpPort = listener.port
  return {
    broker,
    log,
    server,
    listener,
    async [Symbol.asyncDispose]() {
      const closed = listener.close()
      await server.close(200)
      await closed
      await broker.close()
      await log.close()
    },
  }
}

/** Bytes to a server and back, without knowing what they mean. */
export class RawClient implements Disposable {
  readonly socket: Socket
  private bytes = Buffer.alloc(0)
  private wake: (() => void) | null = null
  isEnded = false

  private constructor(socket: Socket) {
    this.socket = socket
    const wake = () => this.wake?.()
    socket.on('data', (chunk: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, chunk])
      wake()
    })
    for (const event of ['end', 'close', 'error']) {
      socket.on(event, () => {
        this.isEnded = true
        wake()
      })
    }
  }

  static async connect(port: number): Promise<RawClient> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    await once(socket, 'connect')
    return new RawClient(socket)
  }

  write(bytes: Uint8Array): void {
    this.socket.write(bytes)
  }

  /** @returns exactly `count` bytes. */
  async read(count: number): Promise<Buffer> {
    await this.until(() => this.bytes.length >= count || this.isEnded)
    assert.ok(this.bytes.length >= count, `expected ${count} bytes, found the end after ${this.bytes.length}`)
    const taken = this.bytes.subarray(0, count)
    this.bytes = this.bytes.subarray(count)
    return taken
  }

  /** @returns one classic reply, head and payload. */
  async readClassic(): Promise<{ status: number; payload: Buffer; frame: Buffer }> {
    const head = await this.read(8)
    const payload = await this.read(head.readUInt32LE(4))
    return { status: head.readUInt32LE(0), payload, frame: Buffer.concat([head, payload]) }
  }

  /** @returns one whole vsr frame. */
  async readVsr(): Promise<Buffer> {
    const head = await this.read(256)
    return Buffer.concat([head, await this.read(head.readUInt32LE(48) - 256)])
  }

  /** Resolves when the server has ended the connection. */
  async ended(): Promise<void> {
    await this.until(() => this.isEnded)
  }

  close(): void {
    this.socket.destroy()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  private async until(isDone: () => boolean): Promise<void> {
    const deadline = Date.now() + READ_TIMEOUT_MS
    while (!isDone()) {
      assert.ok(Date.now() < deadline, `nothing came for ${READ_TIMEOUT_MS} ms`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, deadline - Date.now())
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }
}
