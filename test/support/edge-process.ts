/**
 * A real edge in a process of its own, as a user starts it; for tests that kill it. Started on loopback with port 0; the
 * addresses come from its `edge.ready` line.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'

const READY_TIMEOUT_MS = 30_000
const STOP_TIMEOUT_MS = 15_000
/** stderr lines kept for a failing test's message. */
const KEPT_LINES = 200

export interface EdgeProcess extends AsyncDisposable {
  readonly pid: number
  readonly tcp: string
  readonly http: string
  readonly websocket: string
  readonly webtransport: string
  /** Empty unless plain QUIC is turned on. */
  readonly quic: string
  readonly certificateSha256: string
  /** JSON lines of stderr so far, newest last. */
  readonly lines: readonly Record<string, unknown>[]
  /** @returns the first line of that event, past or to come. */
  waitFor(event: string, timeoutMs?: number): Promise<Record<string, unknown>>
  /** The process ends at once, wherever it is. */
  kill(): Promise<void>
  /** The signal, SIGTERM unless named, and wait. @returns the exit code; null when the signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

export interface EdgeProcessOptions {
  readonly dataPath: string
  /** Command that runs the edge; `EDGE_COMMAND` when left out. */
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly arguments?: readonly string[]
}

export const MAIN = new URL('../../src/runtime/main.ts', import.meta.url).pathname

/** The edge that tests start: the checkout, or an executable that `EDGE_TEST_EXECUTABLE` names, as it ships. */
export const EDGE_COMMAND = commandOf(process.env.EDGE_TEST_EXECUTABLE ?? '')

function commandOf(executable: string): { readonly program: string; readonly before: readonly string[] } {
  if (executable !== '') return { program: resolve(executable), before: [] }
  return { program: process.execPath, before: ['--disable-warning=ExperimentalWarning', MAIN] }
}

/** Every listener on loopback with a free port. */
export const LOOPBACK_ENVIRONMENT: Readonly<Record<string, string>> = {
  EDGE_TCP__ADDRESS: '127.0.0.1:0',
  EDGE_HTTP__ADDRESS: '127.0.0.1:0',
  EDGE_WEBSOCKET__ADDRESS: '127.0.0.1:0',
  EDGE_WEBTRANSPORT__ADDRESS: '127.0.0.1:0',
  EDGE_QUIC__ADDRESS: '127.0.0.1:0',
}

export async function startEdgeProcess(options: EdgeProcessOptions): Promise<EdgeProcess> {
  const [command = EDGE_COMMAND.program, ...before] = options.command ?? [EDGE_COMMAND.program, ...EDGE_COMMAND.before]
  const child = spawn(command, [...before, 'run', '--dev', '--data', options.dataPath, ...(options.arguments ?? [])], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...LOOPBACK_ENVIRONMENT, ...options.environment },
  })
  // A test that dies must not leave its edge behind.
  const killAtExit = () => child.kill('SIGKILL')
  process.once('exit', killAtExit)
  child.once('exit', () => process.off('exit', killAtExit))
  const output = readLines(child)
  const waitFor = (event: string, timeoutMs = READY_TIMEOUT_MS) => output.waitFor(event, timeoutMs)
  const ready = await waitFor('edge.ready').catch((error: unknown) => {
    // Left running, it would keep the test's process from ending.
    child.kill('SIGKILL')
    throw error
  })
  assert.ok(child.pid !== undefined)
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    await once(child, 'exit')
    clearTimeout(timer)
    return child.exitCode
  }
  return {
    pid: child.pid,
    tcp: String(ready.tcp),
    http: String(ready.http),
    websocket: String(ready.websocket),
    webtransport: String(ready.webtransport),
    quic: String(ready.quic),
    certificateSha256: String(ready.certificate_sha256),
    lines: output.lines,
    waitFor,
    kill: async () => void (await end('SIGKILL')),
    stop: (signal = 'SIGTERM') => end(signal),
    [Symbol.asyncDispose]: async () => void (await end('SIGKILL')),
  }
}

function readLines(child: ChildProcess): {
  lines: Record<string, unknown>[]
  waitFor(event: string, timeoutMs: number): Promise<Record<string, unknown>>
} {
  const lines: Record<string, unknown>[] = []
  const waiting = new Set<() => void>()
  let hasEnded = false
  const wake = () => {
    for (const check of [...waiting]) check()
  }
  assert.ok(child.stderr !== null)
  createInterface({ input: child.stderr }).on('line', (line) => {
    lines.push(parseLine(line))
    if (lines.length > KEPT_LINES) lines.shift()
    wake()
  })
  child.on('exit', () => {
    hasEnded = true
    wake()
  })
  const waitFor = (event: string, timeoutMs: number) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      const finish = (act: () => void) => {
        clearTimeout(timer)
        waiting.delete(check)
        act()
      }
      const fail = (why: string) =>
        finish(() =>
          reject(new Error(`edge ${child.pid}: ${why} before ${event}:\n${JSON.stringify(lines.slice(-20), null, 1)}`)),
        )
      const check = () => {
        const found = lines.find((line) => line.event === event)
        if (found !== undefined) finish(() => resolve(found))
        else if (hasEnded) fail(`exited with ${child.exitCode ?? child.signalCode}`)
      }
      const timer = setTimeout(() => fail(`${timeoutMs} ms passed`), timeoutMs)
      waiting.add(check)
      check()
    })
  return { lines, waitFor }
}

function parseLine(line: string): Record<string, unknown> {
  try {
    return JSON.parse(line) as Record<string, unknown>
  } catch {
    return { event: 'unparsed', line }
  }
}
