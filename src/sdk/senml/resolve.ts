/** What the records of a SenML pack mean: base fields applied, times absolute (RFC 8428, section 4.6). Pure. */
import { EdgeError } from '../../errors.ts'
import type { SenmlPack, SenmlRecord } from './pack.ts'

export type ReadingValue = number | string | boolean | Uint8Array

/** One reading: what an application thinks in. */
export interface Reading {
  readonly name: string
  /** null: a record that carries only a sum. */
  readonly value: ReadingValue | null
  readonly unit?: string
  /** µs since the Unix epoch. */
  readonly timeUs: bigint
  readonly sum?: number
  /** Seconds within which the sensor reports again. */
  readonly updateTime?: number
}

const VERSION = 10
/** Smaller times are relative to now (section 4.5.3). */
const RELATIVE_BELOW = 2 ** 28
const NAME = /^[A-Za-z0-9][A-Za-z0-9\-:./_]*$/
const VALUE_LABELS = ['v', 'vs', 'vb', 'vd'] as const
const SECOND_US = 1e6
const RELATIVE_BELOW_US = BigInt(RELATIVE_BELOW * SECOND_US)

/**
 * @param nowUs taken for records without a time, and as the start of relative ones; µs since the Unix epoch.
 * @throws {EdgeError} EDGE_READING_INVALID.
 */
export function resolveSenml(pack: SenmlPack, nowUs: bigint): Reading[] {
  const base = { name: '', time: 0, unit: '', value: 0, sum: 0, hasSum: false }
  return pack.map((record, index) => {
    if ((record.bver ?? VERSION) > VERSION) throw invalid(index, `version up to ${VERSION}`, String(record.bver))
    base.name = record.bn ?? base.name
    base.time = record.bt ?? base.time
    base.unit = record.bu ?? base.unit
    base.value = record.bv ?? base.value
    base.hasSum ||= record.bs !== undefined
    base.sum = record.bs ?? base.sum
    const name = base.name + (record.n ?? '')
    if (!NAME.test(name)) throw invalid(index, 'a name of letters, digits and -:./_', name)
    const unit = record.u ?? base.unit
    const sum = record.s === undefined && !base.hasSum ? undefined : base.sum + (record.s ?? 0)
    return {
      name,
      value: readingValueOf(record, base.value, index),
      timeUs: timeOf(base.time + (record.t ?? 0), nowUs, index),
      ...(unit === '' ? {} : { unit }),
      ...(sum === undefined ? {} : { sum }),
      ...(record.ut === undefined ? {} : { updateTime: record.ut }),
    }
  })
}

/**
 * @param baseName written once where the name of every reading begins with it; else each is written whole.
 * @returns a pack that resolves to the same readings: name, unit and time are written once where they repeat.
 * @throws {EdgeError} EDGE_READING_INVALID for a time before mid-1978, which SenML takes for one relative to now.
 */
export function senmlOfReadings(readings: readonly Reading[], baseName = ''): SenmlPack {
  const first = readings[0]
  if (first === undefined) return []
  readings.forEach(({ timeUs }, index) => {
    if (timeUs < RELATIVE_BELOW_US)
      throw invalid(index, `a time from ${RELATIVE_BELOW_US} µs since 1970 on`, `${timeUs}`)
  })
  const base = readings.every(({ name }) => name.startsWith(baseName)) ? baseName : ''
  const baseSeconds = Number(first.timeUs) / SECOND_US
  const unit = readings.every((reading) => reading.unit === first.unit) ? first.unit : undefined
  return readings.map((reading, index) => {
    const isFirst = index === 0
    const name = reading.name.slice(base.length)
    const offset = Number(reading.timeUs - first.timeUs) / SECOND_US
    return {
      ...(isFirst && base !== '' ? { bn: base } : {}),
      ...(isFirst ? { bt: baseSeconds } : {}),
      ...(isFirst && unit !== undefined ? { bu: unit } : {}),
      ...(name === '' ? {} : { n: name }),
      ...(unit === undefined && reading.unit !== undefined ? { u: reading.unit } : {}),
      ...valueField(reading.value),
      ...(reading.sum === undefined ? {} : { s: reading.sum }),
      ...(offset === 0 ? {} : { t: offset }),
      ...(reading.updateTime === undefined ? {} : { ut: reading.updateTime }),
    }
  })
}

function readingValueOf(record: SenmlRecord, baseValue: number, index: number): ReadingValue | null {
  const given = VALUE_LABELS.filter((label) => record[label] !== undefined)
  if (given.length > 1) throw invalid(index, 'one value', given.join(' and '))
  if (record.v !== undefined) return finite(baseValue + record.v, index)
  const other = record.vs ?? record.vb ?? record.vd
  if (other !== undefined) return other
  if (record.s !== undefined) return null
  // Section 4.1: a base value alone stands for a value of zero on top of it.
  if (record.bv !== undefined) return baseValue
  throw invalid(index, 'a value or a sum', 'neither')
}

function timeOf(seconds: number, nowUs: bigint, index: number): bigint {
  const timeUs = BigInt(Math.round(finite(seconds * SECOND_US, index)))
  return seconds < RELATIVE_BELOW ? nowUs + timeUs : timeUs
}

/** Of two numbers that are finite the sum need not be. */
function finite(number: number, index: number): number {
  if (!Number.isFinite(number)) throw invalid(index, 'a finite time and value', String(number))
  return number
}

function valueField(value: ReadingValue | null): SenmlRecord {
  switch (typeof value) {
    case 'number':
      return { v: value }
    case 'string':
      return { vs: value }
    case 'boolean':
      return { vb: value }
    default:
      return value === null ? {} : { vd: value }
  }
}

function invalid(index: number, expected: string, found: string): EdgeError {
  const text = `SenML record ${index}: expected ${expected}, found ${found.slice(0, 60)}`
  return new EdgeError('EDGE_READING_INVALID', text, { details: { index } })
}
