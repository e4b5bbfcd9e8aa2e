/** Changes that wait while what they name is deleted: another topic or stream has its number by then. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Caller } from '../../../src/runtime/broker/index.ts'
import { batchOf } from '../../support/broker-world.ts'
import { type EdgeWorld, startEdgeWorld } from '../../support/edge-world.ts'

const ROOT: Caller = { dialect: 'classic', userId: 0, client: null }

const spec = (name: string, partitionCount: number) => ({ name, partitionCount, options: {} })

/** One message of `text` in the topic's first partition, acknowledged. */
function send({ edge }: EdgeWorld, stream: string, topic: string, id: bigint, text = 'x'): Promise<void> {
  return new Promise((resolve, reject) => {
    const settled = (error: Error | null) => (error === null ? resolve() : reject(error))
    edge.broker.send(ROOT, stream, topic, { kind: 'partition', partitionId: 0 }, batchOf([id, text]), { settled })
  })
}

const countIn = ({ edge }: EdgeWorld, stream: string, topic: string) =>
  edge.broker.topic(ROOT, stream, topic)?.partitions.map(({ messageCount }) => messageCount)

test('the second of two deletes spares the topic that was made between them, its messages and its members', async () => {
  await using world = await startEdgeWorld()
  const { broker } = world.edge
  await broker.createStream(ROOT, 's')
  await broker.createTopic(ROOT, 's', spec('t', 1))
  // Holds up what waits behind it, as a slow disk does.
  const slow = broker.createTopic(ROOT, 's', spec('slow', 300))
  const first = broker.deleteTopic(ROOT, 's', 't')
  const made = broker.createTopic(ROOT, 's', spec('u', 3))
  const more = broker.createTopic(ROOT, 's', spec('slow, too', 300))
  const others = [broker.deleteTopic(ROOT, 's', 't'), broker.deletePartitions(ROOT, 's', 't', 1)]
  const ended = Promise.allSettled(others)
  await Promise.all([slow, first])
  assert.equal((await made).id, 0)
  await send(world, 's', 'u', 1n)
  await broker.createGroup(ROOT, 's', 'u', 'g')
  const client = broker.openClient('tcp', '127.0.0.1:9', 'classic')
  broker.joinGroup({ ...ROOT, client }, 's', 'u', 'g')
  await more
  for (const end of await ended) assert.equal(end.status === 'rejected' && end.reason.code, 'EDGE_TOPIC_NOT_FOUND')
  assert.deepEqual(countIn(world, 's', 'u'), [1, 0, 0])
  assert.deepEqual(broker.group(ROOT, 's', 'u', 'g')?.members, [{ id: 0, clientId: client.id, partitions: [0, 1, 2] }])
})

test('so does the second of two deletes of a stream, and what was asked for within the first', async () => {
  await using world = await startEdgeWorld()
  const { broker } = world.edge
  await broker.createStream(ROOT, 'old')
  const ends = await Promise.allSettled([
    broker.deleteStream(ROOT, 'old'),
    broker.createStream(ROOT, 'new'),
    broker.deleteStream(ROOT, 'old'),
    broker.renameStream(ROOT, 'old', 'other'),
    broker.createTopic(ROOT, 'old', spec('t', 1)),
  ])
  assert.deepEqual(
    ends.map((end) => end.status === 'rejected' && end.reason.code),
    [false, false, 'EDGE_STREAM_NOT_FOUND', 'EDGE_STREAM_NOT_FOUND', 'EDGE_STREAM_NOT_FOUND'],
  )
  assert.deepEqual(
    broker.streams(ROOT).map(({ id, name, topics }) => [id, name, topics.size]),
    [[0, 'new', 0]],
  )
})

test('an update that reads messages back first is not made to the topic that has the number by then', async () => {
  await using world = await startEdgeWorld()
  const { broker } = world.edge
  await broker.createStream(ROOT, 's')
  await broker.createTopic(ROOT, 's', spec('t', 1))
  await send(world, 's', 't', 1n)
  const dedupWindow = { maxEntries: 100, expiryUs: 3_600_000_000n }
  const update = broker.updateTopic(ROOT, 's', 't', { name: 'other', options: { dedupWindow } })
  const refused = assert.rejects(update, { code: 'EDGE_TOPIC_NOT_FOUND' })
  await Promise.all([broker.deleteTopic(ROOT, 's', 't'), broker.createTopic(ROOT, 's', spec('u', 1)), refused])
  assert.equal(broker.topic(ROOT, 's', 'u')?.options.dedupWindow, null)
})

test('nor is one that waits for another update', async () => {
  await using world = await startEdgeWorld()
  const { broker } = world.edge
  await broker.createStream(ROOT, 's')
  await broker.createTopic(ROOT, 's', spec('t', 300))
  await broker.createTopic(ROOT, 's', spec('slow', 300))
  await send(world, 's', 'slow', 1n)
  const dedupWindow = { maxEntries: 100, expiryUs: 3_600_000_000n }
  const slow = broker.updateTopic(ROOT, 's', 'slow', { options: { dedupWindow } })
  const update = broker.updateTopic(ROOT, 's', 't', { options: { messageExpiryUs: 1_000_000n } })
  const refused = assert.rejects(update, { code: 'EDGE_TOPIC_NOT_FOUND' })
  await Promise.all([broker.deleteTopic(ROOT, 's', 't'), broker.createTopic(ROOT, 's', spec('t', 1)), slow, refused])
  assert.equal(broker.topic(ROOT, 's', 't')?.options.messageExpiryUs, null)
})

test('a purge of a stream leaves alone what is made while it goes on', async () => {
  await using world = await startEdgeWorld()
  const { broker } = world.edge
  await broker.createStream(ROOT, 's')
  await broker.createTopic(ROOT, 's', spec('t', 4))
  await send(world, 's', 't', 1n)
  const purged = broker.purgeStream(ROOT, 's')
  await broker.createTopic(ROOT, 's', spec('u', 1))
  await send(world, 's', 'u', 2n)
  await purged
  assert.deepEqual([countIn(world, 's', 't'), countIn(world, 's', 'u')], [[0, 0, 0, 0], [1]])
})
