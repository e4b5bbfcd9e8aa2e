import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { MAX_DEDUP_BATCH } from '../../../../src/runtime/broker/message-dedup.ts'
import { MESSAGE_DEDUPLICATION_SETTINGS } from '../../../../src/runtime/broker/settings.ts'
import { decodeRecords } from '../../../../src/sdk/wire/messages.ts'
import { defaultsOf } from '../../../../src/setting.ts'
import { type BrokerWorld, batchOf, createBrokerWorld } from '../../../support/broker-world.ts'

const WINDOW = { maxEntries: 100, expiryUs: 60_000_000n }

async function withTopic(): Promise<BrokerWorld> {
  const world = await createBrokerWorld()
  await world.broker.createStream(world.root, 's')
  await world.broker.createTopic(world.root, 's', { name: 't', partitionCount: 2, options: { dedupWindow: WINDOW } })
  return world
}

test('topics together remember no more ids than they may, also after a restart; a quiet one keeps its own', async () => {
  const messageDeduplication = { ...defaultsOf(MESSAGE_DEDUPLICATION_SETTINGS), max_total_entries: 160 }
  await using world = await createBrokerWorld({ settings: { messageDeduplication } })
  await world.broker.createStream(world.root, 's')
  for (const name of ['quiet', 'a', 'b', 'c'])
    await world.broker.createTopic(world.root, 's', { name, partitionCount: 1, options: { dedupWindow: WINDOW } })
  /** @returns whether it was stored as new. */
  const sendTo = async ({ broker, root }: BrokerWorld, topic: string, id: number): Promise<boolean> => {
    const before = broker.topic(root, 's', topic)?.partitions[0]?.nextOffset
    await new Promise<void>((resolve) => {
      const batch = batchOf([BigInt(id), 'x'])
      broker.send(root, 's', topic, { kind: 'balanced' }, batch, { settled: () => resolve() })
    })
    return broker.topic(root, 's', topic)?.partitions[0]?.nextOffset !== before
  }
  for (let id = 1; id <= 10; id++) await sendTo(world, 'quiet', id)
  for (const topic of ['a', 'b', 'c']) for (let id = 1; id <= 100; id++) await sendTo(world, topic, id)
  await using restarted = await world.restart()
  for (const each of [world, restarted]) {
    // From the newest on, which changes nothing as long as they are known.
    const known = async (topic: string, from: number): Promise<number> => {
      let count = 0
      while (from - count > 0 && !(await sendTo(each, topic, from - count))) count++
      return count
    }
    const counts = [await known('quiet', 10), await known('a', 100), await known('b', 100), await known('c', 100)]
    assert.equal(counts[0], 10)
    const sum = counts.reduce((total, count) => total + count, 0)
    assert.ok(sum <= 160 && sum >= 120, `${counts}`)
    assert.ok(Math.min(...counts.slice(1)) >= 40, `${counts}`)
  }
})

function send(world: BrokerWorld, partitionId: number, ...messages: readonly (readonly [bigint, string])[]) {
  const settled = Promise.withResolvers<void>()
  const partitioning = { kind: 'partition', partitionId } as const
  const result = world.broker.send(world.root, 's', 't', partitioning, batchOf(...messages), {
    settled: (error) => (error === null ? settled.resolve() : settled.reject(error)),
  })
  return { result, settled: settled.promise }
}

function textsOf({ log }: BrokerWorld, partitionId: number): string[] {
  const partition = log.partition(partitionId + 1)
  const { batches } = partition?.read({ fromOffset: 0n, maxCount: 1000, maxBytes: 1e6 }) ?? { batches: [] }
  return batches.flatMap((batch) => decodeRecords(batch).map(({ payloadView }) => Buffer.from(payloadView).toString()))
}

test('a batch sent again is answered as before and stored once, also to another partition', async () => {
  await using world = await withTopic()
  const first = send(world, 0, [1n, 'a'], [2n, 'b'])
  await first.settled
  const second = send(world, 1, [1n, 'a'], [2n, 'b'])
  await second.settled
  assert.deepEqual(second.result, first.result)
  assert.deepEqual(textsOf(world, 0), ['a', 'b'])
  assert.deepEqual(textsOf(world, 1), [])
})

test('what is new of a batch goes in without a gap, in order, whole', async () => {
  await using world = await withTopic()
  await send(world, 0, [1n, 'a']).settled
  const mixed = send(world, 0, [1n, 'a'], [2n, 'b'], [2n, 'b again'], [0n, 'without id'], [3n, 'c'])
  await mixed.settled
  assert.equal(mixed.result.baseOffset, 1n)
  assert.deepEqual(textsOf(world, 0), ['a', 'b', 'without id', 'c'])
  await send(world, 0, [4n, 'd']).settled
  assert.equal(world.log.partition(1)?.nextOffset, 5n)
})

