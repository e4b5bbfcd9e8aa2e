/**
 * The values that many commands carry, the same in both dialects.
 *
 *   Identifier       [kind:1][len:1][value]     1 numeric: len 4, u32; 2 name: 1..255 bytes of UTF-8
 *   Consumer         [kind:1][Identifier]       1 single consumer, 2 consumer group
 *   Partitioning     [kind:1][len:1][value]     1 balanced: len 0; 2 partition: len 4, u32; 3 key: 1..255 bytes
 *   PollingStrategy  [kind:1][value:8]          1 offset, 2 timestamp µs, 3 first, 4 last, 5 next
 *   partition        [flag:1][partition_id:4]   flag 1: given; else absent, value 0
 */
import { EdgeError } from '../../errors.ts'
import { type Codec, u32, u64 } from './codec.ts'

/** A number is an id, a string a name: a name of digits alone stays a name. */
export type Identifier = number | string

export interface Consumer {
  readonly kind: 'consumer' | 'group'
  readonly id: Identifier
}

export type Partitioning =
  | { readonly kind: 'balanced' }
  | { readonly kind: 'partition'; readonly partitionId: number }
  /** `keyView` aliases the payload it was decoded from. */
  | { readonly kind: 'key'; readonly keyView: Uint8Array }

export type PollingStrategy =
  | { readonly kind: 'offset'; readonly offset: bigint }
  | { readonly kind: 'timestamp'; readonly timestampUs: bigint }
  | { readonly kind: 'first' }
  | { readonly kind: 'last' }
  | { readonly kind: 'next' }

const NUMERIC = 1
const NAMED = 2
const MAX_ID = 0xffff_ffff

export const identifier: Codec<Identifier> = {
  read(reader) {
    const kind = reader.u8()
    if (kind === NAMED) return reader.name()
    if (kind !== NUMERIC) throw reader.fail('EDGE_COMMAND_MALFORMED', 'identifier kind 1 or 2', `${kind}`)
    const length = reader.u8()
    if (length !== 4) throw reader.fail('EDGE_FORMAT_INVALID', 'a numeric identifier of 4 bytes', `${length}`)
    return reader.u32()
  },
  write(writer, value) {
    if (typeof value === 'string') {
      writer.u8(NAMED)
      writer.name(value)
    } else {
      if (!Number.isInteger(value) || value < 0 || value > MAX_ID) {
        throw writer.fail('EDGE_IDENTIFIER_INVALID', `a name, or an id from 0 to ${MAX_ID}`, `${value}`)
      }
      writer.u8(NUMERIC)
      writer.u8(4)
      writer.u32(value)
    }
  },
}

export const consumer: Codec<Consumer> = {
  read(reader, dialect) {
    const kind = reader.u8()
    if (kind !== 1 && kind !== 2) throw reader.fail('EDGE_COMMAND_MALFORMED', 'consumer kind 1 or 2', `${kind}`)
    return { kind: kind === 1 ? 'consumer' : 'group', id: identifier.read(reader, dialect) }
  },
  write(writer, value, dialect) {
    writer.u8(value.kind === 'consumer' ? 1 : 2)
    identifier.write(writer, value.id, dialect)
  },
}

/** null: the client left the partition to the server. */
export const optionalPartition: Codec<number | null> = {
  read(reader) {
    const isGiven = reader.u8() === 1
    const partitionId = reader.u32()
    return isGiven ? partitionId : null
  },
  write(writer, value, dialect) {
    writer.u8(value === null ? 0 : 1)
    u32.write(writer, value ?? 0, dialect)
  },
}

const BALANCED: Partitioning = { kind: 'balanced' }

export const partitioning: Codec<Partitioning> = {
  read(reader, dialect) {
    const kind = reader.u8()
    const length = reader.u8()
    const isFitting = kind === 1 ? length === 0 : kind === 2 ? length === 4 : length > 0
    if (kind < 1 || kind > 3) throw reader.fail('EDGE_COMMAND_MALFORMED', 'partitioning kind 1, 2 or 3', `${kind}`)
    if (!isFitting) throw reader.fail('EDGE_FORMAT_INVALID', `the length of partitioning kind ${kind}`, `${length}`)
    if (kind === 1) return BALANCED
    if (kind === 2) return { kind: 'partition', partitionId: u32.read(reader, dialect) }
    return { kind: 'key', keyView: reader.bytesView(length) }
  },
  write(writer, value, dialect) {
    switch (value.kind) {
      case 'balanced':
        writer.u16(1)
        return
      case 'partition':
        writer.u8(2)
        writer.u8(4)
        u32.write(writer, value.partitionId, dialect)
        return
      case 'key':
        if (value.keyView.length === 0 || value.keyView.length > 255) {
          const found = value.keyView.length
          throw new EdgeError('EDGE_KEY_LENGTH_INVALID', `messages key: expected 1..255 bytes, found ${found}`)
        }
        writer.u8(3)
        writer.shortBytes(value.keyView)
    }
  },
}

const FIRST: PollingStrategy = { kind: 'first' }
const LAST: PollingStrategy = { kind: 'last' }
const NEXT: PollingStrategy = { kind: 'next' }
const STRATEGY_KINDS = { offset: 1, timestamp: 2, first: 3, last: 4, next: 5 } as const

export const pollingStrategy: Codec<PollingStrategy> = {
  read(reader) {
    const kind = reader.u8()
    const value = reader.u64()
    switch (kind) {
      case 1:
        return { kind: 'offset', offset: value }
      case 2:
        return { kind: 'timestamp', timestampUs: value }
      case 3:
        return FIRST
      case 4:
        return LAST
      case 5:
        return NEXT
      default:
        throw reader.fail('EDGE_COMMAND_MALFORMED', 'polling strategy 1..5', `${kind}`)
    }
  },
  write(writer, value, dialect) {
    writer.u8(STRATEGY_KINDS[value.kind])
    if (value.kind === 'offset') u64.write(writer, value.offset, dialect)
    else u64.write(writer, value.kind === 'timestamp' ? value.timestampUs : 0n, dialect)
  },
}
