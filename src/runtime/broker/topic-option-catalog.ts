/**
 * Every option a topic may have: key, kind, bounds and sentence. Pure.
 *
 * Iggy's V5 keys, the one of V4 that it has no more, and our own below them. `parse` turns what a client gave into the
 * canonical value, and null into "as configured".
 */
import { EdgeError } from '../../errors.ts'
import {
  type HeaderKind,
  type HeaderScalar,
  headerKindCode,
  headerKindName,
  headerScalarOf,
  headerValueOf,
} from '../../sdk/wire/header-values.ts'
import type { Option } from '../../sdk/wire/options.ts'
import { GIB, MIB } from '../../setting.ts'
import { parseByteText, parseDurationText } from '../amount-text.ts'

const SEGMENT_STEP_BYTES = 512
const MAX_MESSAGES_TO_SAVE = 16_777_216
export const MAX_DEDUP_ENTRIES = 1_000_000

export interface OptionDescription {
  readonly key: string
  /** Of the canonical value. */
  readonly kind: HeaderKind
  readonly description: string
  readonly isUpdatable: boolean
  /** @throws EDGE_OPTION_INVALID. */
  parse(value: HeaderScalar, kind: HeaderKind): HeaderScalar | null
}

type Parser = (key: string, value: HeaderScalar, kind: HeaderKind) => HeaderScalar | null

const UPDATABLE = true
const FIXED = false

/** In the order Iggy lists them, then V4's, for clients that look before they ask, then ours. */
const DESCRIPTIONS: readonly OptionDescription[] = [
  describe('compression_algorithm', 'string', UPDATABLE, compression, 'Kept and shown only: "none" or "gzip".'),
  describe(
    'message_expiry',
    'uint64',
    UPDATABLE,
    amount(parseDurationText),
    'Age in microseconds, or text such as "1h", after which messages may be dropped.',
  ),
  describe(
    'max_topic_size',
    'uint64',
    UPDATABLE,
    amount(parseByteText),
    'Bytes of all partitions, or text such as "2 GB", above which the overflow policy acts.',
  ),
  describe(
    'segment_size',
    'uint64',
    FIXED,
    segmentSize,
    'Bytes at which a segment ends: 1 MiB to 1 GiB, a multiple of 512.',
  ),
  describe(
    'durability',
    'string',
    FIXED,
    word('replicated', 'persisted', 'durable', 'buffered'),
    'When a send is acknowledged: "persisted" or "durable" after the sync, "buffered" after the write, "replicated" as configured.',
  ),
  describe(
    'consumer_offset_durability',
    'string',
    FIXED,
    word('replicated', 'persisted'),
    '"persisted": a stored offset is on disk before the reply.',
  ),
  describe(
    'messages_required_to_save',
    'uint32',
    FIXED,
    number('uint32', 1n, MAX_MESSAGES_TO_SAVE),
    'Kept for compatibility: every acknowledgement keeps its promise anyway.',
  ),
  describe(
    'size_of_messages_required_to_save',
    'uint64',
    FIXED,
    number('uint64', 0n, GIB, parseByteText),
    'Kept for compatibility, as the one before.',
  ),
  describe(
    'preallocate_segments',
    'bool',
    FIXED,
    flag,
    'Kept for compatibility: segments are written in whole blocks.',
  ),
  describe('enforce_fsync', 'bool', FIXED, flag, 'Older word: true is durability "persisted".'),
  describe(
    'overflow',
    'string',
    UPDATABLE,
    word('drop-oldest', 'drop-newest', 'reject'),
    'What a full topic does: "drop-oldest", "drop-newest" or "reject".',
  ),
  describe(
    'dedup_max_entries',
    'uint32',
    UPDATABLE,
    number('uint32', 0n, MAX_DEDUP_ENTRIES),
    'Message ids the topic remembers, so that a message sent again is not stored again; 0 is off.',
  ),
  describe(
    'dedup_expiry',
    'uint64',
    UPDATABLE,
    amount(parseDurationText),
    'How long a message id is remembered, in microseconds or as text.',
  ),
  describe('retain_last', 'bool', UPDATABLE, flag, 'Whether the newest message of each key is kept for subscribers.'),
]

export const TOPIC_OPTIONS: ReadonlyMap<string, OptionDescription> = new Map(
  DESCRIPTIONS.map((each) => [each.key, each]),
)

/**
 * @returns the option in its canonical kind, null when it means "as configured".
 * @throws {EdgeError} EDGE_OPTION_UNKNOWN, EDGE_OPTION_INVALID; both name the key.
 */
