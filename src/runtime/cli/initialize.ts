/** Writes what `init` promises. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { EdgeError } from '../../errors.ts'
import { formatCommentedConfig } from '../config/document.ts'
import { LISTS, SECTIONS } from '../config/schema.ts'
import type { CommandContext } from './command.ts'
import type { Values } from './grammar.ts'

/** @throws {EdgeError} EDGE_CONFIG_INVALID when the file is there, EDGE_IO. */
export function initialize(values: Values, { print }: Pick<CommandContext, 'print'>): void {
  const file = resolve(values.text('path') ?? 'edge.toml')
  const data = resolve(values.text('data') ?? join(dirname(file), 'edge-data'))
  const text = formatCommentedConfig({ sections: SECTIONS, lists: LISTS, given: { 'system.path': data } })
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text, { flag: values.has('force') ? 'w' : 'wx' })
    mkdirSync(data, { recursive: true, mode: 0o750 })
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
    if (code === 'EEXIST') throw new EdgeError('EDGE_CONFIG_INVALID', `${file} is there already; --force replaces it`)
    throw new EdgeError('EDGE_IO', `${file} cannot be written: ${code}`, { cause })
  }
  print(`configuration  ${file}`)
  print(`data folder    ${data}`)
  print(`start with     iggy-edge run --config ${file}`)
}
