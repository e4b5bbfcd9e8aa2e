/**
 * Runs the tests: `npm test` all of them, `npm test -- unit` one folder, `npm test -- test/unit/tidy.test.ts` one file.
 *
 * node's own runner does the work; this adds what a person and a CI log need at the end: every skip with its reason, and
 * one closing line `N passed, N failed, N skipped`. No test found counts as a failure.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { readArguments } from './arguments.ts'

/** In the order of what they cost: a mistake in a core is known before the first child process is killed. */
const FOLDERS = ['unit', 'integration', 'crash', 'simulation', 'interop']
/** Test files at once. The tests are written for two cores, and time themselves by events, so more would only add noise. */
const CONCURRENCY = 2
/** A file that takes longer hangs. */
const FILE_TIMEOUT_MS = 15 * 60_000

const USAGE = `npm test -- [${FOLDERS.join('] [')}] [FILE, FOLDER or PATTERN ...]`

const root = resolve(import.meta.dirname, '..')

/** A folder's name, a file or a pattern, as glob patterns from the root of the checkout. */
function patternsOf(names: readonly string[]): string[] {
  if (names.length === 0) return patternsOf(FOLDERS)
  return names.map((name) => {
    if (FOLDERS.includes(name)) return `test/${name}/**/*.test.ts`
    return existsSync(resolve(root, name)) && !name.endsWith('.ts') ? `${name}/**/*.test.ts` : name
  })
}

/** What the runner says of a test that ended, whichever way. */
interface Outcome {
  readonly name: string
  readonly skip?: string | boolean
  readonly details: { readonly type?: string }
}

async function main(): Promise<number> {
  let passed = 0
  let failed = 0
  const skips: string[] = []
  // Leaves are counted, not suites. A file that fails as a whole (it does not load, it hangs) is reported as one failure.
  const count = (outcome: Outcome, isPass: boolean): void => {
    if (outcome.details.type === 'suite') return
    if (typeof outcome.skip === 'string') skips.push(`${outcome.name}: ${outcome.skip}`)
    else if (outcome.skip === true) skips.push(outcome.name)
    else if (isPass) passed++
    else failed++
  }
  const events = run({
    cwd: root,
    globPatterns: patternsOf(readArguments(USAGE, { allowPositionals: true }).positionals),
    concurrency: CONCURRENCY,
    timeout: FILE_TIMEOUT_MS,
  })
  events.on('test:pass', (outcome) => count(outcome, true))
  events.on('test:fail', (outcome) => count(outcome, false))
  for await (const text of events.compose(new spec())) process.stdout.write(text)

  for (const skip of skips) console.log(`skipped: ${skip}`)
  const total = passed + failed + skips.length
  if (total === 0) console.log('no test was found')
  console.log(`${passed} passed, ${failed} failed, ${skips.length} skipped`)
  return failed === 0 && total > 0 ? 0 : 1
}

process.exitCode = await main()
