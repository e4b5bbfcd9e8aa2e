/** Writes what `init` promises. */
import { existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { EdgeError, systemCodeOf } from '../../errors.ts'
import { formatCommentedConfig } from '../config/document.ts'
import { LISTS, SECTIONS } from '../config/schema.ts'
import type { CommandContext } from './command.ts'
import { usageError, type Values } from './grammar.ts'

/** @throws {EdgeError} EDGE_CONFIG_INVALID when the file is there, EDGE_IO: then the file is what it was. */
export function initialize(values: Values, { print }: Pick<CommandContext, 'print'>): void {
  const file = pathOf(values, 'path') ?? resolve('edge.toml')
  const data = pathOf(values, 'data') ?? join(dirname(file), 'edge-data')
  const text = formatCommentedConfig({ sections: SECTIONS, lists: LISTS, given: { 'system.path': data } })
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
    throw usageError(`path: ${file} is a folder, expected a file to write, such as ${join(file, 'edge.toml')}`)
  if (existsSync(file) && !values.has('force'))
    throw new EdgeError('EDGE_CONFIG_INVALID', `${file} is there already; --force replaces it`)
  attempt(`data folder ${data} cannot be made`, () => mkdirSync(data, { recursive: true, mode: 0o750 }))
  attempt(`${file} cannot be written`, () => writeWhole(file, text))
  print(`configuration  ${file}`)
  print(`data folder    ${data}`)
  print(`start with     iggy-edge run --config ${file}`)
}

/** An empty name would be the working directory: whoever gives one has an unset variable in a script. */
function pathOf(values: Values, name: string): string | undefined {
  const path = values.text(name)
  if (path === '') throw usageError(`${name}: found "", expected a path`)
  return path === undefined ? undefined : resolve(path)
}

/** The old file or the new one: an edge reads half a configuration as a whole one. */
function writeWhole(file: string, text: string): void {
  const partial = `${file}.partial`
  try {
    mkdirSync(dirname(file), { recursive: true })
    // For its owner alone: passwords of upstreams and keys may be written into it.
    writeFileSync(partial, text, { flush: true, mode: 0o600 })
    renameSync(partial, file)
  } finally {
    rmSync(partial, { force: true })
  }
}

function attempt(failure: string, step: () => void): void {
  try {
    step()
  } catch (cause) {
    const code = systemCodeOf(cause) || String(cause)
    throw new EdgeError('EDGE_IO', `${failure}: ${code}`, { cause, details: { code } })
  }
}
