/**
 * Options of topics: what a client's options mean for the log, and what a topic's options look like to a client. Pure.
 *
 * A client sees what it gave in the *explicit* block, in canonical kinds; every other key of Iggy's stands in the
 * *derived* block with the value in force. Our own keys show where they were given.
 */
import { EdgeError } from '../../errors.ts'
import type { Durability, GivenOption, TopicOptions } from '../../log/index.ts'
import { type HeaderScalar, headerKindCode } from '../../sdk/wire/header-values.ts'
import type { Option, Options } from '../../sdk/wire/options.ts'
import { MIB } from '../../setting.ts'
import { UNLIMITED } from '../amount-text.ts'
import { canonicalOption, optionOf, scalarOfOption, TOPIC_OPTIONS } from './topic-option-catalog.ts'

const DEDUP_ENTRIES = 10_000
const DEDUP_EXPIRY_US = 60_000_000n

/** What a topic gets where its creator says nothing. */
export interface TopicDefaults {
  readonly durability: Durability
  readonly segmentSizeBytes: number
  readonly dedupWindow: TopicOptions['dedupWindow']
}

/**
 * What a client's options say, in canonical kinds.
 *
 * @param purpose `update` refuses keys that are fixed when the topic is made.
 * @throws {EdgeError} EDGE_OPTION_UNKNOWN, EDGE_OPTION_INVALID; both name the key.
 */
export function parseTopicOptions(asked: Options, purpose: 'create' | 'update'): Partial<TopicOptions> {
  const given = new Map<string, GivenOption>()
  const meaning: Meaning = {}
  for (const option of asked) {
    const canonical = canonicalOption(option, purpose)
    // 0 = as configured: left out of a new topic, but shown as given where it took the place of a value.
    const kept = canonical ?? (purpose === 'update' ? optionOf(option.key, 'uint64', 0n) : null)
    if (kept !== null) given.set(option.key, { kind: kept.kind, valueBytes: kept.valueBytes })
    else if (option.key === 'message_expiry') meaning.messageExpiryUs = null
    else if (option.key === 'max_topic_size') meaning.maxSizeBytes = null
  }
  return { ...meaning, ...meaningOf(given), given }
}

/**
 * Puts what was asked for over `base`: the defaults of a new topic, or the options in force.
 *
 * @throws {EdgeError} EDGE_TOPIC_SIZE_INVALID when the topic could not hold one segment.
 */
export function resolveTopicOptions(
  asked: Partial<TopicOptions>,
  base: TopicOptions,
  defaults: TopicDefaults,
): TopicOptions {
  const given = new Map(base.given)
  // Asked for without a given value: back to the server's default, so it is not explicit any more.
  if (asked.messageExpiryUs !== undefined) given.delete('message_expiry')
  if (asked.maxSizeBytes !== undefined) given.delete('max_topic_size')
  for (const [key, option] of asked.given ?? []) given.set(key, option)
  const resolved = { ...base, ...asked, given, dedupWindow: dedupWindowOf(asked, base, given) }
  const segmentSizeBytes = resolved.segmentSizeBytes ?? defaults.segmentSizeBytes
  if (resolved.maxSizeBytes !== null && resolved.maxSizeBytes < BigInt(segmentSizeBytes)) {
    const message = `max_topic_size: expected at least a segment of ${segmentSizeBytes} bytes, found ${resolved.maxSizeBytes}`
    throw new EdgeError('EDGE_TOPIC_SIZE_INVALID', message)
  }
  return resolved
}

/** Options of a topic whose creator names none. */
export function defaultTopicOptions(defaults: TopicDefaults): TopicOptions {
  return {
    durability: defaults.durability,
    overflow: 'drop-oldest',
    messageExpiryUs: null,
    maxSizeBytes: null,
    segmentSizeBytes: null,
    compression: 'none',
    replicationFactor: 1,
    dedupWindow: defaults.dedupWindow,
    retainLast: false,
    given: new Map(),
  }
}

/** What the client itself asked for, by key ascending. */
export function explicitOptions(options: TopicOptions): Options {
  const given = [...options.given].map(([key, { kind, valueBytes }]) => ({ key, kind, valueBytes }))
  return given.sort(byKey)
}

/** Iggy's other keys with the values in force, by key ascending. */
export function derivedOptions(options: TopicOptions, defaults: TopicDefaults): Options {
  const derived: Option[] = []
  for (const { key, kind } of TOPIC_OPTIONS.values()) {
    const value = iggyValueOf(key, options, defaults)
    if (value !== undefined && !options.given.has(key)) derived.push(optionOf(key, kind, value))
  }
  return derived.sort(byKey)
}

export interface DescribedOption {
  readonly key: string
  readonly kind: number
  readonly defaultBytes: Uint8Array
  readonly description: string
}

