/** Runs a compiler or a package tool within what is left of the time to prepare clients. */
import { spawn } from 'node:child_process'

/** Time for everything a process prepares. Compiling Rust's client from nothing takes most of it. */
const DEFAULT_BUDGET_MINUTES = 8
/** What of a tool's output goes into the reason of a skip. */
const KEPT_CHARACTERS = 600

const startedMs = Date.now()

/** Until when clients may be prepared: `EDGE_INTEROP_BUDGET_MINUTES` after the process began. */
export function preparationDeadlineMs(): number {
  const minutes = Number(process.env.EDGE_INTEROP_BUDGET_MINUTES ?? DEFAULT_BUDGET_MINUTES)
  return startedMs + minutes * 60_000
}

/** Why a client cannot be run here: no compiler, no registry, no time. */
export class Unavailable extends Error {}

export interface Tool {
  readonly command: string
  readonly arguments: readonly string[]
  readonly folder?: string
  readonly environment?: Readonly<Record<string, string>>
}

/**
 * Runs a tool to its end, at low priority.
 *
 * @throws {Unavailable} it is not installed, it failed, or the time is over.
 */
export function runTool(tool: Tool): Promise<string> {
  const leftMs = preparationDeadlineMs() - Date.now()
  const what = [tool.command, ...tool.arguments.slice(0, 3)].join(' ')
  if (leftMs <= 0) throw new Unavailable(`no time left for ${what}: ${HOW_TO_GO_ON}`)
  return new Promise((resolve, reject) => {
    const child = spawn('nice', ['-n', '10', tool.command, ...tool.arguments], {
      cwd: tool.folder,
      env: { ...process.env, ...tool.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: cargo and maven have children, and all of them end with it.
      detached: true,
    })
    let output = ''
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-64 * 1024)
    }
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    let isOver = false
    const timer = setTimeout(() => {
      isOver = true
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
    }, leftMs)
    child.on('error', (error) => {
      clearTimeout(timer)
      reject(new Unavailable(`${what}: ${error.message}`))
    })
    child.on('close', (code) => {
      clearTimeout(timer)
      if (code === 0) resolve(output)
      else if (isOver) reject(new Unavailable(`${what} was not done in time: ${HOW_TO_GO_ON}`))
      else reject(new Unavailable(`${what} ended with ${code}: ${output.slice(-KEPT_CHARACTERS)}`))
    })
  })
}

const HOW_TO_GO_ON = 'node test/interop/prepare.ts goes on where it stopped'
