/**
 * Runs `bench`. A running server is measured from this process. Without one this process becomes the edge, and the load
 * comes from a second one, which is `bench` again, told where this edge listens: load and edge must not share a core.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text as textOf } from 'node:stream/consumers'
import { EdgeError } from '../../errors.ts'
import { planDiskBudget } from '../../log/index.ts'
import { startOwnEdge } from '../bench/own-edge.ts'
import { BENCH_BOUNDS, BENCH_DEFAULTS, type BenchOptions, IN_FLIGHT_MAX_BYTES } from '../bench/plan.ts'
import type { BenchReport } from '../bench/report.ts'
import { benchServer, type DiskFigures } from '../bench/server-bench.ts'
import { stringifyExact } from '../http/json.ts'
import { formatBenchHead, formatBenchResult } from './bench-text.ts'
import { type CommandContext, EXIT } from './command.ts'
import { configurationOf } from './configuration.ts'
import { EdgeHttp } from './edge-http.ts'
import { usageError, type Values } from './grammar.ts'
import type { OutputForm } from './output.ts'
import { serverAddressOf } from './server-address.ts'
import { SERVER_ARGUMENTS } from './server-arguments.ts'
import { connectClient } from './server-client.ts'
import { Output } from './server-command.ts'
import type { OverviewView } from './status-text.ts'

/** Forms of output, not ways to a server. */
const OUTPUT_ARGUMENTS: ReadonlySet<string> = new Set(['output', 'quiet'])

/** @returns 0, or 1 when it was interrupted. @throws {EdgeError} also for values out of bounds. */
export async function runBench(values: Values, context: CommandContext): Promise<number> {
  const options = benchOptionsOf(values)
  const output = new Output(values, context)
  const form: OutputForm = values.has('json') ? 'json' : output.form
  const ofServer = SERVER_ARGUMENTS.find(({ name }) => !OUTPUT_ARGUMENTS.has(name) && values.has(name))
  const ofOwn = ['config', 'data'].find((name) => values.has(name))
  if (ofServer !== undefined && ofOwn !== undefined)
    throw usageError(`--${ofOwn} is for an edge of its own, --${ofServer.name} for a running server: give one of them`)
  const bench: Bench = { values, options, output, form, context }
  try {
    return ofServer === undefined ? await benchOwn(bench) : await benchRunning(bench)
  } catch (error) {
    if (!context.signal.aborted) throw error
    context.note('bench: interrupted')
    return EXIT.failed
  }
}

function benchOptionsOf(values: Values): BenchOptions {
  const connections = values.integer('connections', BENCH_DEFAULTS.connections, BENCH_BOUNDS.connections)
  const payloadBytes = values.integer('size', BENCH_DEFAULTS.payloadBytes, BENCH_BOUNDS.payloadBytes)
  if (connections * payloadBytes > IN_FLIGHT_MAX_BYTES)
    throw usageError(
      `connections and size: found ${connections} times ${payloadBytes} bytes, expected at most ${IN_FLIGHT_MAX_BYTES} together`,
    )
  return {
    seconds: values.integer('seconds', BENCH_DEFAULTS.seconds, BENCH_BOUNDS.seconds),
    connections,
    payloadBytes,
  }
}

interface Bench {
  readonly values: Values
  readonly options: BenchOptions
  readonly output: Output
  readonly form: OutputForm
  readonly context: CommandContext
}

function printResult({ form, output }: Bench, report: BenchReport): void {
  output.line(form === 'json' ? stringifyExact(report) : formatBenchResult(report, form))
}

// ---- a running server --------------------------------------------------------------------------------------------------

async function benchRunning(bench: Bench): Promise<number> {
  const { values, options, output, form, context } = bench
  await using client = await connectClient(values, context)
  const { httpUrl, target } = serverAddressOf(values, context)
  const isNamed = values.has('http-url') || target === null
  const url = isNamed ? httpUrl : await httpBeside(client)
  const http = url === null ? null : new EdgeHttp(url, client.target.credentials)
  const place = { kind: 'server', address: `${client.target.host}:${client.target.port}` } as const
  if (form !== 'json') output.line(formatBenchHead(place, options))
  const disk = () => diskFigures(http)
  if ((await disk()) === null) output.note('what the disk writes is not told: name the HTTP address with --http-url')
  printResult(
    bench,
    await benchServer(options, { client, disk, note: (line) => output.note(line), signal: context.signal }),
  )
  return EXIT.ok
}