/** The catalogue of topic options: Iggy's keys in its order, V4's, then ours. */
export function describeTopicOptions(defaults: TopicDefaults): readonly DescribedOption[] {
  const options = defaultTopicOptions(defaults)
  return [...TOPIC_OPTIONS.values()].map(({ key, kind, description }) => {
    const value = iggyValueOf(key, options, defaults) ?? ownValueOf(key, options)
    return { key, kind: headerKindCode(kind), defaultBytes: optionOf(key, kind, value).valueBytes, description }
  })
}

/** Whether a stored offset must be on disk before the reply. */
export function hasPersistedOffsets(options: TopicOptions): boolean {
  return givenScalar(options.given, 'consumer_offset_durability') === 'persisted'
}

type Meaning = { -readonly [K in keyof TopicOptions]?: TopicOptions[K] }

/** Canonical options as the log acts on them. */
function meaningOf(given: ReadonlyMap<string, GivenOption>): Meaning {
  const meaning: Meaning = {}
  for (const key of given.keys()) addMeaning(meaning, key, givenScalar(given, key))
  return meaning
}

function addMeaning(meaning: Meaning, key: string, value: HeaderScalar | undefined): void {
  switch (key) {
    case 'compression_algorithm':
      meaning.compression = value === 'gzip' ? 'gzip' : 'none'
      return
    case 'message_expiry':
      meaning.messageExpiryUs = boundOf(value)
      return
    case 'max_topic_size':
      meaning.maxSizeBytes = boundOf(value)
      return
    case 'segment_size':
      meaning.segmentSizeBytes = Number(value)
      return
    case 'durability':
      // `replicated` promises what the server is configured to.
      if (value === 'persisted' || value === 'durable') meaning.durability = 'durable'
      if (value === 'buffered' && meaning.durability === undefined) meaning.durability = 'buffered'
      return
    case 'enforce_fsync':
      if (value === true) meaning.durability = 'durable'
      return
    case 'overflow':
      if (value === 'drop-oldest' || value === 'drop-newest' || value === 'reject') meaning.overflow = value
      return
    case 'retain_last':
      meaning.retainLast = value === true
  }
}

/** The window is made of two keys; one of them may have been given when the topic was made. */
function dedupWindowOf(
  asked: Partial<TopicOptions>,
  base: TopicOptions,
  given: ReadonlyMap<string, GivenOption>,
): TopicOptions['dedupWindow'] {
  if (asked.dedupWindow !== undefined) return asked.dedupWindow
  const entries = givenScalar(given, 'dedup_max_entries')
  const expiry = givenScalar(given, 'dedup_expiry')
  if (entries === undefined && expiry === undefined) return base.dedupWindow
  const maxEntries = typeof entries === 'number' ? entries : DEDUP_ENTRIES
  return maxEntries === 0 ? null : { maxEntries, expiryUs: typeof expiry === 'bigint' ? expiry : DEDUP_EXPIRY_US }
}

/** The value in force of one of Iggy's keys; undefined for our own. */
function iggyValueOf(key: string, options: TopicOptions, defaults: TopicDefaults): HeaderScalar | undefined {
  switch (key) {
    case 'compression_algorithm':
      return options.compression
    case 'message_expiry':
      return options.messageExpiryUs ?? UNLIMITED
    case 'max_topic_size':
      return options.maxSizeBytes ?? UNLIMITED
    case 'segment_size':
      return BigInt(options.segmentSizeBytes ?? defaults.segmentSizeBytes)
    case 'durability':
      // Iggy's words: `persisted` acks after the sync, `replicated` stands for what the server is configured to.
      return options.durability === 'durable' && defaults.durability !== 'durable' ? 'persisted' : 'replicated'
    case 'consumer_offset_durability':
      return 'replicated'
    case 'messages_required_to_save':
      return 1024
    case 'size_of_messages_required_to_save':
      return BigInt(MIB)
    case 'preallocate_segments':
      return false
    default:
      return undefined
  }
}

function ownValueOf(key: string, options: TopicOptions): HeaderScalar {
  if (key === 'enforce_fsync') return false
  if (key === 'overflow') return options.overflow
  if (key === 'dedup_max_entries') return options.dedupWindow?.maxEntries ?? 0
  if (key === 'dedup_expiry') return options.dedupWindow?.expiryUs ?? DEDUP_EXPIRY_US
  return options.retainLast
}

function givenScalar(given: ReadonlyMap<string, GivenOption>, key: string): HeaderScalar | undefined {
  const option = given.get(key)
  return option === undefined ? undefined : scalarOfOption({ key, ...option })
}

function boundOf(value: HeaderScalar | undefined): bigint | null {
  return typeof value !== 'bigint' || value === UNLIMITED || value === 0n ? null : value
}

function byKey(left: Option, right: Option): number {
  return left.key < right.key ? -1 : left.key > right.key ? 1 : 0
}
