import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { UNLIMITED } from '../../../../src/runtime/amount-text.ts'
import { optionOf, scalarOfOption } from '../../../../src/runtime/broker/topic-option-catalog.ts'
import {
  defaultTopicOptions,
  derivedOptions,
  describeTopicOptions,
  explicitOptions,
  hasPersistedOffsets,
  parseTopicOptions,
  resolveTopicOptions,
  type TopicDefaults,
} from '../../../../src/runtime/broker/topic-options.ts'
import type { Option, Options } from '../../../../src/sdk/wire/options.ts'

const DEFAULTS: TopicDefaults = { durability: 'durable', segmentSizeBytes: 16 * 1024 * 1024, dedupWindow: null }
const BUFFERED: TopicDefaults = { ...DEFAULTS, durability: 'buffered' }

const created = (options: Options, defaults = DEFAULTS) =>
  resolveTopicOptions(parseTopicOptions(options, 'create'), defaultTopicOptions(defaults), defaults)
const values = (options: Options) => Object.fromEntries(options.map((option) => [option.key, scalarOfOption(option)]))
const text = (key: string, value: string) => optionOf(key, 'string', value)

describe('durability', () => {
  const CASES: readonly (readonly [string, Option, TopicDefaults, string])[] = [
    ['replicated takes what the server is configured to', text('durability', 'replicated'), BUFFERED, 'buffered'],
    [
      'replicated takes what the server is configured to, durable too',
      text('durability', 'replicated'),
      DEFAULTS,
      'durable',
    ],
    ['persisted is durable', text('durability', 'Persisted'), BUFFERED, 'durable'],
    ['durable is our own word', text('durability', 'durable'), BUFFERED, 'durable'],
    ['buffered is our own word', text('durability', 'buffered'), DEFAULTS, 'buffered'],
    ['enforce_fsync is the word of the last drafts', optionOf('enforce_fsync', 'bool', true), BUFFERED, 'durable'],
  ]
  for (const [name, option, defaults, expected] of CASES) {
    test(name, () => assert.equal(created([option], defaults).durability, expected))
  }

  test('of consumer offsets is told apart', () => {
    assert.equal(hasPersistedOffsets(created([text('consumer_offset_durability', 'persisted')])), true)
    assert.equal(hasPersistedOffsets(created([text('consumer_offset_durability', 'replicated')])), false)
    assert.equal(hasPersistedOffsets(created([])), false)
  })
})

describe('values', () => {
  test('come in their kind or as text', () => {
    const options = created([
      text('message_expiry', '1h 30m'),
      text('max_topic_size', '2 GB'),
      optionOf('compression_algorithm', 'uint8', 2),
    ])
    assert.equal(options.messageExpiryUs, 5_400_000_000n)
    assert.equal(options.maxSizeBytes, 2_000_000_000n)
    assert.equal(options.compression, 'gzip')
    assert.deepEqual(values(explicitOptions(options)), {
      compression_algorithm: 'gzip',
      max_topic_size: 2_000_000_000n,
      message_expiry: 5_400_000_000n,
    })
  })

  test('of flags and numbers come as text too, and are shown in their own kinds', () => {
    const options = created([
      text('enforce_fsync', 'true'),
      text('preallocate_segments', 'false'),
      text('messages_required_to_save', '32'),
      text('size_of_messages_required_to_save', '2 MiB'),
      text('dedup_max_entries', '5'),
      text('retain_last', 'true'),
    ])
    assert.equal(options.durability, 'durable')
    assert.equal(options.retainLast, true)
    assert.equal(options.dedupWindow?.maxEntries, 5)
    assert.deepEqual(values(explicitOptions(options)), {
      dedup_max_entries: 5,
      enforce_fsync: true,
      messages_required_to_save: 32,
      preallocate_segments: false,
      retain_last: true,
      size_of_messages_required_to_save: 2_097_152n,
    })
  })

  test('without a bound are null to the log and shown as given', () => {
    const options = created([optionOf('message_expiry', 'uint64', UNLIMITED), text('max_topic_size', 'unlimited')])
    assert.equal(options.messageExpiryUs, null)
    assert.equal(options.maxSizeBytes, null)
    assert.deepEqual(values(explicitOptions(options)), { max_topic_size: UNLIMITED, message_expiry: UNLIMITED })
  })

  const REFUSED: readonly (readonly [string, Option, string])[] = [
    ['an unknown key', text('colour', 'red'), 'EDGE_OPTION_UNKNOWN'],
    ['a word that is none', text('durability', 'maybe'), 'EDGE_OPTION_INVALID'],
    ['durability in another kind', optionOf('durability', 'bool', true), 'EDGE_OPTION_INVALID'],
    ['compression that is none', text('compression_algorithm', 'zip'), 'EDGE_OPTION_INVALID'],
    ['a segment below 1 MiB', optionOf('segment_size', 'uint64', 1000n), 'EDGE_OPTION_INVALID'],
    ['a segment of odd size', optionOf('segment_size', 'uint64', 1_048_577n), 'EDGE_OPTION_INVALID'],
    ['a number as flag', optionOf('enforce_fsync', 'uint8', 1), 'EDGE_OPTION_INVALID'],
    ['a word as flag', text('enforce_fsync', 'yes'), 'EDGE_OPTION_INVALID'],
    ['a word as number', text('messages_required_to_save', 'many'), 'EDGE_OPTION_INVALID'],
    ['a number of another kind', optionOf('messages_required_to_save', 'uint64', 32n), 'EDGE_OPTION_INVALID'],
    ['too many messages to save', optionOf('messages_required_to_save', 'uint32', 16_777_217), 'EDGE_OPTION_INVALID'],
    ['text that is no duration', text('message_expiry', 'soon'), 'EDGE_OPTION_INVALID'],
    ['a topic smaller than a segment', optionOf('max_topic_size', 'uint64', 1000n), 'EDGE_TOPIC_SIZE_INVALID'],
  ]
  for (const [name, option, code] of REFUSED) {
    test(`${name} is refused`, () => assert.throws(() => created([option]), { code }))
  }
})

