/** Starts the servers that are measured side by side: this checkout (or the executable), and Apache Iggy's where given. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MAIN, startEdgeProcess } from '../../support/edge-process.ts'
import { openRawClient } from './load.ts'

export interface MeasuredServer extends AsyncDisposable {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly pid: number
  readonly dataPath: string
  readonly username: string
  readonly password: string
}

const START_TIMEOUT_MS = 20_000
/** The kernel counts CPU time in hundredths of a second, whatever its own clock does. */
const TICK_US = 10_000
/** The flags and the environment that the executable and its unit bring along. */
const NODE_FLAGS = [
  '--max-old-space-size=48',
  '--max-semi-space-size=1',
  '--v8-pool-size=1',
  '--disable-warning=ExperimentalWarning',
  '--disable-sigusr1',
]
const UNIT_ENVIRONMENT = {
  UV_THREADPOOL_SIZE: '2',
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: '131072',
  // No part of a unit: certificates that a developer's machine trusts in addition, of which each process keeps a megabyte.
  NODE_EXTRA_CA_CERTS: '',
}

/** @param keptFolder where data and addons lie and stay, for a start that is not the first; else all of it is removed. */
export async function startEdgeServer(
  environment: Readonly<Record<string, string>>,
  keptFolder?: string,
): Promise<MeasuredServer> {
  const folder = keptFolder ?? mkdtempSync(join(tmpdir(), 'edge-bench-'))
  const dataPath = join(folder, 'data')
  const binary = process.env.EDGE_BENCH_EXECUTABLE
  const command = binary === undefined ? [process.execPath, ...NODE_FLAGS, MAIN] : [binary]
  const environmentOfUnit = { ...UNIT_ENVIRONMENT, CACHE_DIRECTORY: join(folder, 'cache') }
  const edge = await startEdgeProcess({ dataPath, command, environment: { ...environmentOfUnit, ...environment } })
  const [host = '', port = ''] = edge.tcp.split(':')
  return {
    name: 'edge',
    host,
    port: Number(port),
    pid: edge.pid,
    dataPath,
    username: 'iggy',
    password: 'iggy',
    [Symbol.asyncDispose]: async () => {
      await edge.stop()
      if (keptFolder === undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** @param binary Apache Iggy's server 0.8.0, named by `EDGE_BENCH_APACHE`. */
export async function startApacheServer(
  binary: string,
  environment: Readonly<Record<string, string>>,
): Promise<MeasuredServer> {
  const dataPath = mkdtempSync(join(tmpdir(), 'apache-bench-'))
  const [tcp, http, quic, websocket] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  const child = spawn(binary, [], {
    cwd: dataPath,
    stdio: 'ignore',
    env: {
      ...process.env,
      IGGY_SYSTEM_PATH: dataPath,
      IGGY_ROOT_USERNAME: 'iggy',
      IGGY_ROOT_PASSWORD: 'iggy',
      IGGY_TCP_ADDRESS: `127.0.0.1:${tcp}`,
      IGGY_HTTP_ADDRESS: `127.0.0.1:${http}`,
      IGGY_QUIC_ADDRESS: `127.0.0.1:${quic}`,
      IGGY_WEBSOCKET_ADDRESS: `127.0.0.1:${websocket}`,
      ...environment,
    },
  })
  await untilListening(child, Number(tcp))
  return {
    name: 'apache',
    host: '127.0.0.1',
    port: Number(tcp),
    pid: child.pid ?? 0,
    dataPath,
    username: 'iggy',
    password: 'iggy',
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode === null) {
        child.kill('SIGTERM')
        await once(child, 'exit')
      }
      rmSync(dataPath, { recursive: true, force: true })
    },
  }
}

/** Private (anonymous) memory and RSS of a process in bytes, from the kernel's own sums. */
export function memoryOf(pid: number): { privateBytes: number; rssBytes: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024
  return { privateBytes: kib('Anonymous'), rssBytes: kib('Rss') }
}

/** CPU time a process has taken since its start, all threads, user and system: what a busy machine does not distort. */
export function cpuUsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name in brackets may hold blanks: count from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_US
}

async function untilListening(child: ChildProcess, port: number): Promise<void> {
  const endMs = performance.now() + START_TIMEOUT_MS
  while (performance.now() < endMs && child.exitCode === null) {
    try {
      ;(await openRawClient('127.0.0.1', port)).close()
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  throw new Error(`server did not listen on ${port} (exit ${child.exitCode})`)
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  await new Promise((resolve) => server.close(resolve))
  return port
}