test('what a full topic gave up was not sent: it is stored when it comes again and there is room', async () => {
  await using world = await withTopic()
  const partition = world.log.partition(1)
  assert.ok(partition)
  await send(world, 0, [1n, 'a']).settled
  partition.dropsNewest = true
  await send(world, 0, [1n, 'a'], [2n, 'b'], [3n, 'c']).settled
  await send(world, 0, [2n, 'b']).settled
  world.log.holdSyncs = true
  const dropped = send(world, 0, [3n, 'c'])
  partition.dropsNewest = false
  const stored = send(world, 0, [2n, 'b'], [3n, 'c'])
  assert.equal(stored.result.isDropped, false)
  world.log.syncNow()
  await Promise.all([dropped.settled, stored.settled])
  await send(world, 0, [2n, 'b'], [3n, 'c']).settled
  assert.deepEqual(textsOf(world, 0), ['a', 'b', 'c'])
})

test('a resend is answered with the batch it repeats, not before', async () => {
  await using world = await withTopic()
  world.log.holdSyncs = true
  const first = send(world, 0, [1n, 'a'])
  const again = send(world, 0, [1n, 'a'])
  let isAnswered = false
  again.settled.then(() => {
    isAnswered = true
  })
  await Promise.resolve()
  await Promise.resolve()
  assert.equal(isAnswered, false)
  world.log.syncNow()
  await first.settled
  await again.settled
})

test('a clock that is set, forwards or back, makes no message new, and none old for longer', async () => {
  await using world = await withTopic()
  await send(world, 0, [1n, 'a']).settled
  for (const setUs of [86_400_000_000n * 365n, -86_400_000_000n]) {
    world.clock.setUs = setUs
    await send(world, 0, [1n, 'a again']).settled
  }
  assert.deepEqual(textsOf(world, 0), ['a'])
  world.clock.passMs(60_000)
  await send(world, 0, [1n, 'a new one']).settled
  assert.deepEqual(textsOf(world, 0), ['a', 'a new one'])
})

test('a batch of more messages than are compared is refused whole', async () => {
  await using world = await withTopic()
  const batch = (count: number) =>
    batchOf(...Array.from({ length: count }, (_, index) => [BigInt(index + 1), 'x'] as const))
  const append = (count: number) =>
    world.broker.send(world.root, 's', 't', { kind: 'partition', partitionId: 0 }, batch(count), { settled() {} })
  const refused = { code: 'EDGE_BATCH_INVALID', message: /at most 65536 messages with deduplication, found 65537/ }
  assert.throws(() => append(MAX_DEDUP_BATCH + 1), refused)
  append(MAX_DEDUP_BATCH)
  assert.equal(world.log.partition(1)?.nextOffset, BigInt(MAX_DEDUP_BATCH))
})

test('a batch that failed is new when it comes again, and its resend fails with it', async () => {
  await using world = await withTopic()
  world.log.holdSyncs = true
  const first = send(world, 0, [1n, 'a'])
  const again = send(world, 0, [1n, 'a'])
  world.log.syncNow(new EdgeError('EDGE_APPEND_FAILED', 'the disk refuses'))
  await assert.rejects(first.settled, { code: 'EDGE_APPEND_FAILED' })
  await assert.rejects(again.settled, { code: 'EDGE_APPEND_FAILED' })
  const third = send(world, 0, [1n, 'a'])
  world.log.syncNow()
  await third.settled
  assert.ok(third.result.baseOffset > first.result.baseOffset)
})

test('ids are remembered over a restart and forgotten after their time', async () => {
  const world = await withTopic()
  await send(world, 0, [1n, 'a']).settled
  await using again = await world.restart()
  const repeated = send(again, 1, [1n, 'a'])
  await repeated.settled
  assert.deepEqual([repeated.result.partitionId, repeated.result.baseOffset], [0, 0n])
  again.clock.passMs(60_000)
  await send(again, 1, [1n, 'a']).settled
  assert.deepEqual(textsOf(again, 1), ['a'])
})

test('a clock that comes up years behind makes no id remembered for longer', async () => {
  const world = await withTopic()
  await send(world, 0, [1n, 'a']).settled
  world.clock.setUs = -86_400_000_000n * 365n
  await using again = await world.restart()
  await send(again, 0, [1n, 'not again']).settled
  again.clock.passMs(60_000)
  await send(again, 0, [1n, 'a new one']).settled
  assert.deepEqual(textsOf(again, 0), ['a', 'a new one'])
})

test('a purge forgets the ids with the messages', async () => {
  await using world = await withTopic()
  await send(world, 0, [1n, 'a']).settled
  await world.broker.purgeTopic(world.root, 's', 't')
  await send(world, 0, [1n, 'a']).settled
  assert.deepEqual(textsOf(world, 0), ['a'])
})

test('a topic can switch deduplication on and off', async () => {
  await using world = await withTopic()
  await send(world, 0, [1n, 'a']).settled
  await world.broker.updateTopic(world.root, 's', 't', { options: { dedupWindow: null } })
  await send(world, 0, [1n, 'again']).settled
  await world.broker.updateTopic(world.root, 's', 't', { options: { dedupWindow: WINDOW } })
  await send(world, 0, [1n, 'not again']).settled
  assert.deepEqual(textsOf(world, 0), ['a', 'again'])
})

