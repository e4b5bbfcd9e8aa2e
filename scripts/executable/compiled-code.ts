/**
 * Records what V8 compiles during a start: the recorder, an executable without compiled code, is started as a gateway starts
 * it, and writes what V8 holds once it is ready.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { RECORD_FOLDER_VARIABLE, RECORD_SIGNAL } from './recorder.ts'

const READY_EVENT = '"event":"edge.ready"'
/** Emulated, beside other work, a start takes many times as long as by itself. */
const START_TIMEOUT_MS = 120_000
/** Listeners take free ports, on loopback. */
const ANY_PORT = '127.0.0.1:0'

/**
 * @param command runs the recorder.
 * @param folder an empty one, for store and records.
 * @returns compiled code by the name of the part.
 * @throws {Error} when the recorder does not start, or records nothing.
 */
export async function recordCompiledCode(
  command: readonly string[],
  folder: string,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const records = join(folder, 'records')
  mkdirSync(records)
  // The first start makes store, certificate and root user, which no later one does.
  await startOnce(command, folder, 'SIGTERM')
  await startOnce(command, folder, RECORD_SIGNAL)
  const parts = readdirSync(records)
  if (parts.length === 0) throw new Error('the recorder wrote no compiled code')
  return new Map(parts.map((part) => [part, readFileSync(join(records, part))]))
}

/** Starts it, and ends it by `signal` when it is ready. */
async function startOnce(command: readonly string[], folder: string, signal: NodeJS.Signals): Promise<void> {
  const [program = '', ...words] = command
  const child = spawn(program, [...words, 'run', '--dev', '--data', join(folder, 'data')], {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: START_TIMEOUT_MS,
    killSignal: 'SIGKILL',
    // Nothing of the builder's own environment: flags for V8 would change the code.
    env: {
      HOME: folder,
      CACHE_DIRECTORY: join(folder, 'cache'),
      [RECORD_FOLDER_VARIABLE]: join(folder, 'records'),
      EDGE_TCP__ADDRESS: ANY_PORT,
      EDGE_HTTP__ADDRESS: ANY_PORT,
      EDGE_WEBSOCKET__ADDRESS: ANY_PORT,
      EDGE_WEBTRANSPORT__ADDRESS: ANY_PORT,
    },
  })
  const ended = once(child, 'exit')
  const lines = await endedWhenReady(child, signal)
  const [code] = await ended
  if (code !== 0) throw new Error(`the recorder ended with ${code}:\n${lines.join('\n')}`)
}

async function endedWhenReady(child: ChildProcess, signal: NodeJS.Signals): Promise<readonly string[]> {
  const lines: string[] = []
  if (child.stderr === null) return lines
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line)
    if (line.includes(READY_EVENT)) child.kill(signal)
  }
  return lines
}
