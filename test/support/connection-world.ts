/** A connection of the protocol server on a carrier of memory. */
import type { ByteTransport } from '../../src/runtime/server/byte-session.ts'
import { Connection } from '../../src/runtime/server/connection.ts'
import type { ServerContext } from '../../src/runtime/server/server-context.ts'
import type { BrokerWorld } from './broker-world.ts'
import { eventually } from './eventually.ts'
import { createServerWorld, LOGIN } from './server-world.ts'

export class FakeTransport implements ByteTransport {
  readonly kind = 'tcp'
  readonly address = '127.0.0.1:5'
  readonly writes: Buffer[] = []
  isSlow = false
  unsentBytes = 0
  unacknowledgedBytes?: () => number | null
  /** What a slow peer has not taken, as it was given and as it was then. */
  backlog: { view: Uint8Array; bytes: Buffer } | null = null
  isPaused = false
  isEnded = false
  isDestroyed = false

  write(view: Uint8Array): boolean {
    const bytes = Buffer.from(view)
    this.writes.push(bytes)
    if (!this.isSlow) return true
    this.backlog ??= { view, bytes }
    this.unsentBytes += bytes.length
    return false
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  end(): void {
    this.isEnded = true
  }

  destroy(): void {
    this.isDestroyed = true
  }

  /** Statuses of all replies so far. */
  statuses(): number[] {
    const bytes = Buffer.concat(this.writes)
    const statuses: number[] = []
    for (let at = 0; at < bytes.length; at += 8 + bytes.readUInt32LE(at + 4)) statuses.push(bytes.readUInt32LE(at))
    return statuses
  }
}

export interface ConnectionWorld extends AsyncDisposable {
  readonly world: BrokerWorld
  readonly transport: FakeTransport
  readonly connection: Connection
  readonly server: ServerContext
  /** Logged in, with a stream and a topic. */
  ready(): Promise<void>
  /** Looks at the time limits when so much time has passed. */
  sweepAfter(ms: number): void
}

export async function openConnection(budgetBytes = 1_000_000): Promise<ConnectionWorld> {
  const { world, server, createTopic } = await createServerWorld(budgetBytes)
  const transport = new FakeTransport()
  const connection = new Connection(server, transport, () => undefined)
  return {
    world,
    transport,
    connection,
    server,
    async ready() {
      await createTopic()
      connection.receive(LOGIN)
      await eventually(() => transport.writes.length === 1)
      transport.writes.length = 0
    },
    sweepAfter(ms) {
      world.clock.passMs(ms)
      connection.sweep(world.clock.monotonicUs())
    },
    async [Symbol.asyncDispose]() {
      connection.closed()
      await world[Symbol.asyncDispose]()
    },
  }
}
