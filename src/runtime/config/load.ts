/**
 * Puts the configuration together: defaults, then the file, then the environment, then flags; the later one wins. Pure: the
 * caller brings the texts. All problems are collected and reported at once, each with its path, what was found and expected.
 */
import { parse as parseToml, TomlError } from 'smol-toml'
import { EdgeError } from '../../errors.ts'
import type { Setting, SettingsTable } from '../../setting.ts'
import { counted } from '../counted.ts'
import { type Config, LISTS, SECTIONS } from './schema.ts'
import { formatSetting, parseSetting } from './value.ts'

export interface ConfigSources {
  /** Text of the TOML file and its name for messages; null when there is none. */
  readonly file: { readonly name: string; readonly text: string } | null
  readonly environment: Readonly<Record<string, string | undefined>>
  /** From the command line, by dotted path: `system.path`. */
  readonly flags?: Readonly<Record<string, unknown>>
}

type Values = Record<string, unknown>

export const ENVIRONMENT_PREFIX = 'EDGE_'

export interface ReadConfig {
  /** Where a value could not be read, the default stands. */
  readonly config: Config
  /** A line for each. */
  readonly problems: readonly string[]
  /** First words of the sections with such values: whether these go together cannot be said. */
  readonly misread: ReadonlySet<string>
  /** Paths of the secrets that stand in the file, whatever wins over them. */
  readonly secretsInFile: readonly string[]
}

/** @throws EDGE_CONFIG_INVALID with one line per problem in `message` and as `details.problems`. */
export function loadConfig(sources: ConfigSources): Config {
  const { config, problems } = readConfig(sources)
  if (problems.length > 0) throw configInvalid(problems)
  return config
}

/** For whoever can tell more problems than those of single keys. */
export function readConfig(sources: ConfigSources): ReadConfig {
  const problems: string[] = []
  const unknown: string[] = []
  const given = new Map<string, { found: unknown; source: string }>()
  const lists = new Map<string, { found: Values; source: string }[]>()
  const isFileRead = sources.file === null || readFile(sources.file, given, lists, problems)
  const secretsInFile = findSecrets(given, lists)
  readEnvironment(sources.environment, given, lists, problems)
  for (const [path, found] of Object.entries(sources.flags ?? {}))
    given.set(path, { found, source: `flag for ${path}` })

  const config: Record<string, unknown> = {}
  for (const [section, table] of Object.entries<SettingsTable>(SECTIONS)) {
    const prefix = `${section}.`
    const values = Object.entries(table).map(([key, setting]) => [
      key,
      takeValue(setting, prefix + key, given, problems),
    ])
    config[section] = Object.freeze(Object.fromEntries(values))
  }
  for (const [path, table] of Object.entries<SettingsTable>(LISTS))
    config[path] = takeList(path, table, lists.get(path) ?? [], problems)
  for (const [path, { found, source }] of given) {
    const misplaced = expectedAt(path, found)
    if (misplaced === undefined) unknown.push(`${path} (${source}): unknown key${suggestion(path)}`)
    else problems.push(`${path} (${source}): ${misplaced}`)
  }
  return {
    config: Object.freeze(config) as Config,
    problems: [...problems, ...unknown],
    misread: new Set((isFileRead ? problems : Object.keys({ ...SECTIONS, ...LISTS })).map(firstWord)),
    secretsInFile,
  }
}

/** Of a problem or a path: the section it is about, without what stands below it. */
export const firstWord = (text: string): string => /^\w*/.exec(text)?.[0] ?? ''

export function configInvalid(problems: readonly string[]): EdgeError {
  const title = `configuration: ${counted(problems.length, 'problem')}`
  return new EdgeError('EDGE_CONFIG_INVALID', [title, ...problems].join('\n  '), { details: { problems } })
}

