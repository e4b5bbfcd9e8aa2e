/** Messages sent twice, on a topic that asks for it: stored once, answered as sent, without a gap, also after a restart. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../../../src/sdk/index.ts'
import { type EdgeWorld, GENERATIONS, startEdgeWorld } from '../../support/edge-world.ts'

const ALWAYS = { EDGE_MESSAGE_DEDUPLICATION__ENABLED: 'true' }
const FIRST = { kind: 'partition', partitionId: 0 } as const

const send = (client: Client, ...ids: readonly bigint[]) =>
  client.messages.send(
    'plant',
    'readings',
    FIRST,
    ids.map((id) => ({ id, payload: new TextEncoder().encode(`reading ${id}`) })),
  )

/** Offset and id of all that is stored. */
async function stored(client: Client): Promise<readonly (readonly [bigint, bigint])[]> {
  const polled = await client.messages.poll('plant', 'readings', { partitionId: 0, strategy: { kind: 'first' } })
  return polled.messages.map(({ offset, id }) => [offset, id])
}

async function createTopic(world: EdgeWorld): Promise<void> {
  const client = await world.connect()
  await client.streams.create('plant')
  await client.topics.create('plant', 'readings')
}

for (const generation of GENERATIONS) {
  test(`${generation}: a batch of duplicates alone is answered as sent and stored once, and the server goes on`, async () => {
    await using world = await startEdgeWorld(ALWAYS)
    await createTopic(world)
    const client = await world.connect(generation)
    await send(client, 7n, 8n)
    const again = await send(client, 7n, 8n)
    assert.equal(again?.baseOffset, generation === 'vsr' ? 0n : undefined)
    await send(client, 9n)
    assert.deepEqual(await stored(client), [
      [0n, 7n],
      [1n, 8n],
      [2n, 9n],
    ])
  })

  test(`${generation}: of a batch with some duplicates the others are all stored, without a gap in the offsets`, async () => {
    await using world = await startEdgeWorld(ALWAYS)
    await createTopic(world)
    const client = await world.connect(generation)
    await send(client, 1n, 2n, 3n)
    await send(client, 2n, 4n, 3n, 5n, 1n, 6n)
    assert.deepEqual(await stored(client), [
      [0n, 1n],
      [1n, 2n],
      [2n, 3n],
      [3n, 4n],
      [4n, 5n],
      [5n, 6n],
    ])
  })
}

test('a duplicate is told from before a restart, in a topic that was made while the server ran', async () => {
  await using world = await startEdgeWorld()
  const client = await world.connect()
  await client.streams.create('plant')
  await client.topics.create('plant', 'readings', { options: { dedup_max_entries: 100, dedup_expiry: '1h' } })
  await send(client, 1n, 2n)
  await world.restart()
  const later = await world.connect()
  assert.equal((await send(later, 2n))?.baseOffset, 1n)
  await send(later, 2n, 3n)
  assert.deepEqual(await stored(later), [
    [0n, 1n],
    [1n, 2n],
    [2n, 3n],
  ])
})

test('over HTTP a duplicate is answered 201 with the place of the first', async () => {
  await using world = await startEdgeWorld(ALWAYS)
  await createTopic(world)
  const body = { partitioning: { kind: 'balanced', value: '' }, messages: [{ id: 7, payload: 'aGVsbG8=' }] }
  const first = await world.call('POST', '/streams/plant/topics/readings/messages', { body })
  const second = await world.call('POST', '/streams/plant/topics/readings/messages', { body })
  assert.deepEqual([first.status, second.status], [201, 201])
  assert.deepEqual(second.body, first.body)
})

test('the window is bounded and ends with its time: after that an id is new', async () => {
  await using world = await startEdgeWorld()
  const client = await world.connect()
  await client.streams.create('plant')
  await client.topics.create('plant', 'readings', { options: { dedup_max_entries: 2, dedup_expiry: '1h' } })
  await send(client, 1n)
  await send(client, 2n)
  await send(client, 3n)
  await send(client, 1n)
  assert.deepEqual(
    (await stored(client)).map(([, id]) => id),
    [1n, 2n, 3n, 1n],
  )
  world.clock.passMs(3_600_000)
  await send(client, 1n)
  assert.equal((await stored(client)).length, 5)
})

test('without the switch both are stored, as from Iggy', async () => {
  await using world = await startEdgeWorld()
  await createTopic(world)
  const client = await world.connect()
  await send(client, 7n)
  await send(client, 7n)
  assert.equal((await stored(client)).length, 2)
})
