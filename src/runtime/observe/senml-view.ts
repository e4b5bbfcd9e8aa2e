/** Recognises SenML packs (RFC 8428) among decoded values and resolves their base fields, for showing. Pure. */
import type { CborValue } from './cbor-view.ts'

export interface SenmlReading {
  readonly name: string
  readonly value: string | number | boolean
  readonly unit: string
  /** Seconds since the Unix epoch, or null for a time relative to the reader's "now". */
  readonly time: number | null
}

type Fields = Readonly<Record<string, CborValue>>

/** CBOR labels of RFC 8428, section 6, as keys of decoded maps. */
const LABELS: Readonly<Record<string, string>> = {
  '-6': 'bs',
  '-5': 'bv',
  '-4': 'bu',
  '-3': 'bt',
  '-2': 'bn',
  '-1': 'bver',
  '0': 'n',
  '1': 'u',
  '2': 'v',
  '3': 'vs',
  '4': 'vb',
  '5': 's',
  '6': 't',
  '7': 'ut',
  '8': 'vd',
}
/** Times below are relative to now (RFC 8428, 4.5.3). */
const FIRST_ABSOLUTE_TIME = 2 ** 28

/** @returns undefined when `value` is no SenML pack. */
export function readSenml(value: CborValue, maxReadings: number): readonly SenmlReading[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined
  const readings: SenmlReading[] = []
  let [baseName, baseUnit, baseTime, baseValue] = ['', '', 0, 0]
  for (const record of value) {
    if (typeof record !== 'object' || record === null || Array.isArray(record)) return undefined
    const fields = named(record)
    if (fields === undefined) return undefined
    baseName = textOf(fields.bn) ?? baseName
    baseUnit = textOf(fields.bu) ?? baseUnit
    baseTime = numberOf(fields.bt) ?? baseTime
    baseValue = numberOf(fields.bv) ?? baseValue
    const measured = measuredValue(fields, baseValue)
    if (measured === undefined) continue
    const time = baseTime + (numberOf(fields.t) ?? 0)
    readings.push({
      name: baseName + (textOf(fields.n) ?? ''),
      value: measured,
      unit: textOf(fields.u) ?? baseUnit,
      time: time >= FIRST_ABSOLUTE_TIME ? time : null,
    })
  }
  return readings.length === 0 || readings.some(({ name }) => name === '') ? undefined : readings.slice(0, maxReadings)
}

/** Fields by their JSON labels; undefined when one is not of SenML. */
function named(record: Fields): Fields | undefined {
  const known = new Set(Object.values(LABELS))
  const fields = Object.entries(record).map(([key, value]) => [LABELS[key] ?? key, value] as const)
  return fields.length > 0 && fields.every(([key]) => known.has(key)) ? Object.fromEntries(fields) : undefined
}

function measuredValue(fields: Fields, baseValue: number): SenmlReading['value'] | undefined {
  const number = numberOf(fields.v)
  if (number !== undefined) return baseValue + number
  if (typeof fields.vb === 'boolean') return fields.vb
  return textOf(fields.vs) ?? textOf(fields.vd) ?? numberOf(fields.s)
}

const textOf = (value: CborValue | undefined): string | undefined => (typeof value === 'string' ? value : undefined)
const numberOf = (value: CborValue | undefined): number | undefined => (typeof value === 'number' ? value : undefined)