/** Where the server says that it listens for HTTP: never the default, which may be another server's. */
async function httpBeside({ target, system }: Awaited<ReturnType<typeof connectClient>>): Promise<string | null> {
  try {
    const port = (await system.cluster()).nodes[0]?.httpPort ?? 0
    const host = target.host.includes(':') ? `[${target.host}]` : target.host
    return port === 0 ? null : `http://${host}:${port}`
  } catch (error) {
    if (error instanceof EdgeError) return null
    throw error
  }
}

/** null where the server is no edge, does not listen for HTTP there, or the user may not know. */
async function diskFigures(http: EdgeHttp | null): Promise<DiskFigures | null> {
  if (http === null) return null
  try {
    const { disk } = (await http.succeed({ method: 'GET', path: '/edge/overview' })) as OverviewView
    const [free, total] = [Number(disk.free_bytes), Number(disk.total_bytes)]
    // Above the floor the edge would give up its oldest messages for ours; so it would above its budget.
    const { freeFloorBytes } = planDiskBudget({ budget: 'auto', freeFloor: 'auto' }, total)
    const ofBudget = Number(disk.budget_bytes) - Number(disk.used_bytes)
    return {
      writtenBytes: Number(disk.written_bytes),
      syncs: Number(disk.syncs),
      roomBytes: Math.max(0, Math.min(free - freeFloorBytes, ofBudget)),
      flashBudgetPerDayBytes: Number(disk.flash_budget_per_day_bytes),
      flashBudgetLeftBytes: Number(disk.flash_budget_left_bytes),
    }
  } catch (error) {
    if (error instanceof EdgeError) return null
    throw error
  }
}

// ---- an edge of its own ------------------------------------------------------------------------------------------------

async function benchOwn(bench: Bench): Promise<number> {
  const { values, options, output, form, context } = bench
  const { config } = configurationOf(values, context)
  await using edge = await startOwnEdge(config, options.connections)
  const place = { kind: 'own', folder: edge.folder } as const
  if (form !== 'json') output.line(formatBenchHead(place, options))
  const { username, password } = edge.root
  const words = [
    ...['bench', '--json', '--http-url', `http://${edge.addresses.http}`],
    ...['--seconds', String(options.seconds), '--connections', String(options.connections)],
    ...['--size', String(options.payloadBytes)],
  ]
  const server = { IGGY_URL: edge.addresses.tcp, IGGY_USERNAME: username, IGGY_PASSWORD: password }
  const environment = { ...context.environment, ...server }
  const report = await reportOfLoad(words, { ...context, environment }, values.has('quiet'))
  if (report === null) return EXIT.failed
  printResult(bench, { ...report, place })
  return EXIT.ok
}

/** @returns null when it failed; it has said why. @throws when it was interrupted. */
async function reportOfLoad(
  words: readonly string[],
  context: CommandContext,
  isQuiet: boolean,
): Promise<BenchReport | null> {
  const { environment, signal, note } = context
  signal.throwIfAborted()
  const [program = '', ...before] = ourselves()
  // Detached: what is typed at the terminal comes to us alone, and we pass it on once.
  const child = spawn(program, [...before, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment,
    detached: true,
  })
  const unsaid: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (isQuiet) unsaid.push(line)
    else if (!signal.aborted) note(line)
  })
  const stop = () => child.kill('SIGINT')
  signal.addEventListener('abort', stop, { once: true })
  try {
    const [code, output] = await Promise.all([exitCode(child), textOf(child.stdout)])
    signal.throwIfAborted()
    if (code === EXIT.ok) return JSON.parse(output) as BenchReport
    for (const line of unsaid) note(line)
    return null
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function exitCode(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, 'exit')) as [number | null]
  return code
}

/** The executable, or Node with this checkout. */
function ourselves(): readonly string[] {
  if (process.getBuiltinModule('node:sea').isSea()) return [process.execPath]
  return [process.execPath, ...process.execArgv, process.argv[1] ?? '']
}
