/** The kinds of fields a frame is made of, each with both directions. Decoders check what `scan` cannot know: ranges. */
import { frameFault } from './error-codes.ts'
import { LANE_COUNT, MAX_ALIAS, MAX_FIELDS, MAX_SEQUENCE, MAX_SUBSCRIPTION } from './limits.ts'

/** From and to what the CBOR library gives and takes. */
export interface Field<T> {
  decode(item: unknown): T
  encode(value: T): unknown
}
export type FieldValue<F> = F extends { decode(item: unknown): infer T } ? T : never

const MAX_U32 = 2 ** 32 - 1
const MAX_U53 = Number.MAX_SAFE_INTEGER
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const encoder = new TextEncoder()

export function uint(max: number = MAX_U53, min = 0): Field<number> {
  return { decode: (item) => integerWithin(item, min, max), encode: wireInteger }
}
export const u32 = uint(MAX_U32)
export const sequenceNumber = uint(MAX_SEQUENCE)
export const milliseconds = uint(MAX_U53)
export const lane = uint(LANE_COUNT - 1)
export const aliasId = uint(MAX_ALIAS)
export const subscriptionId = uint(MAX_SUBSCRIPTION)
export const offset: Field<bigint> = {
  decode: (item) => BigInt(integerWithin(item, 0, MAX_U53)),
  encode: (value) => wireInteger(Number(value)),
}
export const signed: Field<number> = {
  decode: (item) => integerWithin(item, -MAX_U53, MAX_U53),
  encode: wireInteger,
}
export const boolean: Field<boolean> = {
  decode: (item) => (typeof item === 'boolean' ? item : refuse('a boolean', item)),
  encode: (value) => value,
}
/** 0 durable, 1 buffered. */
export const promise = uint(1)

export function text(maxBytes: number, minBytes = 0): Field<string> {
  const check = (item: unknown) => {
    const size = typeof item === 'string' ? encoder.encode(item).byteLength : -1
    return size >= minBytes && size <= maxBytes
      ? (item as string)
      : refuse(`text of ${minBytes}..${maxBytes} bytes`, item)
  }
  return { decode: check, encode: (value) => value }
}

export function byteString(maxBytes: number, minBytes = 0): Field<Uint8Array> {
  return {
    decode: (item) =>
      item instanceof Uint8Array && item.byteLength >= minBytes && item.byteLength <= maxBytes
        ? item
        : refuse(`${minBytes}..${maxBytes} bytes`, item),
    encode: (value) => value,
  }
}

export const deviceName: Field<string> = {
  decode: (item) => (typeof item === 'string' && NAME.test(item) ? item : refuse('a device name', item)),
  encode: (value) => value,
}

/** `stream/topic`. */
export const topic: Field<string> = {
  decode(item) {
    const name = text(255, 3).decode(item)
    const at = name.indexOf('/')
    return at > 0 && at < name.length - 1 ? name : refuse('stream/topic', item)
  },
  encode: (value) => value,
}

export function nullable<T>(field: Field<T>): Field<T | null> {
  return {
    decode: (item) => (item === null ? null : field.decode(item)),
    encode: (value) => (value === null ? null : field.encode(value)),
  }
}

export type Auth = Uint8Array | null | { readonly kind: number; readonly proof: Uint8Array }
/** Token, mutual TLS, or a later kind of proof. */
export const auth: Field<Auth> = {
  decode(item) {
    if (item === null) return null
    if (!Array.isArray(item)) return byteString(512, 1).decode(item)
    return { kind: uint().decode(item[0]), proof: byteString(MAX_U32).decode(item[1]) }
  },
  encode: (value) => (value === null || value instanceof Uint8Array ? value : [value.kind, value.proof]),
}

export interface LaneSequence {
  readonly lane: number
  readonly sequence: number
}
/** Flat pairs: lane, sequence, lane, sequence. */
export const laneSequences: Field<readonly LaneSequence[]> = {
  decode(item) {
    const flat = arrayOf(item, 2 * LANE_COUNT)
    if (flat.length % 2 !== 0) return refuse('pairs of lane and sequence', item)
    return Array.from({ length: flat.length / 2 }, (_, at) => ({
      lane: lane.decode(flat[2 * at]),
      sequence: sequenceNumber.decode(flat[2 * at + 1]),
    }))
  },
  encode: (value) => value.flatMap((one) => [one.lane, wireInteger(one.sequence)]),
}

