#!/usr/bin/env node
/** Entry of checkout and executable: finds the command, gives it the process, turns errors into one line and a code. */
import { EdgeError, toEdgeError } from '../errors.ts'
import { EXIT } from './cli/command.ts'
import { isUsageError, parseCommandLine } from './cli/grammar.ts'
import { formatError } from './cli/hints.ts'
import { impliedWords } from './cli/implied-words.ts'
import { run } from './cli/run.ts'
import { StandardOutput } from './cli/standard-output.ts'
import { PRODUCT_VERSION } from './version.ts'

/** A second signal, or this long after the first one, ends the process without waiting. */
const STOP_TIMEOUT_MS = 10_000

async function main(words: readonly string[]): Promise<number> {
  const stop = new AbortController()
  // Who wanted to see what is printed is gone: there is nothing to go on for.
  const output = new StandardOutput(
    () => process.stdout,
    () => stop.abort('EPIPE'),
  )
  const code = await runCommand(words, output, stop)
  await output.flush()
  return code
}

async function runCommand(words: readonly string[], output: StandardOutput, stop: AbortController): Promise<number> {
  if (words.length === 1 && (words[0] === '--version' || words[0] === '-V')) {
    output.print(`iggy-edge ${PRODUCT_VERSION}`)
    return EXIT.ok
  }
  const name = process.argv[1] ?? process.execPath
  const given = impliedWords(words, name, process.env)
  // The service keeps what it loads for as long as it runs: the tables of the other commands are left out.
  const commands = given[0] === run.path[0] ? [run] : (await import('./cli/commands.ts')).COMMANDS
  const parsed = parseCommandLine(given, commands, [])
  if ('help' in parsed) {
    if (parsed.isError) console.error(parsed.help)
    else output.print(parsed.help)
    return parsed.isError ? EXIT.usage : EXIT.ok
  }
  stopOnSignals(stop)
  return parsed.command.run(parsed.values, {
    environment: process.env,
    print: (line) => output.print(line),
    flush: () => output.flush(),
    note: (line) => console.error(line),
    signal: stop.signal,
  })
}

/** SIGHUP as well: the line to a gateway breaks, and what runs there comes to a clean end all the same. */
function stopOnSignals(stop: AbortController): void {
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(EXIT.failed)
      stop.abort(name)
      setTimeout(() => process.exit(EXIT.failed), STOP_TIMEOUT_MS).unref()
    })
  }
}

function exitCodeOf(error: EdgeError): number {
  if (isUsageError(error)) return EXIT.usage
  // What may pass by itself (another process ends, a disk is mounted late) must not keep a supervisor from trying again.
  if (error.kind === 'config') return error.isRetryable ? EXIT.tryLater : EXIT.config
  // A server that refuses was reached.
  return error.kind === 'upstream' && error.code !== 'EDGE_UPSTREAM_REFUSED' ? EXIT.unavailable : EXIT.failed
}

/** Our own mistakes end the process with their stack: the supervisor restarts it into a checked state. */
function crash(error: unknown): never {
  const text =
    error instanceof EdgeError
      ? `${error.code}: ${error.message}`
      : error instanceof Error
        ? error.stack
        : String(error)
  console.error(JSON.stringify({ level: 'error', time: new Date().toISOString(), event: 'edge.crashed', error: text }))
  process.exit(EXIT.failed)
}

process.on('uncaughtException', crash)
process.on('unhandledRejection', crash)
main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    const known = toEdgeError(error)
    if (known.code === 'EDGE_INTERNAL') crash(error)
    console.error(`iggy-edge: ${formatError(known)}`)
    process.exit(exitCodeOf(known))
  },
)
