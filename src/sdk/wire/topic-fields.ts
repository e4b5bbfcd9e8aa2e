/**
 * Classic topics have fields where VSR has options. Both read as options, so that the broker knows one form:
 *
 *   compression 1 none, 2 gzip    compression_algorithm, u8
 *   message expiry u64 µs         message_expiry, u64      0 = as the server is configured, u64::MAX = never
 *   max topic size u64            max_topic_size, u64      0 = as the server is configured, u64::MAX = unlimited
 *
 * What options mean, and which there are, is the broker's business.
 */
import { EdgeError } from '../../errors.ts'
import { type Codec, struct, u8, u64 } from './codec.ts'
import {
  type HeaderKind,
  type HeaderScalar,
  headerKindCode,
  headerKindName,
  headerScalarOf,
  headerValueOf,
} from './header-values.ts'
import type { Option, Options } from './options.ts'

const COMPRESSION_NONE = 1
const COMPRESSION_GZIP = 2

/** What a classic request says of a topic. */
export interface TopicFields {
  readonly options: Options
  /** 0 = server default; VSR has no such thing and reads as 0. */
  readonly replicationFactor: number
}

const compressionCode: Codec<number> = {
  read(reader) {
    const code = reader.u8()
    if (code !== COMPRESSION_NONE && code !== COMPRESSION_GZIP) {
      throw reader.fail('EDGE_COMMAND_MALFORMED', 'compression 1 or 2', `${code}`)
    }
    return code
  },
  write: (writer, code) => writer.u8(code),
}

const layout = struct({
  compression: compressionCode,
  messageExpiryUs: u64,
  maxTopicSizeBytes: u64,
  replicationFactor: u8,
})

/** The 18 bytes of classic fields, as options. */
export const topicFields: Codec<TopicFields> = {
  read(reader, dialect) {
    const fields = layout.read(reader, dialect)
    const options = [
      encodeOption('compression_algorithm', 'uint8', fields.compression),
      encodeOption('message_expiry', 'uint64', fields.messageExpiryUs),
      encodeOption('max_topic_size', 'uint64', fields.maxTopicSizeBytes),
    ]
    return { options, replicationFactor: fields.replicationFactor }
  },
  write(writer, { options, replicationFactor }, dialect) {
    const scalars = new Map(options.map((option) => [option.key, scalarOf(option)]))
    const fields = {
      compression: compressionOf(scalars.get('compression_algorithm')),
      messageExpiryUs: numberOf('message_expiry', scalars.get('message_expiry')),
      maxTopicSizeBytes: numberOf('max_topic_size', scalars.get('max_topic_size')),
      replicationFactor,
    }
    layout.write(writer, fields, dialect)
  },
}

function encodeOption(key: string, kind: HeaderKind, value: HeaderScalar): Option {
  return { key, kind: headerKindCode(kind), valueBytes: headerValueOf(kind, value).bytes }
}

function scalarOf({ key, kind, valueBytes }: Option): HeaderScalar {
  const kindName = headerKindName(kind)
  if (kindName === undefined) throw invalid(key, 'kind 1..15', `${kind}`)
  return headerScalarOf({ kind: kindName, bytes: valueBytes })
}

function compressionOf(value: HeaderScalar | undefined): number {
  if (value === undefined || value === 'none' || value === COMPRESSION_NONE) return COMPRESSION_NONE
  if (value === 'gzip' || value === COMPRESSION_GZIP) return COMPRESSION_GZIP
  throw invalid('compression_algorithm', '"none" or "gzip"', String(value))
}

function numberOf(key: string, value: HeaderScalar | undefined): bigint {
  if (value === undefined) return 0n
  if (typeof value === 'bigint' || typeof value === 'number') return BigInt(value)
  throw invalid(key, 'a number', typeof value)
}

function invalid(key: string, expected: string, found: string): EdgeError {
  return new EdgeError('EDGE_OPTION_INVALID', `option ${key}: expected ${expected}, found ${found}`, {
    details: { key },
  })
}