/** ms since the boot, the same of an earlier boot, or unknown. */
export type When = number | { readonly boot: number; readonly uptimeMs: number } | null
export const when: Field<When> = {
  decode(item) {
    if (item === null) return null
    if (!Array.isArray(item)) return milliseconds.decode(item)
    return { boot: uint().decode(item[0]), uptimeMs: milliseconds.decode(item[1]) }
  },
  encode: (value) =>
    typeof value === 'object' && value !== null
      ? [wireInteger(value.boot), wireInteger(value.uptimeMs)]
      : wireNumber(value),
}

export interface WallTime {
  readonly seconds: number
  readonly milliseconds: number
  readonly accuracyMs: number
}
export const wallTime: Field<WallTime> = {
  decode(item) {
    const parts = arrayOf(item, Number.POSITIVE_INFINITY)
    return {
      seconds: u32.decode(parts[0]),
      milliseconds: uint(999).decode(parts[1]),
      accuracyMs: milliseconds.decode(parts[2]),
    }
  },
  encode: (value) => [value.seconds, value.milliseconds, wireInteger(value.accuracyMs)],
}

/** Source: 0 RTC, 1 edge, 2 NTP, 3 GNSS. */
export interface SourcedTime extends WallTime {
  readonly source: number
}
export const sourcedTime: Field<SourcedTime> = {
  decode: (item) => ({
    ...wallTime.decode(item),
    source: uint(3).decode(arrayOf(item, Number.POSITIVE_INFINITY)[3]),
  }),
  encode: (value) => [...(wallTime.encode(value) as unknown[]), value.source],
}

export type FieldNumber = number | null
/** Bytes (kinds 0 to 2), one number, or one for each field (kind 3). */
export type Value = Uint8Array | FieldNumber | readonly FieldNumber[]
export const value: Field<Value> = {
  decode(item) {
    if (item instanceof Uint8Array) return item
    if (!Array.isArray(item)) return fieldNumber(item)
    if (item.length < 1 || item.length > MAX_FIELDS) return refuse(`1..${MAX_FIELDS} numbers`, item)
    return item.map(fieldNumber)
  },
  encode: (one) =>
    one instanceof Uint8Array ? one : Array.isArray(one) ? one.map(wireNumber) : wireNumber(one as FieldNumber),
}

export const values: Field<readonly Value[]> = {
  decode(item) {
    const all = arrayOf(item, Number.POSITIVE_INFINITY)
    return all.length > 0 ? all.map(value.decode) : refuse('at least one value', item)
  },
  encode: (all) => all.map(value.encode),
}

export interface SpacedValues {
  readonly values: readonly Value[]
  /** Of each value but the first: ms after the one before, may be negative. */
  readonly deltasMs: readonly number[]
}
/** `[v0, dt1, v1, dt2, v2 ..]`. */
export const spacedValues: Field<SpacedValues> = {
  decode(item) {
    const flat = arrayOf(item, Number.POSITIVE_INFINITY)
    if (flat.length % 2 === 0) return refuse('a value, then pairs of interval and value', item)
    return {
      values: flat.filter((_, at) => at % 2 === 0).map(value.decode),
      deltasMs: flat.filter((_, at) => at % 2 === 1).map(signed.decode),
    }
  },
  encode: (spaced) =>
    spaced.values.flatMap((one, at) =>
      at === 0 ? [value.encode(one)] : [wireInteger(spaced.deltasMs[at - 1] ?? 0), value.encode(one)],
    ),
}

export interface FieldSpec {
  readonly name: string
  readonly unit: string
  /** The value is the number times 10 to this power. */
  readonly scale: number
}
export const fieldSpecs: Field<readonly FieldSpec[]> = {
  decode(item) {
    const all = arrayOf(item, MAX_FIELDS)
    if (all.length === 0) return refuse(`1..${MAX_FIELDS} fields`, item)
    return all.map((one) => {
      const parts = arrayOf(one, Number.POSITIVE_INFINITY)
      return {
        name: text(32, 1).decode(parts[0]),
        unit: text(16).decode(parts[1]),
        scale: integerWithin(parts[2], -12, 12),
      }
    })
  },
  encode: (all) => all.map((one) => [one.name, one.unit, one.scale]),
}

export type PartitionChoice = number | Uint8Array
export const partitionChoice: Field<PartitionChoice> = {
  decode: (item) => (item instanceof Uint8Array ? byteString(64, 1).decode(item) : u32.decode(item)),
  encode: (one) => one,
}

