/**
 * Declares settings: each key of the configuration once, with type, unit, bounds, default and one sentence. From these
 * declarations come the types, the validation, `docs/configuration.md` and the check of `config/edge.toml`.
 *
 * A unit declares its own section (`src/log/settings.ts`, ...) with the keys as an operator writes them (snake_case); the
 * configuration (`runtime/config`) puts the sections together. Sizes are bytes, durations milliseconds, once parsed.
 */

export type SettingKind =
  | 'boolean'
  | 'integer'
  | 'size'
  | 'duration'
  | 'text'
  | 'texts'
  | 'address'
  | 'choice'
  | 'auto-size'

export interface Setting<T = unknown> {
  readonly kind: SettingKind
  readonly default: T
  /** Bounds of integers, sizes (bytes) and durations (ms), inclusive. */
  readonly min: number
  readonly max: number
  readonly choices: readonly string[]
  /** One sentence for the operator. */
  readonly summary: string
  /** Never printed or logged. */
  readonly isSecret: boolean
}

export type SettingsTable = Readonly<Record<string, Setting>>
/** The values of a table: what a unit receives. */
export type ValuesOf<T extends SettingsTable> = { readonly [K in keyof T]: T[K] extends Setting<infer V> ? V : never }

export const KIB = 1024
export const MIB = 1024 * KIB
export const GIB = 1024 * MIB
export const SECOND_MS = 1000
export const MINUTE_MS = 60 * SECOND_MS
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

interface Bounds {
  readonly default: number
  readonly min: number
  readonly max: number
}

export const boolean = (value: boolean, summary: string): Setting<boolean> => declare('boolean', value, summary)
export const integer = (bounds: Bounds, summary: string): Setting<number> =>
  declare('integer', bounds.default, summary, bounds)
/** Bytes; written as `8 MiB`, `2 MB` or a plain number. */
export const size = (bounds: Bounds, summary: string): Setting<number> =>
  declare('size', bounds.default, summary, bounds)
/** Milliseconds; written as `200 ms`, `30 s`, `5 m`, `2 h`, `7 d`. */
export const duration = (bounds: Bounds, summary: string): Setting<number> =>
  declare('duration', bounds.default, summary, bounds)
export const text = (value: string, summary: string): Setting<string> => declare('text', value, summary)
/** A list in a file; in the environment with commas between them. Empty ones do not count. */
export const texts = (value: readonly string[], summary: string): Setting<readonly string[]> =>
  declare('texts', value, summary)
export const secret = (value: string, summary: string): Setting<string> => ({ ...text(value, summary), isSecret: true })
/** `host:port`, `[v6]:port`; port 0 takes a free one. */
export const address = (value: string, summary: string): Setting<string> => declare('address', value, summary)
export const choice = <const C extends string>(value: C, choices: readonly C[], summary: string): Setting<C> => ({
  ...declare<C>('choice', value, summary),
  choices,
})
/** Bytes, or `auto`: the unit decides; 0 where `off` makes sense. */
export const autoSize = (bounds: { min: number; max: number }, summary: string): Setting<number | 'auto'> =>
  declare<number | 'auto'>('auto-size', 'auto', summary, bounds)

function declare<T>(kind: SettingKind, value: T, summary: string, bounds?: { min: number; max: number }): Setting<T> {
  return {
    kind,
    default: value,
    min: bounds?.min ?? 0,
    max: bounds?.max ?? Number.MAX_SAFE_INTEGER,
    choices: [],
    summary,
    isSecret: false,
  }
}

/** The defaults of a table as values: what tests and small programs start from. */
export function defaultsOf<T extends SettingsTable>(table: T): ValuesOf<T> {
  return Object.fromEntries(Object.entries(table).map(([key, setting]) => [key, setting.default])) as ValuesOf<T>
}
