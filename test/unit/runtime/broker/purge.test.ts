/** A purge of a topic of many partitions: what the log puts on record in one write is asked for at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { createBrokerWorld } from '../../../support/broker-world.ts'

test('a purge asks all partitions at once, and one that refuses holds up no other', async () => {
  await using world = await createBrokerWorld()
  await world.broker.createStream(world.root, 's')
  await world.broker.createTopic(world.root, 's', { name: 't', partitionCount: 4, options: {} })
  const partitions = world.log.catalog.topic(0, 't')?.partitions ?? []
  const asked: number[] = []
  const ended = Promise.withResolvers<void>()
  for (const partition of partitions)
    partition.purge = async () => {
      asked.push(partition.partitionId)
      await ended.promise
      if (partition.partitionId === 0) throw new EdgeError('EDGE_IO', 'EIO')
    }
  const key = partitions[1]?.key ?? 0
  world.log.metadata.setOffset(key, 'consumer', 1, 0n)
  const purged = world.broker.purgeTopic(world.root, 's', 't')
  await Promise.resolve()
  assert.deepEqual(asked, [0, 1, 2, 3])
  ended.resolve()
  await assert.rejects(purged, { code: 'EDGE_IO' })
  assert.deepEqual([...world.log.metadata.offsetsOf(key)], [])
})
