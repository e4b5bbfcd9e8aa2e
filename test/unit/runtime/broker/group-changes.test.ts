/** Consumer groups while what they belong to changes, or fails to. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { ALL_PERMISSIONS } from '../../../../src/runtime/broker/permissions.ts'
import { type BrokerWorld, batchOf, createBrokerWorld } from '../../../support/broker-world.ts'

const GROUP = { kind: 'group', id: 'g' } as const

/** A topic of four partitions, and a group on it. */
async function withGroup(): Promise<BrokerWorld> {
  const world = await createBrokerWorld()
  await world.broker.createStream(world.root, 's')
  await world.broker.createTopic(world.root, 's', { name: 't', partitionCount: 4, options: {} })
  await world.broker.createGroup(world.root, 's', 't', 'g')
  return world
}

/** One message in the first partition. */
function sent({ broker, root }: BrokerWorld): Promise<void> {
  return new Promise((resolve, reject) => {
    const settled = (error: EdgeError | null): void => (error === null ? resolve() : reject(error))
    broker.send(root, 's', 't', { kind: 'partition', partitionId: 0 }, batchOf([0n, 'a']), { settled })
  })
}

const splitOf = ({ broker, root }: BrokerWorld) =>
  broker.group(root, 's', 't', 'g')?.members.map(({ partitions }) => partitions)

test('groups of a new topic have no members that joined its predecessor while that was being deleted', async () => {
  await using world = await withGroup()
  const { broker, root, log } = world
  const member = world.connect()
  const { deleteTopic } = log.catalog
  log.catalog.deleteTopic = (...place) => {
    broker.joinGroup(member, 's', 't', 'g')
    return deleteTopic.call(log.catalog, ...place)
  }
  await broker.deleteTopic(root, 's', 't')
  await broker.createTopic(root, 's', { name: 't', partitionCount: 4, options: {} })
  await broker.createGroup(root, 's', 't', 'g')
  assert.deepEqual(splitOf(world), [])
  assert.deepEqual(broker.me(member).groups, [])
})

test('groups of a topic or stream that cannot be deleted keep their members', async () => {
  await using world = await withGroup()
  const { broker, root, log } = world
  broker.joinGroup(world.connect(), 's', 't', 'g')
  log.catalog.deleteTopic = () => Promise.reject(new EdgeError('EDGE_IO', 'no'))
  log.catalog.deleteStream = () => Promise.reject(new EdgeError('EDGE_IO', 'no'))
  await assert.rejects(broker.deleteTopic(root, 's', 't'), { code: 'EDGE_IO' })
  await assert.rejects(broker.deleteStream(root, 's'), { code: 'EDGE_IO' })
  assert.deepEqual(splitOf(world), [[0, 1, 2, 3]])
})

test('a group that cannot be deleted keeps its members and offsets', async () => {
  await using world = await withGroup()
  const { broker, root, log } = world
  await sent(world)
  broker.joinGroup(world.connect(), 's', 't', 'g')
  await broker.storeOffset(root, GROUP, 's', 't', 0, 0n)
  log.metadata.deleteGroup = () => Promise.reject(new EdgeError('EDGE_DISK_FULL', 'no room'))
  await assert.rejects(broker.deleteGroup(root, 's', 't', 'g'), { code: 'EDGE_DISK_FULL' })
  assert.deepEqual(splitOf(world), [[0, 1, 2, 3]])
  assert.equal(broker.offset(root, GROUP, 's', 't', 0)?.storedOffset, 0n)
})

const DELETIONS: Record<string, (world: BrokerWorld) => Promise<void>> = {
  group: ({ broker, root }) => broker.deleteGroup(root, 's', 't', 'g'),
  partition: ({ broker, root }) => broker.deletePartitions(root, 's', 't', 4),
  topic: ({ broker, root }) => broker.deleteTopic(root, 's', 't'),
}

