/** One configuration value: text or TOML scalar in, checked value out; and back to the text an operator would write. Pure. */
import { DAY_MS, GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS, type Setting } from '../../setting.ts'
import { parseByteCount, parseTimeSpan } from '../amount-text.ts'

/** Either the value, or what was expected: the caller knows the path and what was found. */
export type Parsed = { readonly value: unknown } | { readonly expected: string }

/** Where two are as short, the first. */
const SIZE_UNITS: readonly (readonly [string, number])[] = [
  ['TiB', 1024 * GIB],
  ['GiB', GIB],
  ['MiB', MIB],
  ['KiB', KIB],
  ['GB', 1000 ** 3],
  ['MB', 1000 ** 2],
  ['KB', 1000],
]

export function parseSetting(setting: Setting, found: unknown): Parsed {
  switch (setting.kind) {
    case 'boolean':
      return parseBoolean(found)
    case 'integer':
      return bounded(
        setting,
        typeof found === 'string' && /^-?\d+$/.test(found) ? Number(found) : found,
        'a whole number',
      )
    case 'size':
      return bounded(setting, parseSize(found), 'a size such as "8 MiB"')
    case 'auto-size':
      if (found === 'auto') return { value: 'auto' }
      return bounded(
        setting,
        found === 'off' ? 0 : parseSize(found),
        `"auto"${setting.min > 0 ? '' : ', "off"'} or a size such as "8 MiB"`,
      )
    case 'duration':
      return bounded(setting, parseDuration(found), 'a duration with its unit, such as "200 ms" or "30 s"')
    case 'choice':
      if (typeof found === 'string' && setting.choices.includes(found)) return { value: found }
      return { expected: `one of ${setting.choices.map((each) => `"${each}"`).join(', ')}` }
    case 'address':
      return typeof found === 'string' && parseAddress(found) !== null
        ? { value: found }
        : { expected: 'host:port such as "127.0.0.1:8090" or "[::]:8090"' }
    case 'text':
      if (typeof found === 'string' && found.length >= setting.min) return { value: found }
      return { expected: setting.min > 0 ? 'a text that is not empty' : 'a text' }
    case 'texts':
      return parseTexts(found)
  }
}

/** How the value stands in a TOML file and in the documentation. */
export function formatSetting(setting: Setting, value: unknown): string {
  if (setting.kind === 'size' || (setting.kind === 'auto-size' && typeof value === 'number'))
    return `"${formatSize(Number(value))}"`
  if (setting.kind === 'duration') return `"${formatDuration(Number(value))}"`
  if (Array.isArray(value)) return `[${value.map((each) => JSON.stringify(each)).join(', ')}]`
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}

/** In the unit that takes the fewest digits: 16,000,000 bytes are "16 MB", not "15625 KiB". */
export function formatSize(bytes: number): string {
  let [count, unit] = [bytes, 'B']
  for (const [name, scale] of SIZE_UNITS) {
    if (bytes < scale || bytes % scale !== 0) continue
    if (String(bytes / scale).length < String(count).length) [count, unit] = [bytes / scale, name]
  }
  return `${count} ${unit}`
}

export function formatDuration(ms: number): string {
  for (const [unit, scale] of [
    ['d', DAY_MS],
    ['h', HOUR_MS],
    ['m', MINUTE_MS],
    ['s', SECOND_MS],
  ] as const) {
    if (ms >= scale && ms % scale === 0) return `${ms / scale} ${unit}`
  }
  return `${ms} ms`
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** `host:port` or `[v6]:port`. @returns null when it is neither. */
export function parseAddress(text: string): Address | null {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text)
  if (match === null) return null
  const port = Number(match[3])
  return port <= 65535 ? { host: match[1] ?? match[2] ?? '', port } : null
}

function parseBoolean(found: unknown): Parsed {
  if (typeof found === 'boolean') return { value: found }
  if (found === 'true' || found === '1') return { value: true }
  if (found === 'false' || found === '0') return { value: false }
  return { expected: 'true or false' }
}

function parseTexts(found: unknown): Parsed {
  const list: unknown = typeof found === 'string' ? found.split(',') : found
  if (!Array.isArray(list) || !list.every((each) => typeof each === 'string'))
    return { expected: 'a list of texts, in the environment with commas between them' }
  return { value: Object.freeze(list.map((each) => each.trim()).filter((each) => each !== '')) }
}

/** @returns bytes; NaN when it is no size. */
function parseSize(found: unknown): number {
  if (typeof found === 'number' || typeof found === 'bigint') return Number(found)
  return typeof found === 'string' ? Number(parseByteCount(found) ?? Number.NaN) : Number.NaN
}

/** @returns ms; NaN when it is no duration. What lacks its unit is none, but for 0: 60 might be seconds or milliseconds. */
function parseDuration(found: unknown): number {
  if (found === 0 || found === 0n || found === '0') return 0
  return typeof found === 'string' ? Number(parseTimeSpan(found) ?? Number.NaN) / 1000 : Number.NaN
}

function bounded(setting: Setting, found: unknown, what: string): Parsed {
  const value = typeof found === 'bigint' ? Number(found) : found
  if (typeof value === 'number' && Number.isInteger(value) && value >= setting.min && value <= setting.max)
    return { value }
  const show = (each: number) =>
    formatSetting({ ...setting, kind: setting.kind === 'auto-size' ? 'size' : setting.kind }, each)
  const limit =
    setting.max === Number.MAX_SAFE_INTEGER
      ? `at least ${show(setting.min)}`
      : `from ${show(setting.min)} to ${show(setting.max)}`
  return { expected: `${what}, ${limit}` }
}
