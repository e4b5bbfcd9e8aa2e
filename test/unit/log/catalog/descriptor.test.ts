import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  formatStore,
  formatStream,
  formatTopic,
  parseStore,
  parseStream,
  parseTopic,
  type TopicDescriptor,
} from '../../../../src/log/catalog/descriptor.ts'
import { decodeDescriptor, encodeDescriptor } from '../../../../src/log/catalog/descriptor-codec.ts'

const TOPIC: TopicDescriptor = {
  name: 'Öfen "3"\n\u2028😀',
  createdAtUs: 1_700_000_000_000_000n,
  options: {
    durability: 'buffered',
    overflow: 'drop-newest',
    messageExpiryUs: 2n ** 63n,
    maxSizeBytes: null,
    segmentSizeBytes: 1_048_576,
    compression: 'gzip',
    replicationFactor: 1,
    dedupWindow: { maxEntries: 10_000, expiryUs: 60_000_000n },
    retainLast: true,
    given: new Map([
      ['segment_size', { kind: 7, valueBytes: Uint8Array.of(0, 16, 0, 255) }],
      ['empty', { kind: 0, valueBytes: new Uint8Array(0) }],
    ]),
  },
  partitions: [
    { key: 1, idSeed: 2n ** 64n - 1n, createdAtUs: 1n, floorOffset: 0n },
    { key: 4_294_967_295, idSeed: 0n, createdAtUs: 2n, floorOffset: 2n ** 63n },
  ],
}
const STREAM = { name: 'plant', createdAtUs: 5n }
const STORE = {
  storeId: Uint8Array.from({ length: 16 }, (_, at) => at),
  createdAtUs: 5n,
  nextKeyFloor: 64,
  keyCheck: null,
  isRebuilt: false,
}

test('descriptors read back as they were written', () => {
  assert.deepEqual(parseTopic(formatTopic(TOPIC)), { kind: 'sound', value: TOPIC })
  assert.deepEqual(parseStream(formatStream(STREAM)), { kind: 'sound', value: STREAM })
  assert.deepEqual(parseStore(formatStore(STORE)), { kind: 'sound', value: STORE })
  for (const store of [
    { ...STORE, keyCheck: 'abcd' },
    { ...STORE, isRebuilt: true },
  ])
    assert.deepEqual(parseStore(formatStore(store)), { kind: 'sound', value: store })
})

test('the file format is this one, byte for byte', () => {
  const golden =
    '{"format":"iggy-edge store","version":1,"storeId":"000102030405060708090a0b0c0d0e0f","createdAtUs":"5",' +
    '"nextKeyFloor":64,"keyCheck":null}\ncrc32 f4a72926\n'
  assert.equal(new TextDecoder().decode(encodeDescriptor(formatStore(STORE))), golden)
})

test('every truncation is noticed', () => {
  const bytes = encodeDescriptor(formatTopic(TOPIC))
  assert.notEqual(decodeDescriptor(bytes), null)
  for (let size = 0; size < bytes.length; size++) {
    assert.equal(decodeDescriptor(bytes.subarray(0, size)), null, `${size} of ${bytes.length} bytes`)
  }
})

test('every flipped bit is noticed', () => {
  const bytes = encodeDescriptor(formatTopic(TOPIC))
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = Uint8Array.from(bytes)
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    assert.equal(decodeDescriptor(flipped), null, `bit ${bit}`)
  }
})

test('bytes behind the end, zeros and nothing at all are noticed', () => {
  const bytes = encodeDescriptor(formatStream(STREAM))
  const longer = new Uint8Array(bytes.length + 1)
  longer.set(bytes)
  for (const damaged of [
    longer,
    new Uint8Array(bytes.length),
    new Uint8Array(0),
    new TextEncoder().encode('\ncrc32 00000000\n'),
  ]) {
    assert.equal(decodeDescriptor(damaged), null)
  }
})

test('a higher version is told apart from damage', () => {
  const newer = formatTopic(TOPIC)
    .replace('"version":1', '"version":2')
    .replace('"durability":"buffered"', '"durability":"x"')
  assert.deepEqual(parseTopic(newer), { kind: 'newer', version: 2 })
  assert.deepEqual(parseStore('{"format":"iggy-edge store","version":9}'), { kind: 'newer', version: 9 })
})

test('one kind of descriptor is not taken for another', () => {
  assert.equal(parseTopic(formatStream(STREAM)).kind, 'damaged')
  assert.equal(parseStream(formatTopic(TOPIC)).kind, 'damaged')
  assert.equal(parseStore(formatTopic(TOPIC)).kind, 'damaged')
})

/** Every value in the JSON replaced by each of these, one at a time, at any depth. */
const STRANGE: readonly unknown[] = [
  null,
  true,
  -1,
  1.5,
  1e300,
  '',
  'x',
  '-1',
  '1e3',
  '99999999999999999999999',
  [],
  {},
  [[]],
]

test('a field of a wrong type or range never throws, and most make the descriptor damaged', () => {
  let damagedCount = 0
  let count = 0
  for (const text of variants(JSON.parse(formatTopic(TOPIC)))) {
    const { kind } = parseTopic(text)
    if (kind === 'damaged') damagedCount++
    count++
  }
  assert.ok(count > 300, `${count} variants`)
  assert.ok(damagedCount / count > 0.8, `${damagedCount} of ${count}`)
  for (const text of variants(JSON.parse(formatStore(STORE)))) parseStore(text)
  for (const text of ['', 'null', '[]', '{', '1', '{"format":1}']) assert.equal(parseStream(text).kind, 'damaged', text)
})

function* variants(value: unknown): Generator<string> {
  const root = { value }
  for (const { holder, key } of places(root)) {
    const before = holder[key]
    for (const strange of STRANGE) {
      holder[key] = strange
      yield JSON.stringify(root.value)
    }
    holder[key] = before
  }
}

function* places(value: unknown): Generator<{ holder: Record<string, unknown>; key: string }> {
  if (typeof value !== 'object' || value === null) return
  const holder = value as Record<string, unknown>
  for (const key of Object.keys(holder)) {
    yield { holder, key }
    yield* places(holder[key])
  }
}
