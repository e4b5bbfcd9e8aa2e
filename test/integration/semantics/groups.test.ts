/** Consumer groups: split evenly, without the dead, without those from before a restart. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Client } from '../../../src/sdk/index.ts'
import { type EdgeWorld, GENERATIONS, startEdgeWorld } from '../../support/edge-world.ts'
import { eventually } from '../../support/eventually.ts'

async function createGroup(world: EdgeWorld, partitions: number): Promise<Client> {
  const client = await world.connect()
  await client.streams.create('plant')
  await client.topics.create('plant', 'readings', { partitions })
  await client.groups.create('plant', 'readings', 'workers')
  return client
}

/** Partitions of each member, in the order in which they joined. */
async function split(client: Client): Promise<readonly (readonly number[])[]> {
  const group = await client.groups.get('plant', 'readings', 'workers')
  return (group?.members ?? []).map(({ partitions }) => partitions)
}

async function join(world: EdgeWorld, generation: 'classic' | 'vsr'): Promise<Client> {
  const member = await world.connect(generation)
  await member.groups.join('plant', 'readings', 'workers')
  return member
}

const counts = (partitions: readonly (readonly number[])[]) => partitions.map(({ length }) => length)

describe('a group is split evenly, whoever joins', () => {
  // The newest server's order: the surplus is taken from the end of who holds most.
  const JOINS: Readonly<Record<number, readonly (readonly (readonly number[])[])[]>> = {
    4: [
      [[0, 1, 2, 3]],
      [
        [0, 1],
        [3, 2],
      ],
      [[0, 1], [3], [2]],
      [[0], [3], [2], [1]],
      [[0], [3], [2], [1], []],
    ],
    10: [
      [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
      [
        [0, 1, 2, 3, 4],
        [9, 8, 7, 6, 5],
      ],
      [
        [0, 1, 2, 3],
        [9, 8, 7],
        [4, 5, 6],
      ],
    ],
  }
  for (const generation of GENERATIONS) {
    for (const [partitions, expected] of Object.entries(JOINS)) {
      test(`${generation}: ${partitions} partitions among 1 to ${expected.length} members`, async () => {
        await using world = await startEdgeWorld()
        const client = await createGroup(world, Number(partitions))
        for (const each of expected) {
          await join(world, generation)
          assert.deepEqual(await split(client), each)
        }
      })
    }

    test(`${generation}: after a leave and a lost connection every partition has one owner again`, async () => {
      await using world = await startEdgeWorld()
      const client = await createGroup(world, 10)
      const [first, second] = [await join(world, generation), await join(world, generation)]
      await join(world, generation)
      await first.groups.leave('plant', 'readings', 'workers')
      assert.deepEqual(counts(await split(client)), [5, 5])
      await second.close()
      await eventually(async () => (await split(client)).length === 1, 'the closed connection has left', 2000)
      assert.deepEqual(await split(client), [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]])
    })

    test(`${generation}: members of before a restart are gone, and who joins has all partitions`, async () => {
      await using world = await startEdgeWorld()
      await createGroup(world, 4)
      await join(world, generation)
      await join(world, generation)
      await world.restart()
      const client = await world.connect()
      assert.deepEqual(await split(client), [])
      await join(world, generation)
      assert.deepEqual(await split(client), [[0, 1, 2, 3]])
    })
  }
})

test('a group id is never given again, and a deleted group takes its offsets with it', async () => {
  await using world = await startEdgeWorld()
  const client = await createGroup(world, 1)
  await client.messages.send('plant', 'readings', { kind: 'partition', partitionId: 0 }, [
    { payload: new Uint8Array(1) },
  ])
  const member = await join(world, 'vsr')
  await member.offsets.store({ kind: 'group', id: 'workers' }, 'plant', 'readings', 0, 0n)
  await client.groups.delete('plant', 'readings', 'workers')
  const again = await client.groups.create('plant', 'readings', 'workers')
  assert.equal(again.id, 1)
  assert.equal(await client.offsets.get({ kind: 'group', id: 'workers' }, 'plant', 'readings', 0), null)
})

test('partitions that come and go are dealt out anew', async () => {
  await using world = await startEdgeWorld()
  const client = await createGroup(world, 2)
  await join(world, 'vsr')
  await join(world, 'vsr')
  await client.topics.addPartitions('plant', 'readings', 4)
  assert.deepEqual(counts(await split(client)), [3, 3])
  await client.topics.removePartitions('plant', 'readings', 5)
  assert.deepEqual((await split(client)).flat(), [0])
})