test('two changes at one moment both count', async () => {
  await using world = await createBrokerWorld()
  await world.broker.createStream(world.root, 's')
  await world.broker.createTopic(world.root, 's', { name: 't', partitionCount: 2, options: {} })
  await Promise.all([
    world.broker.updateTopic(world.root, 's', 't', { options: { dedupWindow: WINDOW } }),
    world.broker.updateTopic(world.root, 's', 't', { options: { messageExpiryUs: 5n } }),
  ])
  const { dedupWindow, messageExpiryUs } = world.broker.topic(world.root, 's', 't')?.options ?? {}
  assert.deepEqual([dedupWindow, messageExpiryUs], [WINDOW, 5n])
})

test('from the moment on at which deduplication is switched on, what was sent before is known', async () => {
  await using world = await withTopic()
  await world.broker.updateTopic(world.root, 's', 't', { options: { dedupWindow: null } })
  await send(world, 0, [1n, 'a']).settled
  const { updateTopic } = world.log.catalog
  let resent = Promise.resolve()
  world.log.catalog.updateTopic = async (...change) => {
    await send(world, 0, [2n, 'b']).settled
    await updateTopic.call(world.log.catalog, ...change)
    resent = send(world, 0, [1n, 'not again']).settled
  }
  await world.broker.updateTopic(world.root, 's', 't', { options: { dedupWindow: WINDOW } })
  await resent
  await send(world, 0, [2n, 'not again']).settled
  assert.deepEqual(textsOf(world, 0), ['a', 'b'])
})

test('a change that fails leaves the topic as it was', async () => {
  await using world = await withTopic()
  await world.broker.updateTopic(world.root, 's', 't', { options: { dedupWindow: null } })
  world.log.catalog.updateTopic = () => Promise.reject(new EdgeError('EDGE_IO', 'the disk refuses'))
  const change = world.broker.updateTopic(world.root, 's', 't', { options: { dedupWindow: WINDOW } })
  await assert.rejects(change, { code: 'EDGE_IO' })
  await send(world, 0, [1n, 'a']).settled
  await send(world, 0, [1n, 'a']).settled
  assert.deepEqual(textsOf(world, 0), ['a', 'a'])
})

test('a change that fails costs a topic none of the ids it has seen meanwhile', async () => {
  await using world = await withTopic()
  let sent = Promise.resolve()
  world.log.catalog.updateTopic = () => {
    sent = send(world, 0, [1n, 'a']).settled
    return Promise.reject(new EdgeError('EDGE_IO', 'the disk refuses'))
  }
  const options = { dedupWindow: { ...WINDOW, maxEntries: 1 } }
  await assert.rejects(world.broker.updateTopic(world.root, 's', 't', { options }), { code: 'EDGE_IO' })
  await sent
  await send(world, 0, [2n, 'b']).settled
  await send(world, 0, [1n, 'not again']).settled
  assert.deepEqual(textsOf(world, 0), ['a', 'b'])
})

for (const [what, remove] of [
  ['topic', ({ broker, root }: BrokerWorld) => broker.deleteTopic(root, 's', 't')],
  ['stream', ({ broker, root }: BrokerWorld) => broker.deleteStream(root, 's')],
] as const) {
  test(`a new ${what} with the numbers of a deleted one stores what that one had seen`, async () => {
    await using world = await withTopic()
    await send(world, 0, [1n, 'a']).settled
    // Sent while the removal is under way, which is when the window was made again.
    const { deleteTopic } = world.log.catalog
    world.log.catalog.deleteTopic = (...place) => {
      send(world, 0, [2n, 'b'])
      return deleteTopic.call(world.log.catalog, ...place)
    }
    await remove(world)
    if (what === 'stream') await world.broker.createStream(world.root, 's')
    await world.broker.createTopic(world.root, 's', { name: 't', partitionCount: 2, options: { dedupWindow: WINDOW } })
    const partitioning = { kind: 'partition', partitionId: 0 } as const
    await new Promise<void>((resolve, reject) => {
      world.broker.send(world.root, 's', 't', partitioning, batchOf([1n, 'a'], [2n, 'b']), {
        settled: (error) => (error === null ? resolve() : reject(error)),
      })
    })
    assert.deepEqual(textsOf(world, 2), ['a', 'b'])
  })
}

test('what lay in a removed partition is new when it comes again, the rest is not', async () => {
  await using world = await withTopic()
  await send(world, 0, [1n, 'kept']).settled
  await send(world, 1, [2n, 'gone']).settled
  await world.broker.deletePartitions(world.root, 's', 't', 1)
  await send(world, 0, [1n, 'kept again'], [2n, 'gone, and back']).settled
  assert.deepEqual(textsOf(world, 0), ['kept', 'gone, and back'])
})
