/**
 * What the three kinds of descriptors say, and their JSON. Pure. docs/formats/descriptors.md lists every field.
 *
 * Offsets and times are decimal text in JSON, since they may exceed what a JSON number holds exactly. A field of the wrong
 * type makes the whole descriptor damaged: half a topic's options are worse than the copy in SQLite.
 */
import type { GivenOption, TopicOptions } from '../api.ts'
import { isNameValid } from './name.ts'

export const DESCRIPTOR_VERSION = 1

const KEY_END = 2 ** 32

export interface StoreDescriptor {
  /** 16 bytes. */
  readonly storeId: Uint8Array
  readonly createdAtUs: bigint
  /** All partition keys below it may have been given. */
  readonly nextKeyFloor: number
  /** Tells a wrong encryption key before anything is decrypted; null while nothing is encrypted. */
  readonly keyCheck: string | null
  /**
   * It was made anew, so keys below the floor that no descriptor names need not be those of deleted partitions. Until what
   * the journal holds of them has its descriptors.
   */
  readonly isRebuilt: boolean
}

export interface StreamDescriptor {
  readonly name: string
  readonly createdAtUs: bigint
}

export interface PartitionDescriptor {
  readonly key: number
  readonly idSeed: bigint
  readonly createdAtUs: bigint
  /** Offsets below it are gone for good. */
  readonly floorOffset: bigint
}

export interface TopicDescriptor {
  readonly name: string
  readonly createdAtUs: bigint
  readonly options: TopicOptions
  /** By partition id. */
  readonly partitions: readonly PartitionDescriptor[]
}

export type Parsed<T> =
  | { readonly kind: 'sound'; readonly value: T }
  | { readonly kind: 'newer'; readonly version: number }
  | { readonly kind: 'damaged' }

export function formatStore(store: StoreDescriptor): string {
  return format('store', {
    storeId: store.storeId.toHex(),
    createdAtUs: String(store.createdAtUs),
    nextKeyFloor: store.nextKeyFloor,
    keyCheck: store.keyCheck,
    ...(store.isRebuilt ? { isRebuilt: true } : {}),
  })
}

export function parseStore(body: string): Parsed<StoreDescriptor> {
  return parse('store', body, (fields) => ({
    storeId: bytesOf(fields.storeId, 16),
    createdAtUs: bigintOf(fields.createdAtUs),
    nextKeyFloor: integerOf(fields.nextKeyFloor, KEY_END),
    keyCheck: fields.keyCheck === null ? null : textOf(fields.keyCheck),
    isRebuilt: fields.isRebuilt === true,
  }))
}

export function formatStream(stream: StreamDescriptor): string {
  return format('stream', { name: stream.name, createdAtUs: String(stream.createdAtUs) })
}

export function parseStream(body: string): Parsed<StreamDescriptor> {
  return parse('stream', body, (fields) => ({
    name: nameOf(fields.name),
    createdAtUs: bigintOf(fields.createdAtUs),
  }))
}

export function formatTopic(topic: TopicDescriptor): string {
  return format('topic', {
    name: topic.name,
    createdAtUs: String(topic.createdAtUs),
    options: formatOptions(topic.options),
    partitions: topic.partitions.map(({ key, idSeed, createdAtUs, floorOffset }) => ({
      key,
      idSeed: String(idSeed),
      createdAtUs: String(createdAtUs),
      floorOffset: String(floorOffset),
    })),
  })
}

export function parseTopic(body: string): Parsed<TopicDescriptor> {
  return parse('topic', body, (fields) => ({
    name: nameOf(fields.name),
    createdAtUs: bigintOf(fields.createdAtUs),
    options: parseOptions(fieldsOf(fields.options)),
    partitions: listOf(fields.partitions).map((item) => {
      const partition = fieldsOf(item)
      return {
        key: integerOf(partition.key, KEY_END),
        idSeed: bigintOf(partition.idSeed),
        createdAtUs: bigintOf(partition.createdAtUs),
        floorOffset: bigintOf(partition.floorOffset),
      }
    }),
  }))
}

