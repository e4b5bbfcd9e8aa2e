/** What a route of an edge keeps from being dropped. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../../../src/sdk/index.ts'
import { type EdgeWorld, startEdgeWorld } from '../../support/edge-world.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'

const SMALL = {
  EDGE_LOG__JOURNAL_FILE_SIZE: '256 KiB',
  EDGE_LOG__SEGMENT_SIZE: '64 KiB',
  EDGE_LOG__REPACK_AFTER: '1 s',
}
const MESSAGES = 40
const PAYLOAD_BYTES = 10_000

/** Fills a topic with more than two segments. */
async function fill(world: EdgeWorld): Promise<Client> {
  const client = await world.connect()
  await client.streams.create('sensors')
  await client.topics.create('sensors', 'climate')
  const at = { kind: 'partition', partitionId: 0 } as const
  for (let number = 0; number < MESSAGES; number++) {
    const payload = crypto.getRandomValues(new Uint8Array(PAYLOAD_BYTES))
    await client.messages.send('sensors', 'climate', at, [{ payload }])
  }
  const segmentsOf = async () => (await client.topics.get('sensors', 'climate'))?.partitions[0]?.segmentsCount ?? 0
  await eventually(async () => (await segmentsOf()) > 2, 'packed')
  return client
}

async function firstOffset(client: Client): Promise<bigint | undefined> {
  const strategy = { kind: 'first' } as const
  const { messages } = await client.messages.poll('sensors', 'climate', { partitionId: 0, strategy, count: 1 })
  return messages[0]?.offset
}

test('what a route has not sent is kept, also when its upstream was never reached', async () => {
  await using world = await startEdgeWorld({
    ...SMALL,
    EDGE_SYNC__UPSTREAMS__0__NAME: 'central',
    EDGE_SYNC__UPSTREAMS__0__URL: `iggy://iggy:iggy@127.0.0.1:${await freePort()}`,
    EDGE_SYNC__ROUTES__0__FROM: 'sensors/*',
    EDGE_SYNC__ROUTES__0__TO: 'central:site-7/{topic}',
  })
  const client = await fill(world)
  await client.topics.deleteSegments('sensors', 'climate', 0, 1)
  assert.equal(await firstOffset(client), 0n)
})

test('without a route nothing waits', async () => {
  await using world = await startEdgeWorld(SMALL)
  const client = await fill(world)
  await client.topics.deleteSegments('sensors', 'climate', 0, 1)
  assert.ok(((await firstOffset(client)) ?? 0n) > 0n)
})
