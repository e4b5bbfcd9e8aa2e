/** One run of the `iggy` command line against the server under test, and how its tables are read. */
import { execFile } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const RUN_TIMEOUT_MS = 60_000

export interface Run {
  readonly code: number
  readonly output: string
}

export interface ServerOptions {
  readonly binary: string
  readonly version: string
  readonly transport: string
  readonly addresses: Readonly<Record<string, string>>
}

/** The command did something else than the scenario says. */
export class NotAsExpected extends Error {}

export class Iggy {
  readonly version: string
  readonly transport: string
  /** A folder of its own for settings, so that none of the user's are read, and for files the command writes. */
  readonly home = mkdtempSync(join(tmpdir(), 'iggy-cli-'))
  readonly #binary: string
  readonly #connection: readonly string[]

  constructor({ binary, version, transport, addresses }: ServerOptions) {
    this.#binary = binary
    this.version = version
    this.transport = transport
    const connections: Record<string, readonly string[]> = {
      tcp: ['--transport', 'tcp', '--tcp-server-address', `${addresses.tcp}`],
      websocket: ['--transport', 'ws', '--websocket-server-address', `${addresses.websocket}`],
      quic: ['--transport', 'quic', '--quic-server-address', `${addresses.quic}`],
      http: ['--transport', 'http', '--http-api-url', `http://${addresses.http}`],
    }
    this.#connection = connections[transport] ?? []
  }

  /** Runs a command as root. */
  run(...words: string[]): Promise<Run> {
    return this.runWith(['--username', 'iggy', '--password', 'iggy'], ...words)
  }

  runWith(credentials: readonly string[], ...words: string[]): Promise<Run> {
    const environment = { ...process.env, IGGY_HOME: this.home, RUST_BACKTRACE: '0', NO_COLOR: '1' }
    return new Promise((resolve) => {
      execFile(
        this.#binary,
        [...this.#connection, ...credentials, ...words],
        { env: environment, timeout: RUN_TIMEOUT_MS },
        (error, stdout, stderr) => {
          const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
          resolve({ code, output: `${stdout}${stderr}` })
        },
      )
    })
  }

  /** Runs a command that must work. @returns what it printed. */
  async ok(...words: string[]): Promise<string> {
    const { code, output } = await this.run(...words)
    expect(code === 0, `iggy ${words.join(' ')}: ended with ${code}: ${output}`)
    return output
  }

  /** Runs a command that must fail for that reason. */
  async fails(reason: RegExp, ...words: string[]): Promise<void> {
    const { code, output } = await this.run(...words)
    expect(
      code !== 0 && reason.test(output),
      `iggy ${words.join(' ')}: expected ${reason}, ended with ${code}: ${output}`,
    )
  }
}

export function expect(condition: boolean, what: string): asserts condition {
  if (!condition) throw new NotAsExpected(what)
}

export function expectMatch(text: string, pattern: RegExp): void {
  expect(pattern.test(text), `expected ${pattern}, found: ${text}`)
}

/** Value of a row of a table with the columns Property and Value. */
export function property(table: string, name: string): string | undefined {
  return tableRows(table).find(([first]) => first === name)?.[1]
}

/** Cells of the rows of a table, its head among them. */
export function tableRows(table: string): string[][] {
  return table
    .split('\n')
    .filter((line) => /^\| /.test(line))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
}
