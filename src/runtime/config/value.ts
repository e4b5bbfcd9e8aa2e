/** One configuration value: text or TOML scalar in, checked value out; and back to the text an operator would write. Pure. */
import { DAY_MS, GIB, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS, type Setting } from '../../setting.ts'

/** Either the value, or what was expected: the caller knows the path and what was found. */
export type Parsed = { readonly value: unknown } | { readonly expected: string }

const SIZE_UNITS: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1000,
  mb: 1000 ** 2,
  gb: 1000 ** 3,
  tb: 1000 ** 4,
  kib: KIB,
  mib: MIB,
  gib: GIB,
  tib: 1024 * GIB,
}
const DURATION_UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: SECOND_MS,
  sec: SECOND_MS,
  m: MINUTE_MS,
  min: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
}

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
      return bounded(setting, parseAmount(found, SIZE_UNITS), 'a size such as "8 MiB"')
    case 'auto-size':
      if (found === 'auto') return { value: 'auto' }
      return bounded(
        setting,
        found === 'off' ? 0 : parseAmount(found, SIZE_UNITS),
        `"auto"${setting.min > 0 ? '' : ', "off"'} or a size such as "8 MiB"`,
      )
    case 'duration':
      return bounded(setting, parseAmount(found, DURATION_UNITS), 'a duration such as "200 ms" or "30 s"')
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
  }
}

/** How the value stands in a TOML file and in the documentation. */
export function formatSetting(setting: Setting, value: unknown): string {
  if (setting.kind === 'size' || (setting.kind === 'auto-size' && typeof value === 'number'))
    return `"${formatSize(Number(value))}"`
  if (setting.kind === 'duration') return `"${formatDuration(Number(value))}"`
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}

export function formatSize(bytes: number): string {
  for (const [unit, scale] of [
    ['GiB', GIB],
    ['MiB', MIB],
    ['KiB', KIB],
  ] as const) {
    if (bytes >= scale && bytes % scale === 0) return `${bytes / scale} ${unit}`
  }
  return `${bytes} B`
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

/** A number, or a number with one of `units`; NaN when it is neither. */
function parseAmount(found: unknown, units: Readonly<Record<string, number>>): number {
  if (typeof found === 'number' || typeof found === 'bigint') return Number(found)
  if (typeof found !== 'string') return Number.NaN
  const match = /^(\d+(?:\.\d+)?)\s*([a-zA-Z]*)$/.exec(found.trim())
  if (match === null) return Number.NaN
  const scale = match[2] === '' ? 1 : units[(match[2] ?? '').toLowerCase()]
  return scale === undefined ? Number.NaN : Math.round(Number(match[1]) * scale)
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
