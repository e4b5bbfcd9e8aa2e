/**
 * SenML packs (RFC 8428): records with base fields, as JSON and as CBOR, and what they mean once resolved. Pure.
 *
 * A pack is kept as it was sent; `resolveSenml` applies the base fields and gives every record its full name, unit and
 * time. Values are numbers, text, booleans or bytes.
 */
import { EdgeError } from '../../errors.ts'
import { type CborValue, decodeCbor, encodeCbor } from './cbor.ts'

/** One record as it stands in a pack, with the labels of the JSON form. Times in seconds. */
export interface SenmlRecord {
  readonly bn?: string
  readonly bt?: number
  readonly bu?: string
  readonly bv?: number
  readonly bs?: number
  readonly bver?: number
  readonly n?: string
  readonly u?: string
  readonly v?: number
  readonly vs?: string
  readonly vb?: boolean
  readonly vd?: Uint8Array
  readonly s?: number
  readonly t?: number
  readonly ut?: number
}

export type SenmlPack = readonly SenmlRecord[]

type Kind = 'number' | 'text' | 'boolean' | 'bytes'
type Label = keyof SenmlRecord

/** Labels in the order they are written, with their CBOR keys (section 6). */
const LABELS: readonly (readonly [Label, number, Kind])[] = [
  ['bver', -1, 'number'],
  ['bn', -2, 'text'],
  ['bt', -3, 'number'],
  ['bu', -4, 'text'],
  ['bv', -5, 'number'],
  ['bs', -6, 'number'],
  ['n', 0, 'text'],
  ['u', 1, 'text'],
  ['v', 2, 'number'],
  ['vs', 3, 'text'],
  ['vb', 4, 'boolean'],
  ['vd', 8, 'bytes'],
  ['s', 5, 'number'],
  ['t', 6, 'number'],
  ['ut', 7, 'number'],
]
const BY_NAME: ReadonlyMap<unknown, readonly [Label, number, Kind]> = new Map(LABELS.map((entry) => [entry[0], entry]))
const BY_KEY: ReadonlyMap<unknown, readonly [Label, number, Kind]> = new Map(LABELS.map((entry) => [entry[1], entry]))

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

/** @returns UTF-8 of a JSON array. */
export function encodeSenmlJson(pack: SenmlPack): Uint8Array {
  const records = pack.map((record) => {
    const fields = fieldsOf(record).map(([label, , , value]) => [
      label,
      value instanceof Uint8Array ? value.toBase64({ alphabet: 'base64url', omitPadding: true }) : value,
    ])
    return Object.fromEntries(fields)
  })
  return encoder.encode(JSON.stringify(records))
}

/** @throws {EdgeError} EDGE_READING_INVALID. */
export function decodeSenmlJson(bytes: Uint8Array): SenmlPack {
  let parsed: unknown
  try {
    parsed = JSON.parse(decoder.decode(bytes))
  } catch (cause) {
    throw new EdgeError('EDGE_READING_INVALID', 'SenML: expected JSON in UTF-8', { cause })
  }
  if (!Array.isArray(parsed)) throw invalid('pack', 'an array', typeof parsed)
  return parsed.map((record) => {
    if (typeof record !== 'object' || record === null) throw invalid('record', 'an object', String(record))
    return readRecord(Object.entries(record), BY_NAME, (kind, value) =>
      kind === 'bytes' && typeof value === 'string' ? bytesOfBase64(value) : value,
    )
  })
}

export function encodeSenmlCbor(pack: SenmlPack): Uint8Array {
  return encodeCbor(pack.map((record) => new Map(fieldsOf(record).map(([, key, , value]) => [key, value]))))
}

/** @throws {EdgeError} EDGE_READING_INVALID. */
export function decodeSenmlCbor(bytes: Uint8Array): SenmlPack {
  const parsed = decodeCbor(bytes)
  if (!Array.isArray(parsed)) throw invalid('pack', 'an array', typeof parsed)
  return parsed.map((record: CborValue) => {
    if (!(record instanceof Map)) throw invalid('record', 'a map', typeof record)
    return readRecord([...record], BY_KEY, (_kind, value) => (typeof value === 'bigint' ? Number(value) : value))
  })
}

function fieldsOf(record: SenmlRecord): (readonly [Label, number, Kind, string | number | boolean | Uint8Array])[] {
  return LABELS.flatMap(([label, key, kind]) => {
    const value = record[label]
    return value === undefined ? [] : [[label, key, kind, value] as const]
  })
}

function readRecord(
  entries: readonly (readonly [unknown, unknown])[],
  labels: ReadonlyMap<unknown, readonly [Label, number, Kind]>,
  convert: (kind: Kind, value: unknown) => unknown,
): SenmlRecord {
  const record: Record<string, unknown> = {}
  for (const [name, raw] of entries) {
    const known = labels.get(name)
    if (known === undefined) {
      // Section 4.4: what ends in an underscore must be understood, everything else may be passed over.
      if (typeof name === 'string' && name.endsWith('_')) throw invalid('field', 'one that is understood', name)
      continue
    }
    const [label, , kind] = known
    const value = convert(kind, raw)
    if (!isOfKind(kind, value)) throw invalid(`field ${label}`, kind, String(raw))
    record[label] = value
  }
  return record as SenmlRecord
}

function isOfKind(kind: Kind, value: unknown): boolean {
  switch (kind) {
    case 'number':
      return typeof value === 'number' && Number.isFinite(value)
    case 'text':
      return typeof value === 'string'
    case 'boolean':
      return typeof value === 'boolean'
    case 'bytes':
      return value instanceof Uint8Array
  }
}

function bytesOfBase64(text: string): Uint8Array {
  try {
    return Uint8Array.fromBase64(text, { alphabet: 'base64url' })
  } catch (cause) {
    throw new EdgeError('EDGE_READING_INVALID', 'SenML: field vd: expected base64url', { cause })
  }
}

function invalid(what: string, expected: string, found: string): EdgeError {
  return new EdgeError('EDGE_READING_INVALID', `SenML: ${what}: expected ${expected}, found ${found.slice(0, 60)}`)
}
