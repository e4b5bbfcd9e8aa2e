import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ReadRequest } from '../../../../src/log/index.ts'
import { usableMemoryBytes } from '../../../../src/runtime/broker/machine-stats.ts'
import {
  answerLimit,
  currentOffset,
  expectedBytes,
  fittingAsText,
  startOffset,
} from '../../../../src/runtime/broker/polling.ts'
import type { StoredBatch } from '../../../../src/sdk/wire/batch.ts'
import { encodeRecords } from '../../../../src/sdk/wire/messages.ts'
import { GIB, KIB, MIB } from '../../../../src/setting.ts'
import { batchOf, createBrokerWorld } from '../../../support/broker-world.ts'
import { eventually } from '../../../support/eventually.ts'

const RANGE = { logStartOffset: 10n, visibleEnd: 20n }

test('an offset below the oldest kept message starts there', () => {
  assert.equal(startOffset({ kind: 'offset', offset: 3n }, RANGE, 5), 10n)
  assert.equal(startOffset({ kind: 'offset', offset: 15n }, RANGE, 5), 15n)
  assert.equal(startOffset({ kind: 'offset', offset: 99n }, RANGE, 5), 99n)
})

test('first is the oldest kept message, last the newest so many', () => {
  assert.equal(startOffset({ kind: 'first' }, RANGE, 5), 10n)
  assert.equal(startOffset({ kind: 'last' }, RANGE, 5), 15n)
  assert.equal(startOffset({ kind: 'last' }, RANGE, 100), 10n)
})

test('next goes on after the stored offset, or begins with the oldest', () => {
  assert.equal(startOffset({ kind: 'next', storedOffset: 14n }, RANGE, 5), 15n)
  assert.equal(startOffset({ kind: 'next', storedOffset: 2n }, RANGE, 5), 10n)
  assert.equal(startOffset({ kind: 'next', storedOffset: undefined }, RANGE, 5), 10n)
})

test('the current offset is the newest one, and 0 for a partition that never had any', () => {
  assert.equal(currentOffset(RANGE), 19n)
  assert.equal(currentOffset({ logStartOffset: 0n, visibleEnd: 0n }), 0n)
})

test('an answer takes a share of the memory where nobody says, but never less than 8 MiB', () => {
  assert.equal(answerLimit('classic', 'auto', 256 * MIB, 0), 8 * MIB)
  assert.equal(answerLimit('classic', 'auto', 4 * GIB, 0), 64 * MIB)
  assert.equal(answerLimit('classic', 'auto', 64 * GIB, 0), 128 * MIB)
  assert.equal(answerLimit('classic', 64 * KIB, 64 * GIB, 0), 64 * KIB)
})

test('an answer is never larger than what its carrier takes', () => {
  assert.equal(answerLimit('vsr', 'auto', 64 * GIB, 0), 56 * MIB)
  assert.equal(answerLimit('http', 'auto', 64 * GIB, 0), 8 * MIB)
  assert.equal(answerLimit('edge', 100 * MIB, GIB, 0), 8 * MIB)
  assert.equal(answerLimit('vsr', 100 * MIB, GIB, 0), 56 * MIB)
})

test('while peers leave too much unread, an answer is small', () => {
  assert.equal(answerLimit('classic', 'auto', 96 * MIB, 16 * MIB), 8 * MIB)
  assert.equal(answerLimit('classic', 'auto', 96 * MIB, 16 * MIB + 1), 64 * KIB)
  assert.equal(answerLimit('vsr', 100 * MIB, GIB, 32 * MIB), 56 * MIB)
  assert.equal(answerLimit('vsr', 100 * MIB, GIB, 32 * MIB + 1), 64 * KIB)
})

/** `skip` and `take` as a read gives them. */
function stored(count: number, payloadBytes: number, headersBytes = 0, skip = 0): StoredBatch {
  const record = { payload: new Uint8Array(payloadBytes), userHeaders: new Uint8Array(headersBytes), originUs: 5n }
  const batch = encodeRecords(Array.from({ length: count }, () => record))
  return { ...batch, baseOffset: 0n, appendTimeUs: 5n, idSeed: 0n, isClockTrusted: true, skip, take: count - skip }
}

const takesOf = (batches: readonly StoredBatch[]) => batches.map(({ skip, take }) => [skip, take])

test('an answer of text has as many messages as fit, however small they are as bytes', () => {
  const batches = [stored(10, 1), stored(10, 1, 0, 4), stored(10, 1)]
  assert.equal(fittingAsText(batches).length, 3)
  assert.deepEqual(takesOf(fittingAsText(batches, 402 * 12)), [
    [0, 10],
    [4, 2],
  ])
  assert.deepEqual(takesOf(fittingAsText(batches, 402 * 10)), [[0, 10]])
  assert.deepEqual(takesOf(fittingAsText(batches.slice(1), 402 * 7)), [
    [4, 6],
    [0, 1],
  ])
  // A header of twelve bytes takes as much text as two hundred bytes of payload.
  assert.deepEqual(takesOf(fittingAsText([stored(10, 100, 96)], 10_000)), [[0, 3]])
  assert.deepEqual(takesOf(fittingAsText([stored(1000, 10_000)])), [[0, 873]])
})

test('the first message is answered whatever it takes', () => {
  assert.deepEqual(takesOf(fittingAsText([stored(3, 100_000)], 1000)), [[0, 1]])
  assert.deepEqual(takesOf(fittingAsText([stored(3, 100_000, 0, 2)], 1000)), [[2, 1]])
})

test('what a read will have is reckoned by the messages of its partition, and at most what it may', () => {
  const read = { fromOffset: 10n, maxCount: 1000, maxBytes: 8 * MIB }
  assert.equal(expectedBytes(read, { visibleEnd: 5000n, messageCount: 4000 }, 4_000_000), 1_000_000)
  assert.equal(expectedBytes(read, { visibleEnd: 15n, messageCount: 10 }, 20_000), 10_000)
  assert.equal(expectedBytes(read, { visibleEnd: 5000n, messageCount: 4000 }, 4_000_000_000), 8 * MIB)
})

test('polls that wait for the disk count as what they will have: behind many of them an answer is small', async (context) => {
  await using world = await createBrokerWorld()
  const { broker, root, log } = world
  await broker.createStream(root, 's')
  await broker.createTopic(root, 's', { name: 't', partitionCount: 1, options: {} })
  broker.send(root, 's', 't', { kind: 'balanced' }, batchOf([0n, 'a']), { settled() {} })
  await eventually(() => log.partition(1)?.visibleEnd === 1n)
  const partition = log.partition(1)
  assert.ok(partition)
  const limits: number[] = []
  const disk: (() => void)[] = []
  const readNow = partition.read.bind(partition)
  context.mock.method(partition, 'read', (request: ReadRequest) => {
    limits.push(request.maxBytes)
    return new Promise((resolve) => disk.push(() => resolve(readNow(request))))
  })
  const poll = () => {
    const consumer = { kind: 'consumer', id: 1 } as const
    const place = { consumer, stream: 's', topic: 't', partitionId: 0 }
    return broker.poll(root, { ...place, strategy: { kind: 'first' }, count: 1, autoCommit: false })
  }
  broker.answersLeft(Math.max(16 * MIB, usableMemoryBytes() / 32))
  const polls = [poll(), poll()]
  for (const done of disk) done()
  await Promise.all(polls)
  void poll()
  assert.deepEqual(limits, [limits[0], 64 * KIB, limits[0]])
  assert.notEqual(limits[0], 64 * KIB)
})