export interface AckedRun {
  readonly alias: number
  readonly partition: number
  readonly offset: bigint
  readonly firstSequence: number
  readonly count: number
}
/** Flat groups of five. */
export const ackedRuns: Field<readonly AckedRun[]> = {
  decode(item) {
    const flat = arrayOf(item, Number.POSITIVE_INFINITY)
    if (flat.length % 5 !== 0) return refuse('groups of five', item)
    return Array.from({ length: flat.length / 5 }, (_, group) => {
      const at = group * 5
      return {
        alias: aliasId.decode(flat[at]),
        partition: uint().decode(flat[at + 1]),
        offset: offset.decode(flat[at + 2]),
        firstSequence: sequenceNumber.decode(flat[at + 3]),
        count: uint().decode(flat[at + 4]),
      }
    })
  },
  encode: (runs) =>
    runs.flatMap((run) => [
      run.alias,
      run.partition,
      offset.encode(run.offset),
      wireInteger(run.firstSequence),
      run.count,
    ]),
}

export type StartFrom = 'stored' | 'new' | 'last-value' | 'oldest' | bigint
const STARTS = ['stored', 'new', 'last-value', 'oldest'] as const
export const startFrom: Field<StartFrom> = {
  decode(item) {
    if (Array.isArray(item)) return offset.decode(item[0])
    return STARTS[uint(STARTS.length - 1).decode(item)] ?? refuse('a start', item)
  },
  encode: (from) => (typeof from === 'bigint' ? [offset.encode(from)] : STARTS.indexOf(from)),
}

export interface PollWindow {
  readonly bytes: number
  readonly messages: number
}
export const pollWindow: Field<PollWindow> = {
  decode(item) {
    const parts = arrayOf(item, Number.POSITIVE_INFINITY)
    return { bytes: uint().decode(parts[0]), messages: uint().decode(parts[1]) }
  },
  encode: (window) => [wireInteger(window.bytes), wireInteger(window.messages)],
}

export interface Will {
  readonly topic: string
  readonly body: Uint8Array
}
export const will: Field<Will> = {
  decode(item) {
    const parts = arrayOf(item, Number.POSITIVE_INFINITY)
    return { topic: topic.decode(parts[0]), body: byteString(MAX_U32).decode(parts[1]) }
  },
  encode: (one) => [one.topic, one.body],
}

/** A map with integer keys, each one optional. Unknown keys are left out: `scan` has refused those that matter. */
export function options<const T extends Record<number, readonly [string, Field<unknown>]>>(
  table: T,
): Field<OptionsOf<T>> {
  const entries = Object.entries(table).map(([key, [name, field]]) => ({
    key: Number(key),
    name,
    field: field as Field<unknown>,
  }))
  return {
    decode(item) {
      if (!(item instanceof Map)) return refuse('a map', item)
      const found = entries.filter(({ key }) => item.has(key))
      return Object.fromEntries(
        found.map(({ key, name, field }) => [name, field.decode(item.get(key))]),
      ) as OptionsOf<T>
    },
    encode(given) {
      const named = given as Record<string, unknown>
      const present = entries.filter(({ name }) => named[name] !== undefined)
      return new Map(present.map(({ key, name, field }) => [key, field.encode(named[name])]))
    },
  }
}
export type OptionsOf<T extends Record<number, readonly [string, Field<unknown>]>> = {
  readonly [K in keyof T as T[K] extends readonly [infer N extends string, unknown]
    ? N
    : never]?: T[K] extends readonly [string, Field<infer V>] ? V : never
}

function fieldNumber(item: unknown): FieldNumber {
  if (item === null) return null
  return typeof item === 'number' && Number.isFinite(item) ? item : refuse('a finite number or null', item)
}

function arrayOf(item: unknown, maxLength: number): unknown[] {
  return Array.isArray(item) && item.length <= maxLength ? item : refuse('an array', item)
}

function integerWithin(item: unknown, min: number, max: number): number {
  const isWithin = typeof item === 'number' && Number.isSafeInteger(item) && item >= min && item <= max
  return isWithin ? item : refuse(`an integer in ${min}..${max}`, item)
}

function wireNumber(value: FieldNumber): unknown {
  return value !== null && Number.isSafeInteger(value) ? wireInteger(value) : value
}

/** The library writes larger numbers as floats; as BigInt they are written as integers. */
function wireInteger(value: number): number | bigint {
  return value > MAX_U32 || value < -(2 ** 31) ? BigInt(value) : value
}

function refuse(expected: string, found: unknown): never {
  const kind = found === undefined ? 'nothing' : Array.isArray(found) ? 'an array' : typeof found
  throw frameFault('frame-invalid', `expected ${expected}, found ${kind}`)
}
