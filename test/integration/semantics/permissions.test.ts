/** Rights: checked on every way in, before anything is looked up that could tell which names exist. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CODE, type CommandCode } from '../../../src/sdk/wire/codes.ts'
import { encodeRecords } from '../../../src/sdk/wire/messages.ts'
import { NO_OPTIONS } from '../../../src/sdk/wire/options.ts'
import type { Permissions } from '../../../src/sdk/wire/permissions.ts'
import { basic, type EdgeWorld, startEdgeWorld } from '../../support/edge-world.ts'
import { type BodyOf, ClassicClient, VsrClient } from '../../support/protocol-clients.ts'

const NOBODY: Permissions = {
  manageServers: false,
  readServers: false,
  manageUsers: false,
  readUsers: false,
  manageStreams: false,
  readStreams: false,
  manageTopics: false,
  readTopics: false,
  pollMessages: false,
  sendMessages: false,
  streams: [],
}

interface Names {
  readonly stream: string
  readonly topic: string
  readonly group: string
  readonly user: string
}

const THERE: Names = { stream: 'plant', topic: 'readings', group: 'workers', user: 'other' }
const MISSING: Names = { stream: 'none', topic: 'none', group: 'none', user: 'none' }

/** Every command that names something, as one asks about it. */
function requestsOn({ stream, topic, group, user }: Names): readonly { code: CommandCode; body: unknown }[] {
  const consumer = { kind: 'consumer', id: 1 }
  const batch = encodeRecords([{ id: 1n, payload: new Uint8Array(1), originUs: 1n }])
  const partitionId = 0
  return [
    { code: CODE.getStream, body: { stream } },
    { code: CODE.updateStream, body: { stream, name: 'x', options: NO_OPTIONS } },
    { code: CODE.deleteStream, body: { stream } },
    { code: CODE.purgeStream, body: { stream } },
    { code: CODE.createStream, body: { name: stream, options: NO_OPTIONS } },
    { code: CODE.getTopics, body: { stream } },
    { code: CODE.getTopic, body: { stream, topic } },
    {
      code: CODE.createTopic,
      body: { stream, name: topic, partitionsCount: 1, replicationFactor: 1, options: NO_OPTIONS },
    },
    { code: CODE.updateTopic, body: { stream, topic, name: 'x', replicationFactor: 1, options: NO_OPTIONS } },
    { code: CODE.deleteTopic, body: { stream, topic } },
    { code: CODE.purgeTopic, body: { stream, topic } },
    { code: CODE.createPartitions, body: { stream, topic, count: 1 } },
    { code: CODE.deletePartitions, body: { stream, topic, count: 1 } },
    { code: CODE.deleteSegments, body: { stream, topic, partitionId, segmentsCount: 1 } },
    {
      code: CODE.pollMessages,
      body: { consumer, stream, topic, partitionId, strategy: { kind: 'first' }, count: 1, autoCommit: false },
    },
    { code: CODE.sendMessages, body: { stream, topic, partitioning: { kind: 'partition', partitionId }, batch } },
    { code: CODE.flushUnsavedBuffer, body: { stream, topic, partitionId, isFsync: true } },
    { code: CODE.getConsumerOffset, body: { consumer, stream, topic, partitionId } },
    { code: CODE.storeConsumerOffset, body: { consumer, stream, topic, partitionId, offset: 0n, ack: 1 } },
    { code: CODE.deleteConsumerOffset, body: { consumer, stream, topic, partitionId, ack: 1 } },
    { code: CODE.getConsumerGroups, body: { stream, topic } },
    { code: CODE.getConsumerGroup, body: { stream, topic, group } },
    { code: CODE.createConsumerGroup, body: { stream, topic, name: group } },
    { code: CODE.deleteConsumerGroup, body: { stream, topic, group } },
    { code: CODE.joinConsumerGroup, body: { stream, topic, group } },
    { code: CODE.leaveConsumerGroup, body: { stream, topic, group } },
    { code: CODE.getUser, body: { user } },
    { code: CODE.deleteUser, body: { user } },
    { code: CODE.updateUser, body: { user, username: 'xyz', status: null, options: NO_OPTIONS } },
    { code: CODE.updatePermissions, body: { user, permissions: null } },
    { code: CODE.changePassword, body: { user, currentPassword: 'secret', newPassword: 'secret2' } },
    {
      code: CODE.createUser,
      body: { username: user, password: 'secret', status: 1, permissions: null, options: NO_OPTIONS },
    },
    { code: CODE.getStats, body: null },
    { code: CODE.getClients, body: null },
    { code: CODE.getClient, body: { clientId: 1 } },
    { code: CODE.getSnapshot, body: { compression: 1, types: [100] } },
  ]
}

