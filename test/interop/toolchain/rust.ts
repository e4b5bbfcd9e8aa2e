/**
 * Rust: two packages of one workspace, one for each version of the client, and the `iggy` command line as its own crate
 * locks it. One target folder for all, so what they share is compiled once; unoptimised, since they run once.
 */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { CLIENTS_FOLDER, cacheFolder, hashOfFiles, withLock } from './cache-folder.ts'
import type { Program } from './program.ts'
import { preparationDeadlineMs, runTool } from './run-tool.ts'

const FOLDER = join(CLIENTS_FOLDER, 'rust')

/** Without optimisation the futures of a reconnection over WebSocket do not always fit the 2 MiB that threads have. */
const STACK_BYTES = 16 * 1024 * 1024

function environment(): Record<string, string> {
  return { CARGO_TARGET_DIR: join(cacheFolder(), 'rust-target'), CARGO_TERM_COLOR: 'never' }
}

/**
 * The sources where all checkouts build them: to cargo two folders are one workspace, and a program that was built in
 * another is fresh whatever this one holds. Files are new when they differ, which is what it looks at.
 */
function workspace(): string {
  const folder = join(cacheFolder(), 'rust-workspace')
  const files = readdirSync(FOLDER, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files.map(({ parentPath, name }) => relative(CLIENTS_FOLDER, join(parentPath, name))).sort()
  const hash = hashOfFiles(paths)
  const mark = join(folder, 'sources.hash')
  if (existsSync(mark) && readFileSync(mark, 'utf8') === hash) return folder
  rmSync(folder, { recursive: true, force: true })
  cpSync(FOLDER, folder, { recursive: true })
  writeFileSync(mark, hash)
  return folder
}

export async function prepareRustClient(version: string): Promise<Program> {
  const name = `interop-iggy-${version.split('.').slice(0, 2).join('-')}`
  const program = join(cacheFolder(), 'rust-target/debug', name)
  await withLock('rust', preparationDeadlineMs(), () =>
    runTool({
      command: 'cargo',
      arguments: ['build', '--locked', '--package', name],
      folder: workspace(),
      environment: environment(),
    }),
  )
  return { command: program, arguments: [], environment: { RUST_MIN_STACK: String(STACK_BYTES) } }
}

export async function prepareIggyCli(version: string): Promise<Program> {
  const root = join(cacheFolder(), `iggy-cli-${version}`)
  const program = join(root, 'bin/iggy')
  await withLock('rust', preparationDeadlineMs(), async () => {
    if (existsSync(program)) return
    await runTool({
      command: 'cargo',
      // With its default features: without them neither version compiles.
      arguments: ['install', 'iggy-cli', '--version', `=${version}`, '--locked', '--debug', '--root', root],
      folder: FOLDER,
      environment: { ...environment(), CARGO_PROFILE_DEV_DEBUG: '0', CARGO_INCREMENTAL: '0' },
    })
  })
  const main = join(CLIENTS_FOLDER, 'iggy-cli/main.ts')
  return {
    command: process.execPath,
    arguments: ['--disable-warning=ExperimentalWarning', main, '--binary', program, '--client-version', version],
  }
}
