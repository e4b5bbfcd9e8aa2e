/**
 * All configuration keys, by section. Each unit declares its own section; this file puts them together and adds what
 * belongs to the runtime as a whole. Section names are those of Apache Iggy's server where they mean the same.
 */
import { LOG_SETTINGS } from '../../log/index.ts'
import { choice, type SettingsTable, text, type ValuesOf } from '../../setting.ts'

const SYSTEM_SETTINGS = {
  path: text('local_data', 'Data folder, relative to the working directory.'),
} as const

const LOGGING_SETTINGS = {
  level: choice('info', ['error', 'warn', 'info', 'debug'], 'Least severe level that is written to stderr.'),
} as const

export const SECTIONS = {
  system: SYSTEM_SETTINGS,
  logging: LOGGING_SETTINGS,
  log: LOG_SETTINGS,
} as const satisfies Record<string, SettingsTable>

/** Sections that repeat: `[[sync.upstreams]]`. */
export const LISTS = {} as const satisfies Record<string, SettingsTable>

export type Config = { readonly [S in keyof typeof SECTIONS]: ValuesOf<(typeof SECTIONS)[S]> } & {
  readonly [L in keyof typeof LISTS]: readonly ValuesOf<(typeof LISTS)[L]>[]
}