for (const [what, deletion] of Object.entries(DELETIONS)) {
  test(`a poll that still reads when the ${what} is deleted leaves no offset behind`, async () => {
    await using world = await withGroup()
    const { broker, root, log } = world
    await sent(world)
    const [partition] = broker.topic(root, 's', 't')?.partitions ?? []
    assert.ok(partition)
    const read = partition.read.bind(partition)
    const gone = Promise.withResolvers<void>()
    partition.read = (request) => gone.promise.then(() => read(request))
    const request = { consumer: GROUP, stream: 's', topic: 't', partitionId: 0, count: 1, autoCommit: true }
    const polled = broker.poll(root, { ...request, strategy: { kind: 'first' } })
    await deletion(world)
    gone.resolve()
    assert.equal((await polled).messageCount, 1)
    // It would hold back retention, or stay for ever.
    assert.deepEqual([...log.metadata.offsetsOf(partition.key)], [])
  })
}

test('groups deal out what is left also where the removal of partitions failed at its end', async () => {
  await using world = await withGroup()
  const { broker, root, log } = world
  broker.joinGroup(world.connect(), 's', 't', 'g')
  const { removePartitions } = log.catalog
  log.catalog.removePartitions = async (...change) => {
    await removePartitions.call(log.catalog, ...change)
    throw new EdgeError('EDGE_IO', 'the folder could not be synced')
  }
  await assert.rejects(broker.deletePartitions(root, 's', 't', 3), { code: 'EDGE_IO' })
  assert.deepEqual(splitOf(world), [[0]])
})

/** Two members, the second one of a user with the rights given. */
async function withUsersMember(world: BrokerWorld) {
  const { broker, root } = world
  const user = { username: 'reader', password: 'secret', isActive: true, permissions: ALL_PERMISSIONS }
  const { id } = await broker.createUser(root, user)
  broker.joinGroup(world.connect(), 's', 't', 'g')
  const member = world.connect(id)
  broker.joinGroup(member, 's', 't', 'g')
  const poll = (partitionId: number | null) =>
    broker.poll(member, {
      consumer: GROUP,
      stream: 's',
      topic: 't',
      partitionId,
      strategy: { kind: 'next' },
      count: 1,
      autoCommit: true,
    })
  assert.deepEqual(splitOf(world), [
    [0, 1],
    [3, 2],
  ])
  return { member, poll, userId: id }
}

const REVOCATIONS: Readonly<Record<string, (world: BrokerWorld, userId: number, isAllowed: boolean) => Promise<void>>> =
  {
    'without the right to poll': ({ broker, root }, userId, isAllowed) =>
      broker.setPermissions(root, userId, isAllowed ? ALL_PERMISSIONS : null),
    'of a user who is not active': ({ broker, root }, userId, isActive) =>
      broker.updateUser(root, userId, { isActive }),
  }
for (const [which, change] of Object.entries(REVOCATIONS)) {
  test(`a member ${which} holds no partitions, and has some again once it may poll`, async () => {
    await using world = await withGroup()
    const { poll, userId } = await withUsersMember(world)
    await change(world, userId, false)
    assert.deepEqual(splitOf(world), [[0, 1, 2, 3]])
    assert.throws(() => poll(2), { code: 'EDGE_FORBIDDEN' })
    assert.deepEqual(splitOf(world), [[0, 1, 2, 3]])

    await change(world, userId, true)
    await poll(null)
    assert.deepEqual(splitOf(world), [
      [0, 1],
      [3, 2],
    ])
  })
}

test('a member that asks for its partitions has some again once it may poll, and leaves as any other', async () => {
  await using world = await withGroup()
  const { broker, root } = world
  const { member, userId } = await withUsersMember(world)
  await broker.setPermissions(root, userId, null)
  await broker.setPermissions(root, userId, ALL_PERMISSIONS)
  assert.deepEqual(broker.syncGroup(member, 's', 't', 'g')?.partitions, [3, 2])
  await broker.setPermissions(root, userId, null)
  await broker.setPermissions(root, userId, ALL_PERMISSIONS)
  await broker.leaveGroup(member, 's', 't', 'g')
  assert.throws(() => broker.leaveGroup(member, 's', 't', 'g'), { code: 'EDGE_MEMBER_NOT_FOUND' })
  assert.equal(broker.syncGroup(member, 's', 't', 'g'), undefined)
  assert.deepEqual(splitOf(world), [[0, 1, 2, 3]])
})
