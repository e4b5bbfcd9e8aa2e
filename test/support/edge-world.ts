/**
 * A whole edge in this process, on real files and free ports of loopback, that can be stopped and started again on the same
 * data: for tests of what users rely on, whichever parts it takes.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, systemClock } from '../../src/clock.ts'
import { silentLogger } from '../../src/logger.ts'
import { loadConfig } from '../../src/runtime/config/load.ts'
import { type Edge, startEdge } from '../../src/runtime/edge.ts'
import { type Client, connect, type Generation } from '../../src/sdk/index.ts'
import { LOOPBACK_ENVIRONMENT } from './edge-process.ts'

export const GENERATIONS: readonly Exclude<Generation, 'auto'>[] = ['classic', 'vsr']

/** The system's clock, which tests may put forward: days pass in no time. */
export class HastyClock implements Clock {
  #aheadUs = 0

  passMs(ms: number): void {
    this.#aheadUs += ms * 1000
  }

  wallUs(): bigint {
    return systemClock.wallUs() + BigInt(this.#aheadUs)
  }

  monotonicUs(): number {
    return systemClock.monotonicUs() + this.#aheadUs
  }
}

export interface EdgeWorld extends AsyncDisposable {
  /** The one that runs now. */
  readonly edge: Edge
  readonly clock: HastyClock
  readonly dataPath: string
  readonly http: string
  readonly tcpPort: number
  /** Stops as for SIGTERM and starts on the same data; ports change. */
  restart(): Promise<void>
  /** A client of this library; closed with the world. */
  connect(generation?: Generation, user?: readonly [string, string]): Promise<Client>
  /** With root's password, unless `authorization` says otherwise. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
}

export interface CallOptions {
  readonly body?: unknown
  /** The whole header. */
  readonly authorization?: string
}

export interface Answer {
  readonly status: number
  readonly text: string
  /** Parsed text; undefined when it is no JSON. */
  readonly body: unknown
}

const ROOT = { username: 'iggy', password: 'iggy' } as const

/** @param environment settings as `EDGE_SECTION__KEY`. */
export async function startEdgeWorld(environment: Readonly<Record<string, string>> = {}): Promise<EdgeWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'edge-world-'))
  const dataPath = join(folder, 'data')
  const clock = new HastyClock()
  const config = loadConfig({
    file: null,
    environment: { ...LOOPBACK_ENVIRONMENT, EDGE_WEBTRANSPORT__ENABLED: 'false', ...environment },
    flags: { 'system.path': dataPath },
  })
  const start = () => startEdge({ config, clock, logger: silentLogger, root: ROOT })
  let edge = await start()
  const clients: Client[] = []
  const closeClients = () => Promise.all(clients.splice(0).map((client) => client.close()))
  return {
    get edge() {
      return edge
    },
    clock,
    dataPath,
    get http() {
      return `http://${edge.addresses.http}`
    },
    get tcpPort() {
      return Number(edge.addresses.tcp.split(':').at(-1))
    },
    async restart() {
      await closeClients()
      await edge.close()
      edge = await start()
    },
    async connect(generation = 'vsr', [username, password] = [ROOT.username, ROOT.password]) {
      const client = await connect(`iggy://${username}:${password}@${edge.addresses.tcp}?generation=${generation}`)
      clients.push(client)
      return client
    },
    async call(method, path, { body, authorization = basic(ROOT.username, ROOT.password) } = {}) {
      const response = await fetch(`http://${edge.addresses.http}${path}`, {
        method,
        headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return { status: response.status, text, body: parse(text) }
    },
    async [Symbol.asyncDispose]() {
      await closeClients()
      await edge.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
