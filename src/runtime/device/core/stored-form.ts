/**
 * How the readings of an alias are stored: payload and headers of each message. Pure.
 *
 * Kinds 0 to 2 are stored as they were sent. Kind 3 (numbers with name, unit and scale) becomes a SenML pack (RFC 8428) of
 * one record a field, in CBOR or JSON, unless the device asked for the numbers as sent. The headers `device` and
 * `content-type` are set here, never by the device.
 */
import type { RecordBatch } from '../../../sdk/wire/batch.ts'
import { encodeItem, type FieldNumber, type FieldSpec, type Frame, type Value } from '../../../sdk/wire/edge/index.ts'
import { stringHeader } from '../../../sdk/wire/header-values.ts'
import { RecordWriter } from '../../../sdk/wire/kernel/record-cursor.ts'
import { encodeUserHeaders } from '../../../sdk/wire/user-headers.ts'

export const KINDS = { raw: 0, senml: 1, cbor: 2, numbers: 3 } as const
const STORED_AS = { senmlCbor: 0, senmlJson: 1, asSent: 2 } as const
/** SenML's integer labels. */
const SENML = { baseTime: -3, baseName: -2, name: 0, unit: 1, value: 2 } as const
/** What a record takes beside payload and headers: three varints of at most ten bytes. */
const MAX_RECORD_HEAD_BYTES = 30
const U32 = 0x1_0000_0000n

export interface Reading {
  readonly originUs: bigint
  readonly value: Value
}

export class StoredForm {
  readonly #kind: number
  readonly #fields: readonly FieldSpec[]
  readonly #storedAs: number
  readonly #baseName: string
  readonly #headersBytes: Uint8Array

  constructor(deviceName: string, alias: Frame<'alias'>) {
    this.#kind = alias.kind
    this.#fields = alias.options?.fields ?? []
    this.#storedAs = alias.options?.storedAs ?? STORED_AS.senmlCbor
    this.#baseName = `${deviceName}/`
    this.#headersBytes = encodeUserHeaders([
      { key: stringHeader('device'), value: stringHeader(deviceName) },
      { key: stringHeader('content-type'), value: stringHeader(this.#contentType(alias.options?.contentType)) },
    ])
  }

  /** @returns what is wrong with a value of this alias, or undefined. */
  problemOf(value: Value, maxPayloadBytes: number): { isTooLarge: boolean; text: string } | undefined {
    if (this.#kind !== KINDS.numbers) {
      if (!(value instanceof Uint8Array)) return { isTooLarge: false, text: 'bytes expected' }
      if (value.byteLength === 0) return { isTooLarge: false, text: 'no bytes' }
      const isTooLarge = value.byteLength > maxPayloadBytes
      return isTooLarge ? { isTooLarge, text: `${value.byteLength} bytes, at most ${maxPayloadBytes}` } : undefined
    }
    if (value instanceof Uint8Array) return { isTooLarge: false, text: 'numbers expected' }
    const numbers = numbersOf(value)
    const isRight = numbers.length === this.#fields.length && (this.#fields.length === 1) === !Array.isArray(value)
    if (!isRight) return { isTooLarge: false, text: `${this.#fields.length} fields declared, ${numbers.length} sent` }
    const isBeyond = numbers.some((number, at) => !Number.isFinite((number ?? 0) * 10 ** this.#scaleOf(at)))
    return isBeyond ? { isTooLarge: false, text: 'a number that its scale makes infinite' } : undefined
  }

  /** @returns records ready for the log, in the order of the readings; they must have no problem. */
  pack(readings: readonly Reading[]): RecordBatch {
    const payloads = readings.map((reading) => this.#payloadOf(reading))
    const headerSize = this.#headersBytes.byteLength
    const room = payloads.reduce((sum, payload) => sum + MAX_RECORD_HEAD_BYTES + headerSize + payload.byteLength, 0)
    const target = new Uint8Array(room)
    const writer = new RecordWriter(target)
    readings.forEach(({ originUs }, at) => {
      const payload = payloads[at] ?? new Uint8Array()
      writer.head(Number(originUs % U32), Number(originUs / U32), target, -1, headerSize, payload.byteLength)
      target.set(payload, writer.at)
      target.set(this.#headersBytes, writer.at + payload.byteLength)
      writer.at += payload.byteLength + headerSize
    })
    const baseOriginUs = readings[0]?.originUs ?? 0n
    return { count: readings.length, baseOriginUs, recordsView: target.subarray(0, writer.at) }
  }

  #payloadOf({ originUs, value }: Reading): Uint8Array {
    if (value instanceof Uint8Array) return value
    if (this.#storedAs === STORED_AS.asSent) return encodeItem(value)
    const seconds = Number(originUs / 1000n) / 1000
    const values = numbersOf(value).map((number, at) => scaled(number, this.#scaleOf(at)))
    return this.#storedAs === STORED_AS.senmlJson ? this.#json(seconds, values) : this.#cbor(seconds, values)
  }

  #scaleOf(at: number): number {
    return this.#fields[at]?.scale ?? 0
  }

  #json(seconds: number, values: readonly FieldNumber[]): Uint8Array {
    const base = { bn: this.#baseName, bt: seconds }
    const records = this.#present(values).map(({ field, value }) => ({ n: field.name, ...unitOf(field), v: value }))
    const pack =
      records.length === 0 ? [base] : records.map((record, at) => (at === 0 ? { ...base, ...record } : record))
    return new TextEncoder().encode(JSON.stringify(pack))
  }

  #cbor(seconds: number, values: readonly FieldNumber[]): Uint8Array {
    const base: [number, unknown][] = [
      [SENML.baseName, this.#baseName],
      [SENML.baseTime, seconds],
    ]
    const records = this.#present(values).map(({ field, value }) => {
      const unit: [number, unknown][] = field.unit === '' ? [] : [[SENML.unit, field.unit]]
      return [[SENML.name, field.name], ...unit, [SENML.value, value]] as [number, unknown][]
    })
    if (records.length === 0) return encodeItem([new Map(base)])
    return encodeItem(records.map((record, at) => new Map(at === 0 ? [...base, ...record] : record)))
  }

  /** `null` is no value: such a field has no record. */
  #present(values: readonly FieldNumber[]): { field: FieldSpec; value: number }[] {
    return this.#fields.flatMap((field, at) => {
      const value = values[at] ?? null
      return value === null ? [] : [{ field, value }]
    })
  }

  #contentType(given: string | undefined): string {
    if (this.#kind === KINDS.raw) return given ?? 'application/octet-stream'
    if (this.#kind === KINDS.cbor) return 'application/cbor'
    if (this.#kind === KINDS.senml) return 'application/senml+cbor'
    const names = ['application/senml+cbor', 'application/senml+json', 'application/cbor']
    return names[this.#storedAs] ?? 'application/cbor'
  }
}

function numbersOf(value: Exclude<Value, Uint8Array>): readonly FieldNumber[] {
  return typeof value === 'number' || value === null ? [value] : value
}

/** Through text, so that 2157 at scale -2 is 21.57 and not 21.570000000000004. Very large and small numbers bring an exponent. */
function scaled(number: FieldNumber, scale: number): FieldNumber {
  if (number === null || scale === 0) return number
  const [digits, exponent = '0'] = `${number}`.split('e')
  return Number(`${digits}e${Number(exponent) + scale}`)
}

function unitOf(field: FieldSpec): { u?: string } {
  return field.unit === '' ? {} : { u: field.unit }
}