function formatOptions(options: TopicOptions): Fields {
  const { dedupWindow } = options
  return {
    durability: options.durability,
    overflow: options.overflow,
    messageExpiryUs: options.messageExpiryUs === null ? null : String(options.messageExpiryUs),
    maxSizeBytes: options.maxSizeBytes === null ? null : String(options.maxSizeBytes),
    segmentSizeBytes: options.segmentSizeBytes,
    compression: options.compression,
    replicationFactor: options.replicationFactor,
    dedupWindow:
      dedupWindow === null ? null : { maxEntries: dedupWindow.maxEntries, expiryUs: String(dedupWindow.expiryUs) },
    retainLast: options.retainLast,
    given: [...options.given].map(([key, { kind, valueBytes }]) => ({ key, kind, value: valueBytes.toBase64() })),
  }
}

function parseOptions(fields: Fields): TopicOptions {
  const window = fields.dedupWindow === null ? null : fieldsOf(fields.dedupWindow)
  const given = listOf(fields.given).map((item): [string, GivenOption] => {
    const option = fieldsOf(item)
    const valueBytes = Uint8Array.fromBase64(textOf(option.value))
    return [textOf(option.key), { kind: integerOf(option.kind, 256), valueBytes }]
  })
  return {
    durability: oneOf(fields.durability, ['durable', 'buffered']),
    overflow: oneOf(fields.overflow, ['drop-oldest', 'drop-newest', 'reject']),
    messageExpiryUs: fields.messageExpiryUs === null ? null : bigintOf(fields.messageExpiryUs),
    maxSizeBytes: fields.maxSizeBytes === null ? null : bigintOf(fields.maxSizeBytes),
    segmentSizeBytes: fields.segmentSizeBytes === null ? null : integerOf(fields.segmentSizeBytes, KEY_END),
    compression: oneOf(fields.compression, ['none', 'gzip']),
    replicationFactor: integerOf(fields.replicationFactor, 256),
    dedupWindow:
      window === null
        ? null
        : { maxEntries: integerOf(window.maxEntries, KEY_END), expiryUs: bigintOf(window.expiryUs) },
    retainLast: booleanOf(fields.retainLast),
    given: new Map(given),
  }
}

// ---- JSON, field by field ----------------------------------------------------------------------------------------------

type Fields = Readonly<Record<string, unknown>>

/** Thrown and caught in this file: the field is not what it must be. */
class FieldInvalid extends Error {
  override readonly name = 'FieldInvalid'
}

function format(kind: string, fields: Fields): string {
  return JSON.stringify({ format: `iggy-edge ${kind}`, version: DESCRIPTOR_VERSION, ...fields })
}

function parse<T>(kind: string, body: string, read: (fields: Fields) => T): Parsed<T> {
  try {
    const fields = fieldsOf(JSON.parse(body))
    if (fields.format !== `iggy-edge ${kind}`) return { kind: 'damaged' }
    const version = integerOf(fields.version, KEY_END)
    if (version > DESCRIPTOR_VERSION) return { kind: 'newer', version }
    return { kind: 'sound', value: read(fields) }
  } catch (error) {
    // SyntaxError: no JSON, or no base64 or hex; the sum was right, so it was never ours.
    if (error instanceof FieldInvalid || error instanceof SyntaxError) return { kind: 'damaged' }
    throw error
  }
}

function fieldsOf(value: unknown): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new FieldInvalid('object')
  return value as Fields
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new FieldInvalid('list')
  return value
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new FieldInvalid('text')
  return value
}

function nameOf(value: unknown): string {
  const name = textOf(value)
  if (!isNameValid(name)) throw new FieldInvalid('name')
  return name
}

function bigintOf(value: unknown): bigint {
  const text = textOf(value)
  if (!/^(0|[1-9][0-9]{0,19})$/.test(text)) throw new FieldInvalid('number as text')
  return BigInt(text)
}

function integerOf(value: unknown, end: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > end)
    throw new FieldInvalid('integer')
  return value
}

function booleanOf(value: unknown): boolean {
  if (typeof value !== 'boolean') throw new FieldInvalid('boolean')
  return value
}

function bytesOf(value: unknown, size: number): Uint8Array {
  const bytes = Uint8Array.fromHex(textOf(value))
  if (bytes.length !== size) throw new FieldInvalid('bytes')
  return bytes
}

function oneOf<T extends string>(value: unknown, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === value)
  if (choice === undefined) throw new FieldInvalid('choice')
  return choice
}
