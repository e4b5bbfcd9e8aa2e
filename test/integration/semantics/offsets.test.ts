/** What an offset promises: it names one message for ever, whatever was purged, dropped, restarted or killed meanwhile. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Client } from '../../../src/sdk/index.ts'
import { CODE } from '../../../src/sdk/wire/codes.ts'
import { ACK_QUORUM } from '../../../src/sdk/wire/commands/offsets.ts'
import { type EdgeWorld, GENERATIONS, startEdgeWorld } from '../../support/edge-world.ts'
import { eventually } from '../../support/eventually.ts'
import { VsrClient } from '../../support/protocol-clients.ts'

const FIRST = { kind: 'partition', partitionId: 0 } as const
const HOUR_MS = 3_600_000

const send = (client: Client, ...texts: readonly string[]) =>
  client.messages.send(
    'plant',
    'readings',
    FIRST,
    texts.map((text) => ({ payload: new TextEncoder().encode(text) })),
  )

async function stored(client: Client): Promise<readonly (readonly [bigint, string])[]> {
  const polled = await client.messages.poll('plant', 'readings', { partitionId: 0, strategy: { kind: 'first' } })
  return polled.messages.map(({ offset, payload }) => [offset, new TextDecoder().decode(payload)])
}

async function createTopic(world: EdgeWorld, options: Record<string, string> = {}): Promise<Client> {
  const client = await world.connect()
  await client.streams.create('plant')
  await client.topics.create('plant', 'readings', { options })
  return client
}

function partitionOf(world: EdgeWorld) {
  const partition = world.edge.log.catalog.topic(0, 'readings')?.partitions[0]
  assert.ok(partition)
  return partition
}

describe('a purge', () => {
  for (const durability of ['durable', 'buffered']) {
    for (const what of ['topic', 'stream'] as const) {
      test(`of a ${what} takes ${durability} messages that were sent this moment, the counters and the stored offsets`, async () => {
        await using world = await startEdgeWorld()
        const client = await createTopic(world, { durability })
        await send(client, 'a', 'b', 'c')
        const consumer = { kind: 'consumer', id: 5 } as const
        await client.offsets.store(consumer, 'plant', 'readings', 0, 1n)
        const lastSend = send(client, 'd')
        await (what === 'topic' ? client.topics.purge('plant', 'readings') : client.streams.purge('plant'))
        await lastSend
        assert.deepEqual(await stored(client), [])
        assert.equal((await client.topics.get('plant', 'readings'))?.messagesCount, 0n)
        assert.equal(await client.offsets.get(consumer, 'plant', 'readings', 0), null)
        await world.restart()
        const later = await world.connect()
        assert.deepEqual(await stored(later), [])
        await send(later, 'e')
        assert.deepEqual(await stored(later), [[4n, 'e']])
      })
    }
  }
})

test('segments smaller than the journal are counted and dropped as an operator asked, but for what a consumer has not read', async () => {
  await using world = await startEdgeWorld({ EDGE_LOG__SEGMENT_SIZE: '4KiB' })
  const client = await createTopic(world)
  const numbers = Array.from({ length: 10 }, (_, number) => String(number).repeat(1000))
  for (const text of numbers) await send(client, text)
  const segmentsCount = async () => (await client.topics.get('plant', 'readings'))?.partitions[0]?.segmentsCount
  assert.equal(await segmentsCount(), 3, 'two of four messages each, and the one that grows')
  const consumer = { kind: 'consumer', id: 5 } as const
  await client.offsets.store(consumer, 'plant', 'readings', 0, 3n)
  await client.topics.deleteSegments('plant', 'readings', 0, 100)
  assert.equal(await segmentsCount(), 2)
  assert.deepEqual((await client.offsets.get(consumer, 'plant', 'readings', 0))?.currentOffset, 9n)
  await world.restart()
  const later = await world.connect()
  assert.deepEqual(
    (await stored(later)).map(([offset]) => offset),
    [4n, 5n, 6n, 7n, 8n, 9n],
  )
})

test('a segment goes with the last message of it that the slowest of consumers and groups has committed, not before', async () => {
  await using world = await startEdgeWorld({ EDGE_LOG__SEGMENT_SIZE: '4KiB' })
  let client = await createTopic(world)
  const numbers = Array.from({ length: 10 }, (_, number) => String(number).repeat(1000))
  for (const text of numbers) await send(client, text)
  const slow = { kind: 'consumer', id: 5 } as const
  const group = { kind: 'group', id: 'processors' } as const
  await client.groups.create('plant', 'readings', 'processors')
  await client.offsets.store(slow, 'plant', 'readings', 0, 5n)
  for (let committed = 0; committed < numbers.length; committed++) {
    await client.groups.join('plant', 'readings', 'processors')
    const polled = await client.messages.poll('plant', 'readings', {
      consumer: group,
      partitionId: 0,
      count: 1,
      autoCommit: true,
    })
    assert.deepEqual(
      polled.messages.map(({ offset }) => offset),
      [BigInt(committed)],
    )
    await client.topics.deleteSegments('plant', 'readings', 0, 100)
    const first = () => partitionOf(world).logStartOffset
    assert.equal(first(), committed < 3 ? 0n : 4n, `committed ${committed}`)
    if (committed % 3 !== 0) continue
    await world.restart()
    client = await world.connect()
    assert.equal(first(), committed < 3 ? 0n : 4n, `committed ${committed}, started again`)
  }
  await client.offsets.store(slow, 'plant', 'readings', 0, 6n)
  await client.topics.deleteSegments('plant', 'readings', 0, 100)
  assert.equal(partitionOf(world).logStartOffset, 4n)
  await client.offsets.store(slow, 'plant', 'readings', 0, 7n)
  await client.topics.deleteSegments('plant', 'readings', 0, 100)
  assert.equal(partitionOf(world).logStartOffset, 8n)
})

test('a stored offset that a crash has left ahead of the log takes nothing from its consumer of what comes then', async () => {
  await using world = await startEdgeWorld()
  const client = await createTopic(world)
  await send(client, 'a', 'b', 'c')
  await client.groups.create('plant', 'readings', 'processors')
  const group = (await client.groups.get('plant', 'readings', 'processors')) ?? assert.fail('it was made')
  // As if the end of the log had been lost with the power.
  const { key } = partitionOf(world)
  world.edge.log.metadata.setOffset(key, 'consumer', 5, 999n)
  world.edge.log.metadata.setOffset(key, 'group', group.id, 999n)
  await world.restart()
  const later = await world.connect()
  await later.groups.join('plant', 'readings', 'processors')
  await send(later, 'd', 'e')
  for (const consumer of [
    { kind: 'consumer', id: 5 },
    { kind: 'group', id: 'processors' },
  ] as const) {
    const polled = await later.messages.poll('plant', 'readings', { consumer, partitionId: 0 })
    assert.deepEqual(
      polled.messages.map(({ offset }) => offset),
      [3n, 4n],
      consumer.kind,
    )
  }
})

test('offsets go on where they were when retention and a purge have emptied a partition and the server is started again', async () => {
  await using world = await startEdgeWorld({ EDGE_LOG__REPACK_AFTER: '1s', EDGE_LOG__SEGMENT_MAX_AGE: '1m' })
  const client = await createTopic(world, { message_expiry: '1h' })
  await send(client, 'a', 'b')
  await eventually(() => partitionOf(world).segmentCount > 0, 'a segment')
  // It closes with its age when the next message is gathered, and is dropped because it has expired.
  world.clock.passMs(2 * HOUR_MS)
  await send(client, 'c')
  await eventually(() => partitionOf(world).logStartOffset === 2n, 'the old segment is dropped')
  // The newest one goes with a purge alone, as in Iggy.
  await client.topics.purge('plant', 'readings')
  for (const expected of [3n, 4n]) {
    await world.restart()
    const later = await world.connect()
    assert.equal(partitionOf(world).nextOffset, expected)
    await send(later, 'd')
    assert.equal((await stored(later)).at(-1)?.[0], expected)
  }
})

test('a topic of 1 MiB stays about 1 MiB, however much is sent', async () => {
  await using world = await startEdgeWorld({ EDGE_LOG__JOURNAL_FILE_SIZE: '256 KiB' })
  const client = await createTopic(world, { max_topic_size: '1 MiB', segment_size: '1 MiB' })
  for (let count = 0; count < 96; count++) {
    // Random: what compresses would not fill it.
    await client.messages.send('plant', 'readings', FIRST, [{ payload: randomBytes(64 * 1024) }])
  }
  const sizeOf = async () => Number((await client.topics.get('plant', 'readings'))?.sizeBytes)
  // At most the cap, the segment that still grows, and what lies in the journal.
  await eventually(async () => (await sizeOf()) <= 3 * 1024 * 1024, 'old segments are dropped')
  assert.equal(partitionOf(world).nextOffset, 96n)
})

for (const generation of GENERATIONS) {
  test(`${generation}: partitions take messages and polls as soon as the answer to the creation has come`, async () => {
    await using world = await startEdgeWorld()
    const client = await world.connect(generation)
    await client.streams.create('plant')
    for (let topic = 0; topic < 20; topic++) {
      const name = `topic-${topic}`
      await client.topics.create('plant', name, { partitions: 3 })
      await client.messages.send('plant', name, { kind: 'partition', partitionId: 2 }, [{ payload: new Uint8Array(1) }])
      const polled = await client.messages.poll('plant', name, { partitionId: 2, strategy: { kind: 'first' } })
      assert.equal(polled.messages.length, 1)
    }
  })
}

test('an auto-commit never moves an offset back, a store does', async () => {
  await using world = await startEdgeWorld()
  const client = await createTopic(world)
  await send(client, 'a', 'b', 'c')
  const consumer = { kind: 'consumer', id: 5 } as const
  await client.offsets.store(consumer, 'plant', 'readings', 0, 2n)
  const strategy = { kind: 'first' } as const
  await client.messages.poll('plant', 'readings', { consumer, partitionId: 0, strategy, count: 1, autoCommit: true })
  assert.equal((await client.offsets.get(consumer, 'plant', 'readings', 0))?.storedOffset, 2n)
  await client.offsets.store(consumer, 'plant', 'readings', 0, 0n)
  assert.equal((await client.offsets.get(consumer, 'plant', 'readings', 0))?.storedOffset, 0n)
})

test('an offset beyond the end is refused with 4100, over the binary protocol and HTTP', async () => {
  await using world = await startEdgeWorld()
  const client = await createTopic(world)
  const body = { consumer: { kind: 'consumer', id: 5 }, stream: 'plant', topic: 'readings', partitionId: 0 } as const
  using raw = await VsrClient.connect(world.tcpPort)
  const store = (offset: bigint) => raw.ask(CODE.storeConsumerOffset, { ...body, offset, ack: ACK_QUORUM })
  assert.equal((await store(0n)).outcome, 'status 4100', 'nothing was ever sent')
  await send(client, 'a')
  assert.equal((await store(0n)).outcome, 'ok')
  assert.equal((await store(1n)).outcome, 'status 4100')
  const refused = await world.call('PUT', '/streams/plant/topics/readings/consumer-offsets', {
    body: { consumer_id: 5, partition_id: 0, offset: 1 },
  })
  assert.equal(refused.status, 400)
  assert.match(refused.text, /"id":4100/)
})

test('stored offsets, groups and messages are there after a restart, and next goes on behind them', async () => {
  await using world = await startEdgeWorld()
  const client = await createTopic(world)
  await send(client, 'a', 'b', 'c')
  const consumer = { kind: 'consumer', id: 'worker' } as const
  await client.messages.poll('plant', 'readings', { consumer, partitionId: 0, count: 2, autoCommit: true })
  await client.groups.create('plant', 'readings', 'processors')
  await world.restart()
  const later = await world.connect()
  const polled = await later.messages.poll('plant', 'readings', { consumer, partitionId: 0 })
  assert.deepEqual(
    polled.messages.map(({ offset }) => offset),
    [2n],
  )
  assert.equal((await later.groups.get('plant', 'readings', 'processors'))?.name, 'processors')
})
