/** Starts an edge, runs a client's program against it and listens to what the program reports and asks for. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { ClientRun } from '../client-catalog.ts'
import type { Program } from '../toolchain/program.ts'
import { RestartableEdge } from './restartable-edge.ts'

/** One line of a program: what came of one scenario. */
export interface ScenarioResult {
  readonly client: string
  readonly version: string
  readonly transport: string
  readonly scenario: string
  readonly ok: boolean
  readonly detail: string
}

/** A program that takes longer hangs; the longest one sleeps out two reconnections. */
const PROGRAM_TIMEOUT_MS = 6 * 60_000
/** What of a program's stderr is shown when it ends before its scenarios do. */
const KEPT_CHARACTERS = 2000
/** What of the edge's log is shown beside a scenario that failed. */
const KEPT_LINES = 20

/**
 * @returns what came of each scenario the program finished, by name.
 * @throws {Error} the program ended before it had reported on each of them, with its last words.
 */
export async function runScenarios(program: Program, run: ClientRun): Promise<Map<string, ScenarioResult>> {
  await using edge = await RestartableEdge.start()
  const addresses = Object.entries(edge.addresses).flatMap(([name, address]) => [`--${name}`, address])
  const child = spawn(
    program.command,
    [...program.arguments, '--transport', run.transport, ...addresses, ...run.scenarios],
    { env: { ...process.env, ...program.environment }, stdio: 'pipe' },
  )
  const timer = setTimeout(() => child.kill('SIGKILL'), PROGRAM_TIMEOUT_MS)
  try {
    return await listen(child, edge, run)
  } finally {
    clearTimeout(timer)
    child.kill('SIGKILL')
  }
}

async function listen(
  child: ChildProcessWithoutNullStreams,
  edge: RestartableEdge,
  run: ClientRun,
): Promise<Map<string, ScenarioResult>> {
  const results = new Map<string, ScenarioResult>()
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-KEPT_CHARACTERS)
  })
  const closed = once(child, 'close')
  for await (const line of createInterface({ input: child.stdout })) {
    const message = parseLine(line)
    if (message === undefined) continue
    if ('ask' in message) {
      if (message.ask !== 'restart') throw new Error(`the program asks for ${message.ask}`)
      await edge.restart()
      child.stdin.write('restarted\n')
    } else results.set(message.scenario, message.ok ? message : withEdgeLines(message, edge))
  }
  const [code] = await closed
  const missing = run.scenarios.filter((scenario) => !results.has(scenario))
  if (missing.length > 0) throw new Error(`it ended with ${code} before ${missing.join(', ')}:\n${errors}`)
  return results
}

/** Why a scenario failed may stand on the other side. */
function withEdgeLines(result: ScenarioResult, edge: RestartableEdge): ScenarioResult {
  const lines = edge.lines.slice(-KEPT_LINES).map((line) => JSON.stringify(line))
  return { ...result, detail: [result.detail, 'the edge said last:', ...lines].join('\n') }
}

/** What is no JSON comes from a library's log and says nothing here. */
function parseLine(line: string): ScenarioResult | { ask: string } | undefined {
  if (!line.startsWith('{')) return undefined
  return JSON.parse(line) as ScenarioResult | { ask: string }
}
