/**
 * Apache's own server, for tests that prove interworking: its binary is named by the environment, since it is no part of
 * this project. Starts it on free ports with its data in a folder of the test's.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from './free-port.ts'

const START_TIMEOUT_MS = 20_000

/** Which servers a run may use: name and what to set. */
export const APACHE_SERVERS = [
  { name: 'Apache Iggy 0.8.0', variable: 'EDGE_TEST_APACHE_080', generation: 'classic' },
  { name: 'Apache Iggy newest', variable: 'EDGE_TEST_APACHE_HEAD', generation: 'vsr' },
] as const

/** @returns the binary, or the reason why a test that needs it is left out. */
export function apacheBinary(variable: string): { path: string } | { reason: string } {
  const path = process.env[variable]
  return path ? { path } : { reason: `${variable} names no server binary` }
}

export class ApacheServer implements AsyncDisposable {
  readonly tcpPort: number
  readonly httpPort: number
  readonly #binary: string
  readonly #folder: string
  readonly #otherPorts: readonly number[]
  #child: ChildProcess | null = null

  private constructor(binary: string, folder: string, ports: readonly number[]) {
    this.#binary = binary
    this.#folder = folder
    const [tcpPort = 0, httpPort = 0, ...others] = ports
    this.tcpPort = tcpPort
    this.httpPort = httpPort
    this.#otherPorts = others
  }

  static async start(binary: string, folder: string): Promise<ApacheServer> {
    const server = new ApacheServer(binary, folder, await Promise.all(Array.from({ length: 5 }, freePort)))
    await server.startAgain()
    return server
  }

  async startAgain(): Promise<void> {
    const at = (port: number | undefined): string => `127.0.0.1:${port}`
    const [quicPort, websocketPort, replicaPort] = this.#otherPorts
    const child = spawn(this.#binary, [], {
      cwd: this.#folder,
      stdio: 'ignore',
      env: {
        PATH: process.env.PATH,
        HOME: this.#folder,
        IGGY_SYSTEM_PATH: `${this.#folder}/data`,
        IGGY_ROOT_USERNAME: 'iggy',
        IGGY_ROOT_PASSWORD: 'iggy',
        IGGY_TCP_ADDRESS: at(this.tcpPort),
        IGGY_HTTP_ADDRESS: at(this.httpPort),
        IGGY_QUIC_ADDRESS: at(quicPort),
        IGGY_WEBSOCKET_ADDRESS: at(websocketPort),
        IGGY_CLUSTER_NODE_CURRENT_PORTS_TCP_REPLICA: String(replicaPort),
      },
    })
    this.#child = child
    const deadline = Date.now() + START_TIMEOUT_MS
    while (!(await accepts(this.tcpPort))) {
      if (child.exitCode !== null) throw new Error(`${this.#binary} ended with ${child.exitCode}`)
      if (Date.now() > deadline) throw new Error(`${this.#binary} does not accept on ${this.tcpPort}`)
      await delay(50)
    }
  }

  /** SIGKILL: what it acknowledged from memory alone is gone. */
  async kill(): Promise<void> {
    const child = this.#child
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    this.#child = null
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
