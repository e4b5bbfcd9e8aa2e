/**
 * Results as text: aligned tables for people, `list` for narrow screens, `json` for programs. Pure.
 *
 * A row is a record with snake_case keys in the order of display. Where people and programs want different things (a time,
 * an amount of bytes) a cell holds both.
 */
import { formatBytes } from '../../byte-text.ts'
import { stringifyExact } from '../http/json.ts'

export const OUTPUT_FORMS = ['table', 'list', 'json'] as const
export type OutputForm = (typeof OUTPUT_FORMS)[number]

/** What JSON gets, and what people read. */
export class Shown {
  readonly value: unknown
  readonly text: string

  constructor(value: unknown, text: string) {
    this.value = value
    this.text = text
  }
}

export type Cell = string | number | bigint | boolean | null | Shown
export type Row = Readonly<Record<string, Cell>>

const NOTHING = '-'
const COLUMN_GAP = '  '
/** 2^64 - 1: never, or unlimited, on the wire. */
const U64_MAX = 2n ** 64n - 1n
const US_MS = 1000n

export function formatRows(rows: readonly Row[], form: OutputForm): string {
  if (form === 'json') return stringifyExact(rows.map(plainRow))
  if (rows.length === 0) return 'none'
  return form === 'list' ? rows.map(formatPairs).join('\n\n') : formatTable(rows)
}

export function formatRow(row: Row, form: OutputForm): string {
  return form === 'json' ? stringifyExact(plainRow(row)) : formatPairs(row)
}

function formatTable(rows: readonly Row[]): string {
  const keys = Object.keys(rows[0] ?? {})
  const lines = [keys.map(titleOf), ...rows.map((row) => keys.map((key) => textOf(row[key] ?? null)))]
  const widths = keys.map((_, column) => Math.max(...lines.map((line) => widthOf(line[column] ?? ''))))
  const isNumber = keys.map((key) => rows.every((row) => ['number', 'bigint'].includes(typeof (row[key] ?? 0))))
  return lines
    .map((line) => line.map((text, column) => padded(text, widths[column] ?? 0, isNumber[column] === true)))
    .map((line) => line.join(COLUMN_GAP).trimEnd())
    .join('\n')
}

function formatPairs(row: Row): string {
  const titles = Object.keys(row).map((key) => `${sentenceCase(key)}:`)
  const width = Math.max(...titles.map((title) => title.length))
  return Object.values(row)
    .map((cell, index) => `${(titles[index] ?? '').padEnd(width)} ${textOf(cell)}`)
    .join('\n')
}

function plainRow(row: Row): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).map(([key, cell]) => [key, cell instanceof Shown ? cell.value : cell]))
}

/** One line a cell: what comes from devices must not break the table or the terminal. */
export function textOf(cell: Cell): string {
  const text = cell instanceof Shown ? cell.text : cell === null || cell === '' ? NOTHING : String(cell)
  return text.replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ')
}

function padded(text: string, width: number, isNumber: boolean): string {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)))
  return isNumber ? space + text : text + space
}

/** Characters, not UTF-16 units. */
const widthOf = (text: string): number => [...text].length

const titleOf = (key: string): string => key.replaceAll('_', ' ').toUpperCase()
const sentenceCase = (key: string): string => {
  const text = key.replaceAll('_', ' ')
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

// ---- cells -------------------------------------------------------------------------------------------------------------

export function list(values: readonly (string | number)[]): Shown {
  return new Shown(values, values.length === 0 ? NOTHING : values.join(', '))
}

/** Rows within a row, for programs. */
export function nested(rows: readonly Row[]): Shown {
  return new Shown(rows.map(plainRow), String(rows.length))
}

/** @param us since the Unix epoch; 0 or null = never. */
export function time(us: bigint | null): Shown {
  return new Shown(us, us === null || us === 0n ? NOTHING : formatTime(us))
}

export function formatTime(us: bigint): string {
  const ms = Number(us / US_MS)
  return Number.isNaN(new Date(ms).getTime()) ? `${us} us` : new Date(ms).toISOString()
}

/** @param us a duration; 2^64 - 1 = `noLimit`. */
export function duration(us: bigint | number, noLimit = 'never'): Shown {
  return new Shown(us, BigInt(us) === U64_MAX ? noLimit : formatSpan(Number(us)))
}

/** @param sizeBytes 2^64 - 1 = unlimited. */
export function bytes(sizeBytes: bigint | number): Shown {
  return new Shown(sizeBytes, BigInt(sizeBytes) === U64_MAX ? 'unlimited' : formatBytes(Number(sizeBytes)))
}

/** The two largest units: `3 d 4 h`, `12 s`. */
export function formatSpan(us: number): string {
  if (us < 1_000_000) return us < 1000 ? `${us} us` : `${Math.round(us / 1000)} ms`
  let seconds = Math.floor(us / 1_000_000)
  const parts: string[] = []
  for (const [unit, size] of [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
    ['s', 1],
  ] as const) {
    const count = Math.floor(seconds / size)
    seconds -= count * size
    if (count > 0) parts.push(`${count} ${unit}`)
  }
  return parts.slice(0, 2).join(' ')
}
