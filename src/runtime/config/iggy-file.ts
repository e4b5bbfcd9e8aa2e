/**
 * The configuration file of Apache Iggy's server, found by its variable `IGGY_CONFIG_PATH`: every key in it is read as the
 * variable that would set it, so that one place decides what means the same here and what has no effect. Pure.
 */
import { parse as parseToml, TomlError } from 'smol-toml'
import { configInvalid } from './load.ts'

export interface IggyFile {
  /** As variables of Apache's server: `[http] address` is `IGGY_HTTP_ADDRESS`. */
  readonly variables: Readonly<Record<string, string>>
  /** How the file names what a variable stands for: `http.address`. */
  readonly paths: ReadonlyMap<string, string>
}

/** @throws EDGE_CONFIG_INVALID when it is not TOML. */
export function readIggyFile(file: { readonly name: string; readonly text: string }): IggyFile {
  const variables: Record<string, string> = {}
  const paths = new Map<string, string>()
  walk(parse(file), '', (path, value) => {
    const variable = `IGGY_${path.replaceAll('.', '_').toUpperCase()}`
    variables[variable] = String(value)
    paths.set(variable, path)
  })
  return { variables, paths }
}

function parse({ name, text }: { name: string; text: string }): object {
  try {
    return parseToml(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const reason = error.message.split('\n')[0] ?? ''
    throw configInvalid([`${name}, line ${error.line}, column ${error.column}: not TOML: ${reason}`])
  }
}

/** The third upstream's name is `sync.upstreams.2.name`; a list of values is one, as it stands in a variable there. */
function walk(table: object, prefix: string, visit: (path: string, value: unknown) => void): void {
  for (const [key, value] of Object.entries(table)) {
    const path = prefix === '' ? key : `${prefix}.${key}`
    if (Array.isArray(value) && !value.some(isTable)) visit(path, JSON.stringify(value.map(String)))
    else if (isTable(value)) walk(value, path, visit)
    else visit(path, value)
  }
}

const isTable = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !(value instanceof Date)