export function canonicalOption(option: Option, purpose: 'create' | 'update'): Option | null {
  const { key } = option
  const description = TOPIC_OPTIONS.get(key)
  if (description === undefined || (purpose === 'update' && !description.isUpdatable)) {
    throw new EdgeError('EDGE_OPTION_UNKNOWN', `topic option "${key}" cannot be given on ${purpose}`, {
      details: { key },
    })
  }
  const kind = headerKindName(option.kind)
  if (kind === undefined) throw invalid(key, 'kind 1..15', `${option.kind}`)
  const value = description.parse(scalarOfOption(option), kind)
  return value === null ? null : optionOf(key, description.kind, value)
}

/** @throws {EdgeError} EDGE_OPTION_INVALID when the bytes are not of the option's kind. */
export function scalarOfOption(option: Option): HeaderScalar {
  const kind = headerKindName(option.kind)
  if (kind === undefined) throw invalid(option.key, 'kind 1..15', `${option.kind}`)
  try {
    return headerScalarOf({ kind, bytes: option.valueBytes })
  } catch {
    throw invalid(option.key, kind, `${option.valueBytes.length} bytes that are none`)
  }
}

export function optionOf(key: string, kind: HeaderKind, value: HeaderScalar): Option {
  // A copy: the value may alias a payload, and options live as long as their topic.
  return { key, kind: headerKindCode(kind), valueBytes: new Uint8Array(headerValueOf(kind, value).bytes) }
}

function describe(
  key: string,
  kind: HeaderKind,
  isUpdatable: boolean,
  parser: Parser,
  description: string,
): OptionDescription {
  return { key, kind, description, isUpdatable, parse: (value, given) => parser(key, value, given) }
}

function compression(key: string, value: HeaderScalar, kind: HeaderKind): HeaderScalar {
  if (kind === 'uint8' && (value === 1 || value === 2)) return value === 1 ? 'none' : 'gzip'
  return word('none', 'gzip')(key, value, kind) ?? 'none'
}

function word(...words: readonly string[]): Parser {
  return (key, value, kind) => {
    const found = kind === 'string' ? String(value).toLowerCase() : ''
    if (!words.includes(found)) throw invalid(key, words.join(', '), `${kind} ${String(value)}`)
    return found
  }
}

/** A bool, or its text: that is how command lines and Python's client give it. */
function flag(key: string, value: HeaderScalar, kind: HeaderKind): boolean {
  if (typeof value === 'boolean') return value
  if (kind === 'string' && (value === 'true' || value === 'false')) return value === 'true'
  throw invalid(key, 'a bool or its text', `${kind} ${String(value)}`)
}

/** A number of that kind, or its text. */
function number(
  expected: 'uint32' | 'uint64',
  min: bigint,
  max: number,
  parseText: (text: string) => bigint | undefined = parseDecimal,
): Parser {
  return (key, value, kind) => {
    const given = kind === 'string' ? parseText(String(value)) : kind === expected ? value : undefined
    const isNumber = typeof given === 'number' || typeof given === 'bigint'
    if (!isNumber || BigInt(given) < min || BigInt(given) > BigInt(max)) {
      throw invalid(key, `${expected} of ${min}..${max}, or its text`, `${kind} ${String(value)}`)
    }
    return expected === 'uint32' ? Number(given) : BigInt(given)
  }
}

function parseDecimal(text: string): bigint | undefined {
  return /^\d{1,20}$/.test(text) ? BigInt(text) : undefined
}

/** A u64, or its text; 0 = as configured. */
function amount(parseText: (text: string) => bigint | undefined): Parser {
  return (key, value, kind) => {
    const found = kind === 'uint64' ? value : kind === 'string' ? parseText(String(value)) : undefined
    if (typeof found !== 'bigint') throw invalid(key, 'u64 or its text', `${kind} ${String(value)}`)
    return found === 0n ? null : found
  }
}

function segmentSize(key: string, value: HeaderScalar, kind: HeaderKind): HeaderScalar | null {
  const size = amount(parseByteText)(key, value, kind)
  if (typeof size !== 'bigint') return null
  if (size % BigInt(SEGMENT_STEP_BYTES) !== 0n || size < BigInt(MIB) || size > BigInt(GIB)) {
    throw invalid(key, `a multiple of ${SEGMENT_STEP_BYTES} in 1 MiB..1 GiB`, `${size}`)
  }
  return size
}

function invalid(key: string, expected: string, found: string): EdgeError {
  const message = `topic option "${key}": expected ${expected}, found ${found}`
  return new EdgeError('EDGE_OPTION_INVALID', message, { details: { key } })
}
