/**
 * The configuration as documents, from the declarations alone: a commented file to start from, and the reference. Pure.
 */
import type { Setting, SettingsTable } from '../../setting.ts'
import { formatSetting } from './value.ts'

export interface ConfigTables {
  readonly sections: Readonly<Record<string, SettingsTable>>
  /** Sections that repeat: `[[sync.upstreams]]`. */
  readonly lists: Readonly<Record<string, SettingsTable>>
}

const COLUMN_WIDTH = 110

/**
 * Every key with its sentence, bounds and default. Defaults are commented out, so that a file made once follows the defaults
 * of later releases.
 *
 * @param given values that are set, by dotted path.
 */
export function formatCommentedConfig(
  tables: ConfigTables & { readonly given?: Readonly<Record<string, unknown>> },
): string {
  const { sections, lists, given = {} } = tables
  const lines = [
    '# Configuration of iggy-edge. Every key is here with its default; take the # away to change it.',
    '# Each key is also an environment variable, which wins: EDGE_TCP__ADDRESS is address in [tcp].',
    '',
  ]
  for (const [section, table] of Object.entries(sections)) {
    lines.push(`[${section}]`)
    for (const [key, setting] of Object.entries(table)) {
      const value = given[`${section}.${key}`]
      const mark = value === undefined ? '# ' : ''
      lines.push(...comment(setting), `${mark}${key} = ${formatSetting(setting, value ?? setting.default)}`)
    }
    lines.push('')
  }
  for (const [list, table] of Object.entries(lists)) {
    lines.push(`# [[${list}]] may be there as often as needed:`, `# [[${list}]]`)
    for (const [key, setting] of Object.entries(table))
      lines.push(...comment(setting), `# ${key} = ${formatSetting(setting, setting.default)}`)
    lines.push('')
  }
  return `${lines.join('\n').trimEnd()}\n`
}

function comment(setting: Setting): string[] {
  return wrap(`${setting.summary} ${capital(boundsOf(setting))}`.trim()).map((line) => `# ${line}`)
}

/** @returns `docs/configuration.md`. */
export function formatReference({ sections, lists }: ConfigTables): string {
  const lines = [
    '# Configuration',
    '',
    'Generated from `src/runtime/config/schema.ts` by `node scripts/docs.ts`; do not edit.',
    '',
    'Values come from the defaults, then the file (`--config`), then the environment, then the command line; the later one wins.',
    'An environment variable is `EDGE_`, the section and the key, with `__` for every dot: `EDGE_HTTP__TLS__ENABLED`. Of lists:',
    '`EDGE_SYNC__UPSTREAMS__0__URL`. Sizes are written as `8 MiB` or `2 MB`, durations with their unit:',
    '`200 ms`, `30 s`, `5 m`, `1h 30m`, `7 days`.',
    'An unknown key or a value that does not fit stops the start; all problems are named at once. `config/edge.toml` holds every',
    'key with its comment, and `iggy-edge init` writes such a file.',
    '',
    "Variables of Apache Iggy's server (`IGGY_TCP_ADDRESS`) and its file (`IGGY_CONFIG_PATH`) are read where the setting exists here;",
    'what has no effect is named at the start, and what cannot be read stops it. Where they place a listener, ports are shared with',
    'who reserved them and WebTransport is off. Plain QUIC is on with `IGGY_QUIC_ENABLED=true` or with an `IGGY_QUIC_ADDRESS`, and',
    'off otherwise. TCP with TLS takes no plain connections then, and where the file of a certificate is missing one is made, unless',
    '`…_SELF_SIGNED=false`; not for HTTPS.',
    '',
  ]
  for (const [section, table] of Object.entries(sections))
    lines.push(`## [${section}]`, '', ...referenceTable(table), '')
  for (const [list, table] of Object.entries(lists))
    lines.push(`## [[${list}]]`, '', 'May be there as often as needed.', '', ...referenceTable(table), '')
  return `${lines.join('\n').trimEnd()}\n`
}

function referenceTable(table: SettingsTable): string[] {
  const rows = Object.entries(table).map(([key, setting]) => {
    const fallback =
      setting.isSecret && setting.default === '' ? 'empty' : `\`${formatSetting(setting, setting.default)}\``
    const cells = [`\`${key}\``, fallback, boundsOf(setting), setting.summary]
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  })
  return ['| key | default | value | |', '| --- | --- | --- | --- |', ...rows]
}

/** What may stand there, in a few words. */
export function boundsOf(setting: Setting): string {
  switch (setting.kind) {
    case 'boolean':
      return 'true or false.'
    case 'choice':
      return `${setting.choices.map((each) => JSON.stringify(each)).join(', ')}.`
    case 'address':
      return 'host:port.'
    case 'text':
      return setting.isSecret ? 'a secret.' : 'text.'
    case 'texts':
      return 'a list of texts.'
    case 'auto-size':
      return `"auto"${setting.min > 0 ? '' : ', "off"'} or a size${rangeOf(setting)}.`
    case 'integer':
      return `a whole number${rangeOf(setting)}.`
    case 'size':
    case 'duration':
      return `a ${setting.kind}${rangeOf(setting)}.`
  }
}

function rangeOf(setting: Setting): string {
  const show = (value: number): string => {
    const kind = setting.kind === 'auto-size' ? 'size' : setting.kind
    return formatSetting({ ...setting, kind }, value).replaceAll('"', '')
  }
  if (setting.max === Number.MAX_SAFE_INTEGER) return setting.min === 0 ? '' : ` from ${show(setting.min)}`
  return `, ${show(setting.min)} to ${show(setting.max)}`
}

const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)

function wrap(text: string): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > COLUMN_WIDTH) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return line === '' ? lines : [...lines, line]
}
