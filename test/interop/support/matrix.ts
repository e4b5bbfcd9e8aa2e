/**
 * The table in docs/protocol/iggy.md that says which client passes what. Between its markers it is this suite's: with
 * `EDGE_INTEROP_WRITE_MATRIX=1` each client's run writes its own row.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { CLIENT_RUNS, type ClientRun } from '../client-catalog.ts'
import { withLock } from '../toolchain/cache-folder.ts'
import type { ScenarioResult } from './run-scenarios.ts'

export const IS_WRITING_MATRIX = process.env.EDGE_INTEROP_WRITE_MATRIX === '1'

const DOCUMENT = new URL('../../../docs/protocol/iggy.md', import.meta.url)
const BEGIN = '<!-- interop matrix: written by test/interop -->'
const END = '<!-- end of the interop matrix -->'
const HEAD = ['| Client | Version | Transport | Scenarios passed | Without a call for |', '|---|---|---|---|---|']
const WRITE_TIMEOUT_MS = 10_000

export interface MatrixRow {
  readonly client: string
  readonly version: string
  readonly transport: string
  readonly passed: number
  readonly total: number
}

/** @returns the rows the document holds. @throws {Error} there are no markers. */
export function readMatrix(): MatrixRow[] {
  return cut().table.flatMap((line) => {
    const found = /^\| ([\w-]+) \| ([\d.]+) \| (\w+) \| (\d+) of (\d+) \|/.exec(line)
    if (found === null) return []
    const [, client = '', version = '', transport = '', passed, total] = found
    return [{ client, version, transport, passed: Number(passed), total: Number(total) }]
  })
}

/** Replaces one row; rows of clients that are no longer in the catalog go. */
export async function writeMatrixRow(run: ClientRun, results: ReadonlyMap<string, ScenarioResult>): Promise<void> {
  // Clients run side by side and write the same file.
  await withLock('matrix', Date.now() + WRITE_TIMEOUT_MS, async () => {
    const rows = new Map(readMatrix().map((row) => [keyOf(row), row]))
    const passed = run.scenarios.filter((scenario) => results.get(scenario)?.ok === true).length
    const { client, version, transport } = run
    rows.set(keyOf(run), { client, version, transport, passed, total: run.scenarios.length })
    const lines = CLIENT_RUNS.flatMap((known) => {
      const row = rows.get(keyOf(known))
      return row === undefined ? [] : [lineOf(row, known)]
    })
    const { before, after } = cut()
    writeFileSync(DOCUMENT, [before, BEGIN, ...HEAD, ...lines, END, after].join('\n'))
  })
}

function keyOf({ client, version, transport }: Pick<MatrixRow, 'client' | 'version' | 'transport'>): string {
  return `${client} ${version} ${transport}`
}

function lineOf(row: MatrixRow, { lacks }: ClientRun): string {
  const without = lacks.length === 0 ? '–' : lacks.join(', ')
  return `| ${row.client} | ${row.version} | ${row.transport} | ${row.passed} of ${row.total} | ${without} |`
}

function cut(): { before: string; table: string[]; after: string } {
  const text = readFileSync(DOCUMENT, 'utf8')
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)]
  if (begin === -1 || end < begin) throw new Error(`docs/protocol/iggy.md has no ${BEGIN}`)
  return {
    before: `${text.slice(0, begin).trimEnd()}\n`,
    table: text.slice(begin, end).split('\n'),
    after: text.slice(end + END.length).replace(/^\n/, ''),
  }
}
