/** Runs commands of the executable: in a process of their own, as a user does, or in this one, which is quicker. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { text } from 'node:stream/consumers'
import { COMMANDS } from '../../src/runtime/cli/commands.ts'
import { parseCommandLine } from '../../src/runtime/cli/grammar.ts'
import { EDGE_COMMAND } from './edge-process.ts'

/** `bench` takes its time, and on a busy machine more than that. */
const TIMEOUT_MS = 60_000

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** As typed: blanks part words, quotes keep them together. */
export function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '')
}

export interface Started extends Disposable {
  readonly done: Promise<Ran>
  /** @returns when stdout, or stderr, matches. */
  sees(pattern: RegExp): Promise<void>
  interrupt(): void
}

/** @param input what is typed into it; null closes standard input at once. */
export function startCommand(
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input: string | null = null,
): Started {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(IGGY|EDGE)_/.test(name))
  const child = spawn(EDGE_COMMAND.program, [...EDGE_COMMAND.before, ...words], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...Object.fromEntries(inherited), ...environment },
    timeout: TIMEOUT_MS,
  })
  child.stdin.end(input ?? '')
  let seen = ''
  const heard = new EventEmitter()
  for (const output of [child.stdout, child.stderr]) {
    output.on('data', (chunk: Buffer) => {
      seen += chunk.toString()
      heard.emit('more')
    })
  }
  const run = async (): Promise<Ran> => {
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
    return { code: code as number | null, stdout, stderr }
  }
  const done = run()
  return {
    done,
    async sees(pattern) {
      while (!pattern.test(seen)) {
        const next = await Promise.race([once(heard, 'more'), done])
        assert.ok(Array.isArray(next) || pattern.test(seen), `ended without ${pattern}: ${seen}`)
      }
    },
    interrupt: () => child.kill('SIGINT'),
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}

export async function runCommand(
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input: string | null = null,
): Promise<Ran> {
  using started = startCommand(words, environment, input)
  return await started.done
}

/** In this process. @returns what was printed. @throws {EdgeError} what the command throws. */
export async function runHere(
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
  signal = new AbortController().signal,
): Promise<string> {
  const parsed = parseCommandLine(words, COMMANDS, [])
  assert.ok('command' in parsed, `no command: ${words.join(' ')}`)
  const lines: string[] = []
  const print = (line: string): void => void lines.push(line)
  await parsed.command.run(parsed.values, { environment, print, flush: async () => {}, note: print, signal })
  return lines.join('\n')
}