/** The streams and users that are there, and a user `name` who may do what `permissions` say. */
async function furnish(world: EdgeWorld, name: string, permissions: Permissions | null): Promise<void> {
  const root = await world.connect()
  await root.streams.create('plant')
  await root.topics.create('plant', 'readings')
  await root.groups.create('plant', 'readings', 'workers')
  await root.users.create({ username: 'other', password: 'secret' })
  await root.users.create({ username: name, password: 'secret', ...(permissions === null ? {} : { permissions }) })
}

test('who has no rights is refused alike for what is there and what is not, by every command of both generations', async () => {
  await using world = await startEdgeWorld()
  await furnish(world, 'guest', NOBODY)
  using classic = await ClassicClient.connect(world.tcpPort, ['guest', 'secret'])
  using vsr = await VsrClient.connect(world.tcpPort, ['guest', 'secret'])
  for (const names of [THERE, MISSING]) {
    for (const { code, body } of requestsOn(names)) {
      const where = `command ${code} on ${names.stream}`
      assert.equal((await classic.ask(code, body as BodyOf<typeof code>)).outcome, 'status 41', `classic ${where}`)
      const { outcome } = await vsr.ask(code, body as BodyOf<typeof code>)
      // The newest server has no flush, whoever asks.
      const expected = code === CODE.flushUnsavedBuffer ? /^status 5$/ : /^(status|result) 41$/
      assert.match(outcome, expected, `vsr ${where}`)
    }
  }
})

test('who may read one topic learns nothing of its neighbours', async () => {
  await using world = await startEdgeWorld()
  const topics = [{ topicId: 0, manageTopic: false, readTopic: true, pollMessages: true, sendMessages: false }]
  const noStream = {
    manageStream: false,
    readStream: false,
    manageTopics: false,
    readTopics: false,
    pollMessages: false,
    sendMessages: false,
  }
  await furnish(world, 'reader', { ...NOBODY, streams: [{ streamId: 0, ...noStream, topics }] })
  const root = await world.connect()
  await root.topics.create('plant', 'secret')
  await root.streams.create('hidden')
  using client = await VsrClient.connect(world.tcpPort, ['reader', 'secret'])
  const getTopic = async (stream: string, topic: string) => (await client.ask(CODE.getTopic, { stream, topic })).outcome
  assert.equal(await getTopic('plant', 'readings'), 'ok')
  for (const [stream, topic] of [
    ['plant', 'secret'],
    ['plant', 'none'],
    ['hidden', 'none'],
    ['none', 'none'],
  ] as const) {
    assert.equal(await getTopic(stream, topic), 'status 41', `${stream}/${topic}`)
  }
})

test('over HTTP the answers for what is there and what is not are the same text', async () => {
  await using world = await startEdgeWorld()
  await furnish(world, 'guest', null)
  const authorization = basic('guest', 'secret')
  const routes = ({ stream, topic, group, user }: Names): readonly (readonly [string, string, unknown?])[] => [
    ['GET', `/streams/${stream}`],
    ['DELETE', `/streams/${stream}`],
    ['GET', `/streams/${stream}/topics`],
    ['GET', `/streams/${stream}/topics/${topic}`],
    ['DELETE', `/streams/${stream}/topics/${topic}/purge`],
    ['POST', `/streams/${stream}/topics/${topic}/partitions`, { partitions_count: 1 }],
    ['GET', `/streams/${stream}/topics/${topic}/messages`],
    ['GET', `/streams/${stream}/topics/${topic}/messages?consumer_group=${group}`],
    [
      'POST',
      `/streams/${stream}/topics/${topic}/messages`,
      { partitioning: { kind: 'balanced', value: '' }, messages: [{ payload: 'aGVsbG8=' }] },
    ],
    ['GET', `/streams/${stream}/topics/${topic}/consumer-offsets`],
    ['PUT', `/streams/${stream}/topics/${topic}/consumer-offsets`, { partition_id: 0, offset: 0 }],
    ['GET', `/streams/${stream}/topics/${topic}/consumer-groups/${group}`],
    ['DELETE', `/streams/${stream}/topics/${topic}/consumer-groups/${group}`],
    ['GET', `/users/${user}`],
    ['DELETE', `/users/${user}`],
  ]
  const missing = routes(MISSING)
  for (const [index, [method, path, body]] of routes(THERE).entries()) {
    const there = await world.call(method, path, { authorization, body })
    const absent = await world.call(method, missing[index]?.[1] ?? '', { authorization, body })
    assert.equal(there.status, 403, `${method} ${path}`)
    assert.deepEqual([absent.status, absent.text], [there.status, there.text], `${method} ${path}`)
  }
})