function findSecrets(
  given: ReadonlyMap<string, { found: unknown }>,
  lists: ReadonlyMap<string, readonly { found: Values }[]>,
): readonly string[] {
  const isSecret = (table: SettingsTable | undefined, key: string, found: unknown): boolean =>
    table?.[key]?.isSecret === true && typeof found === 'string' && tellsSecret(found)
  const ofSections = [...given].flatMap(([path, { found }]) => {
    const dot = path.lastIndexOf('.')
    const table = (SECTIONS as Readonly<Record<string, SettingsTable>>)[path.slice(0, dot)]
    return isSecret(table, path.slice(dot + 1), found) ? [path] : []
  })
  const ofLists = [...lists].flatMap(([list, rows]) => {
    const table = (LISTS as Readonly<Record<string, SettingsTable>>)[list]
    return rows.flatMap(({ found }, index) =>
      Object.entries(found).flatMap(([key, value]) =>
        isSecret(table, key, value) ? [`${list}[${index}].${key}`] : [],
      ),
    )
  })
  return [...ofSections, ...ofLists]
}

/** A connection string is one only with a password or a token in it. */
const tellsSecret = (text: string): boolean => text !== '' && (!text.includes('://') || text.includes('@'))

function takeValue(
  setting: Setting,
  path: string,
  given: Map<string, { found: unknown; source: string }>,
  problems: string[],
): unknown {
  const entry = given.get(path)
  given.delete(path)
  if (entry === undefined) return setting.default
  const parsed = parseSetting(setting, entry.found)
  if ('value' in parsed) return parsed.value
  const found = setting.isSecret ? 'a secret that does not fit' : JSON.stringify(entry.found)
  problems.push(`${path} (${entry.source}): found ${found}, expected ${parsed.expected}`)
  return setting.default
}

function takeList(
  path: string,
  table: SettingsTable,
  rows: readonly { found: Values; source: string }[],
  problems: string[],
): readonly unknown[] {
  return Object.freeze(
    rows.map(({ found, source }, index) => {
      const prefix = `${path}[${index}].`
      const rest = new Map(Object.entries(found).map(([key, value]) => [prefix + key, { found: value, source }]))
      const row = Object.entries(table).map(([key, setting]) => {
        const isMissing =
          !rest.has(prefix + key) && setting.kind === 'text' && setting.default === '' && setting.min === 1
        if (isMissing) problems.push(`${prefix}${key} (${source}): missing`)
        const value = takeValue(setting, prefix + key, rest, problems)
        return [key, value]
      })
      for (const keyPath of rest.keys()) problems.push(`${keyPath} (${source}): unknown key`)
      return Object.freeze(Object.fromEntries(row))
    }),
  )
}

/** @returns false when it is not TOML: then nothing of it was read. */
function readFile(
  file: { name: string; text: string },
  given: Map<string, { found: unknown; source: string }>,
  lists: Map<string, { found: Values; source: string }[]>,
  problems: string[],
): boolean {
  try {
    walk(parseToml(file.text), '', (path, found) => {
      if (Object.hasOwn(LISTS, path) && Array.isArray(found)) {
        const rows = found.map((row) => ({ found: row as Values, source: file.name }))
        if (rows.every(({ found: row }) => typeof row === 'object' && row !== null)) return void lists.set(path, rows)
      }
      given.set(path, { found, source: file.name })
    })
    return true
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    problems.push(
      `${file.name}, line ${error.line}, column ${error.column}: not TOML: ${error.message.split('\n')[0] ?? ''}`,
    )
    return false
  }
}

function walk(table: Values, prefix: string, visit: (path: string, found: unknown) => void): void {
  for (const [key, found] of Object.entries(table)) {
    const path = prefix === '' ? key : `${prefix}.${key}`
    if (typeof found === 'object' && found !== null && !Array.isArray(found) && !(found instanceof Date))
      walk(found as Values, path, visit)
    else visit(path, found)
  }
}