describe('an update', () => {
  const base = created([text('message_expiry', '1h'), text('durability', 'persisted')])
  const updated = (options: Options) => resolveTopicOptions(parseTopicOptions(options, 'update'), base, DEFAULTS)

  test('keeps what it does not name', () => {
    const options = updated([text('compression_algorithm', 'gzip')])
    assert.equal(options.messageExpiryUs, 3_600_000_000n)
    assert.equal(options.compression, 'gzip')
    assert.equal(options.durability, 'durable')
  })

  test('with 0 goes back to what is configured, and shows the 0', () => {
    const options = updated([optionOf('message_expiry', 'uint64', 0n)])
    assert.equal(options.messageExpiryUs, null)
    assert.equal(values(explicitOptions(options)).message_expiry, 0n)
  })

  test('cannot change what is fixed when a topic is made', () => {
    assert.throws(() => updated([text('durability', 'durable')]), { code: 'EDGE_OPTION_UNKNOWN' })
    assert.throws(() => updated([optionOf('segment_size', 'uint64', 1_048_576n)]), { code: 'EDGE_OPTION_UNKNOWN' })
  })

  test('may name one half of the deduplication window', () => {
    const first = resolveTopicOptions(parseTopicOptions([text('dedup_expiry', '5m')], 'update'), base, DEFAULTS)
    assert.deepEqual(first.dedupWindow, { maxEntries: 10_000, expiryUs: 300_000_000n })
    const second = resolveTopicOptions(
      parseTopicOptions([optionOf('dedup_max_entries', 'uint32', 5)], 'update'),
      first,
      DEFAULTS,
    )
    assert.deepEqual(second.dedupWindow, { maxEntries: 5, expiryUs: 300_000_000n })
    const off = resolveTopicOptions(
      parseTopicOptions([optionOf('dedup_max_entries', 'uint32', 0)], 'update'),
      second,
      DEFAULTS,
    )
    assert.equal(off.dedupWindow, null)
  })
})

describe('what a client sees', () => {
  test('explicit and derived keys together are all of Iggy, each once, ascending', () => {
    const options = created([text('durability', 'replicated'), text('overflow', 'reject')])
    const explicit = explicitOptions(options).map(({ key }) => key)
    const derived = derivedOptions(options, DEFAULTS).map(({ key }) => key)
    assert.deepEqual(explicit, ['durability', 'overflow'])
    assert.deepEqual(derived, [...derived].sort())
    assert.equal(new Set([...explicit, ...derived]).size, 10)
  })

  test('the catalogue lists Iggy keys in its order, the one of V4, and ours after them', () => {
    const described = describeTopicOptions(DEFAULTS)
    assert.deepEqual(
      described.map(({ key }) => key),
      [
        'compression_algorithm',
        'message_expiry',
        'max_topic_size',
        'segment_size',
        'durability',
        'consumer_offset_durability',
        'messages_required_to_save',
        'size_of_messages_required_to_save',
        'preallocate_segments',
        'enforce_fsync',
        'overflow',
        'dedup_max_entries',
        'dedup_expiry',
        'retain_last',
      ],
    )
    for (const { key, kind, defaultBytes } of described) {
      // A default that is given changes nothing.
      const options = parseTopicOptions([{ key, kind, valueBytes: defaultBytes }], 'create')
      const { given: _, ...meaning } = resolveTopicOptions(options, defaultTopicOptions(DEFAULTS), DEFAULTS)
      const { given: __, ...expected } = defaultTopicOptions(DEFAULTS)
      if (key !== 'dedup_expiry' && key !== 'segment_size') assert.deepEqual(meaning, expected, key)
    }
  })
})