/** `EDGE_TCP__TLS__CERT_FILE` -> `tcp.tls.cert_file`; `EDGE_SYNC__UPSTREAMS__0__URL` -> key `url` of the first upstream. */
function readEnvironment(
  environment: ConfigSources['environment'],
  given: Map<string, { found: unknown; source: string }>,
  lists: Map<string, { found: Values; source: string }[]>,
  problems: string[],
): void {
  const rowValues: { list: string; index: number; key: string; name: string; value: string }[] = []
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined || !name.startsWith(ENVIRONMENT_PREFIX)) continue
    if (!name.includes('__')) {
      // A variable of some other program, unless it is one of ours but for an underscore.
      const meant = variables().find((variable) => variable.replaceAll('__', '_') === name)
      if (meant !== undefined) problems.push(`${name}: unknown variable; did you mean ${meant}?`)
      continue
    }
    const path = name.slice(ENVIRONMENT_PREFIX.length).toLowerCase().replaceAll('__', '.')
    const match = /^(.+)\.(\d{1,3})\.(\w+)$/.exec(path)
    if (match === null || !Object.hasOwn(LISTS, match[1] ?? '')) {
      given.set(path, { found: value, source: name })
      continue
    }
    const [, list = '', index = '', key = ''] = match
    rowValues.push({ list, index: Number(index), key, name, value })
  }
  // The environment has an order that nobody chose: the second of a list may come before the first.
  for (const { list, index, key, name, value } of rowValues.sort((a, b) => a.index - b.index)) {
    const rows = lists.get(list) ?? []
    lists.set(list, rows)
    const row = rows[index] ?? { found: {}, source: name }
    row.found[key] = value
    if (index <= rows.length) rows[index] = row
    else problems.push(`${list}.${index} (${name}): found index ${index}, expected ${rows.length} (no gaps)`)
  }
}

function knownPaths(): readonly string[] {
  return Object.entries<SettingsTable>(SECTIONS).flatMap(([section, table]) =>
    Object.keys(table).map((key) => `${section}.${key}`),
  )
}

const variables = (): readonly string[] =>
  knownPaths().map((path) => ENVIRONMENT_PREFIX + path.replaceAll('.', '__').toUpperCase())

/** @returns undefined for a key that is simply not known. */
function expectedAt(path: string, found: unknown): string | undefined {
  if (Object.hasOwn(SECTIONS, path))
    return `found ${Array.isArray(found) ? 'a list' : 'a value'}, expected a section [${path}]`
  const list = Object.keys(LISTS).find((each) => path === each || path.startsWith(`${each}.`))
  return list === undefined ? undefined : `expected a list of sections, each beginning with [[${list}]]`
}

/** The nearest known key, when one is near: most unknown keys are typing errors or in the wrong section. */
function suggestion(path: string): string {
  const known = knownPaths()
  const leaf = path.slice(path.lastIndexOf('.') + 1)
  const near = known.filter((each) => each.endsWith(`.${leaf}`) || distance(each, path) <= 3)
  const [first] = near.sort((a, b) => distance(a, path) - distance(b, path))
  return first === undefined ? '' : `; did you mean ${first}?`
}

/** Edits between two short texts (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** The configuration in force as TOML, secrets left out: for `status`, `check` and `current_config.toml`. */
export function formatConfig(config: Config): string {
  const lines: string[] = []
  for (const [section, table] of Object.entries<SettingsTable>(SECTIONS)) {
    lines.push(`[${section}]`)
    const values = config[section as keyof Config] as unknown as Values
    for (const [key, setting] of Object.entries(table)) lines.push(`${key} = ${shown(setting, values[key])}`)
    lines.push('')
  }
  for (const [path, table] of Object.entries<SettingsTable>(LISTS)) {
    for (const row of config[path as keyof Config] as unknown as readonly Values[]) {
      lines.push(`[[${path}]]`)
      for (const [key, setting] of Object.entries(table)) lines.push(`${key} = ${shown(setting, row[key])}`)
      lines.push('')
    }
  }
  return lines.join('\n')
}

/** A secret is not shown, but that there is none may be. */
function shown(setting: Setting, value: unknown): string {
  return setting.isSecret && value !== '' ? '"…"' : formatSetting(setting, value)
}
