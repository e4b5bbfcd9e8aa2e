import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { silentLogger } from '../../../../src/logger.ts'
import type { PollResult } from '../../../../src/runtime/broker/index.ts'
import { rootCredentialsFrom } from '../../../../src/runtime/broker/index.ts'
import { ALL_PERMISSIONS } from '../../../../src/runtime/broker/permissions.ts'
import { HEARTBEAT_SETTINGS } from '../../../../src/runtime/broker/settings.ts'
import { decodeRecords } from '../../../../src/sdk/wire/messages.ts'
import { defaultsOf } from '../../../../src/setting.ts'
import { type BrokerWorld, batchOf, createBrokerWorld } from '../../../support/broker-world.ts'

const NONE = {
  ...ALL_PERMISSIONS,
  ...Object.fromEntries(Object.keys(ALL_PERMISSIONS).map((key) => [key, false])),
  streams: [],
}
const BALANCED = { kind: 'balanced' } as const
const SINGLE = { kind: 'consumer', id: 'one' } as const
const GROUP = { kind: 'group', id: 'g' } as const

async function withTopic(
  options: Parameters<typeof createBrokerWorld>[0] = {},
  partitionCount = 4,
): Promise<BrokerWorld> {
  const world = await createBrokerWorld(options)
  await world.broker.createStream(world.root, 's')
  await world.broker.createTopic(world.root, 's', { name: 't', partitionCount, options: {} })
  return world
}

/** Sends and waits for the promise. */
function send({ broker, root }: BrokerWorld, batch: Parameters<typeof broker.send>[4], partitionId?: number) {
  const partitioning = partitionId === undefined ? BALANCED : ({ kind: 'partition', partitionId } as const)
  return new Promise<ReturnType<typeof broker.send>>((resolve, reject) => {
    const result = broker.send(root, 's', 't', partitioning, batch, {
      settled: (error) => (error === null ? resolve(result) : reject(error)),
    })
  })
}

const poll = (world: BrokerWorld, request: object = {}, caller = world.root) =>
  world.broker.poll(caller, {
    consumer: SINGLE,
    stream: 's',
    topic: 't',
    partitionId: 0,
    strategy: { kind: 'next' },
    count: 10,
    autoCommit: false,
    ...request,
  })

const textsOf = async (result: PollResult | Promise<PollResult>) =>
  (await result).batches.flatMap((batch) =>
    decodeRecords(batch).map(({ payloadView }) => Buffer.from(payloadView).toString()),
  )

describe('the root user', () => {
  test('is made once, with the password given', async () => {
    await using world = await createBrokerWorld()
    assert.equal(await world.broker.authenticate('iggy', 'iggy'), 0)
    await assert.rejects(world.broker.authenticate('iggy', 'other'), { code: 'EDGE_CREDENTIALS_INVALID' })
    assert.equal(world.broker.generatedRootPassword, null)
  })

  test('shows in the log when a password is tried, and never what was typed', async () => {
    const lines: unknown[] = []
    const logger = { ...silentLogger, warn: (...line: readonly unknown[]) => void lines.push(line) }
    await using world = await createBrokerWorld({ logger })
    for (const name of ['iggy', 'hunter2'])
      await assert.rejects(world.broker.authenticate(name, 'hunter2'), { code: 'EDGE_CREDENTIALS_INVALID' })
    await world.broker.authenticate('iggy', 'iggy')
    assert.deepEqual(lines, [
      ['broker.login.refused', { user_id: 0 }],
      ['broker.login.refused', { user_id: null }],
    ])
  })

  test('gets a password that is shown once when none is given', async () => {
    const world = await createBrokerWorld({ root: { username: 'admin', password: null } })
    const password = world.broker.generatedRootPassword
    assert.ok(password !== null && password.length >= 20)
    await using again = await world.restart()
    assert.equal(again.broker.generatedRootPassword, null)
    assert.equal(await again.broker.authenticate('admin', password), 0)
  })

  test('takes both values from the environment or neither', () => {
    assert.deepEqual(rootCredentialsFrom({ username: 'a', password: 'b' }, false), { username: 'a', password: 'b' })
    assert.deepEqual(rootCredentialsFrom({ username: undefined, password: undefined }, true), {
      username: 'iggy',
      password: 'iggy',
    })
    assert.deepEqual(rootCredentialsFrom({ username: undefined, password: undefined }, false), {
      username: 'iggy',
      password: null,
    })
    assert.throws(() => rootCredentialsFrom({ username: 'a', password: undefined }, true), /without IGGY_ROOT_PASSWORD/)
  })

  test('cannot be deleted, deactivated or stripped of its rights', async () => {
    await using world = await createBrokerWorld()
    await assert.rejects(world.broker.deleteUser(world.root, 0), { code: 'EDGE_ROOT_PROTECTED' })
    await assert.rejects(world.broker.updateUser(world.root, 0, { isActive: false }), { code: 'EDGE_ROOT_PROTECTED' })
    await assert.rejects(world.broker.setPermissions(world.root, 0, null), { code: 'EDGE_ROOT_PERMISSIONS_PROTECTED' })
  })
})

describe('users', () => {
  const SPEC = { username: 'reader', password: 'secret', isActive: true, permissions: { ...NONE, readTopics: true } }

  test('act within their rights, and nothing tells them of what they may not see', async () => {
    await using world = await withTopic()
    const user = await world.broker.createUser(world.root, SPEC)
    const caller = world.connect(user.id)
    await textsOf(poll(world, {}, caller))
    for (const stream of ['s', 'missing']) {
      assert.throws(() => world.broker.stream(caller, stream), { code: 'EDGE_FORBIDDEN' })
      await assert.rejects(world.broker.deleteStream(caller, stream), { code: 'EDGE_FORBIDDEN' })
    }
    assert.throws(() => world.broker.send(caller, 's', 't', BALANCED, batchOf([1n, 'a']), { settled() {} }), {
      code: 'EDGE_FORBIDDEN',
    })
    assert.throws(() => world.broker.user(caller, 'nobody'), { code: 'EDGE_FORBIDDEN' })
    assert.equal(world.broker.user(caller, 'reader')?.id, user.id)
  })

  test('get new rights with the next request', async () => {
    await using world = await withTopic()
    const user = await world.broker.createUser(world.root, SPEC)
    const caller = world.connect(user.id)
    await world.broker.setPermissions(world.root, user.id, { ...NONE, readStreams: true })
    assert.equal(world.broker.stream(caller, 's')?.name, 's')
    await world.broker.updateUser(world.root, user.id, { isActive: false })
    assert.throws(() => world.broker.stream(caller, 's'), { code: 'EDGE_FORBIDDEN' })
    await assert.rejects(world.broker.authenticate('reader', 'secret'), { code: 'EDGE_USER_INACTIVE' })
  })

  test('that are deleted are nobody, on living connections too', async () => {
    await using world = await withTopic()
    const user = await world.broker.createUser(world.root, SPEC)
    const caller = world.connect(user.id)
    let reason = ''
    caller.client.onEvicted = (why) => {
      reason = why
    }
    await world.broker.deleteUser(world.root, 'reader')
    assert.equal(reason, 'user-deleted')
    assert.throws(() => world.broker.me(caller), { code: 'EDGE_UNAUTHENTICATED' })
    const next = await world.broker.createUser(world.root, { ...SPEC, username: 'other' })
    assert.equal(next.id, user.id, 'the lowest free id is given again')
  })

  const REFUSED: readonly (readonly [string, object, string])[] = [
    ['a name of two bytes', { username: 'ab' }, 'EDGE_USERNAME_INVALID'],
    ['a name of 51 bytes', { username: 'a'.repeat(51) }, 'EDGE_USERNAME_INVALID'],
    ['a password of two bytes', { password: 'ab' }, 'EDGE_PASSWORD_INVALID'],
    ['a password of 101 bytes', { password: 'a'.repeat(101) }, 'EDGE_PASSWORD_INVALID'],
    ['a name that is taken', { username: 'iggy' }, 'EDGE_USER_NAME_TAKEN'],
  ]
  for (const [name, change, code] of REFUSED) {
    test(`${name} is refused`, async () => {
      await using world = await createBrokerWorld()
      await assert.rejects(world.broker.createUser(world.root, { ...SPEC, ...change }), { code })
    })
  }

  test('made at the same time cannot share a name', async () => {
    await using world = await createBrokerWorld()
    const outcomes = await Promise.allSettled([
      world.broker.createUser(world.root, SPEC),
      world.broker.createUser(world.root, SPEC),
    ])
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  })

  test('change their own password with the current one alone', async () => {
    await using world = await createBrokerWorld()
    const user = await world.broker.createUser(world.root, SPEC)
    const caller = world.connect(user.id)
    await assert.rejects(world.broker.changePassword(caller, 'reader', 'wrong!', 'another'), {
      code: 'EDGE_CREDENTIALS_INVALID',
    })
    await world.broker.changePassword(caller, 'reader', 'secret', 'another')
    assert.equal(await world.broker.authenticate('reader', 'another'), user.id)
    await assert.rejects(world.broker.changePassword(caller, 'iggy', 'iggy', 'another'), { code: 'EDGE_FORBIDDEN' })
  })

  test('change a password once with the current one, however many try at the same time', async () => {
    await using world = await createBrokerWorld()
    const user = await world.broker.createUser(world.root, SPEC)
    const change = (password: string) => world.broker.changePassword(world.root, 'reader', 'secret', password)
    const outcomes = await Promise.allSettled([change('the first'), change('the second')])
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    )
    assert.equal(await world.broker.authenticate('reader', 'the first'), user.id)
  })

  test('that are made meanwhile do not get the new password of a deleted one', async () => {
    await using world = await createBrokerWorld()
    const user = await world.broker.createUser(world.root, SPEC)
    const row = world.log.metadata.users.get(user.id)
    assert.ok(row)
    const changed = world.broker.changePassword(world.root, 'reader', 'secret', 'another')
    await world.broker.deleteUser(world.root, 'reader')
    await world.log.metadata.putUser({ ...row, username: 'other', passwordHash: 'of another' })
    await assert.rejects(changed, { code: 'EDGE_CREDENTIALS_INVALID' })
    assert.equal(world.log.metadata.users.get(user.id)?.passwordHash, 'of another')
  })
})

describe('tokens', () => {
  test('log in until they expire; an expired one is removed and harms nobody', async () => {
    await using world = await createBrokerWorld()
    const token = await world.broker.createToken(world.root, 'mine', 5_000_000n)
    const forever = await world.broker.createToken(world.root, 'forever', null)
    assert.equal(token.length, 68)
    assert.equal(world.broker.authenticateToken(token), 0)
    world.clock.passMs(5000)
    assert.throws(() => world.broker.authenticateToken(token), { code: 'EDGE_TOKEN_EXPIRED' })
    world.clock.passMs(60_000)
    await world.broker.maintain()
    assert.deepEqual(
      world.broker.tokens(world.root).map(({ name }) => name),
      ['forever'],
    )
    assert.equal(world.broker.authenticateToken(forever), 0)
    await world.broker.createStream(world.root, 'still works')
  })

  test('outlive a clock that is years ahead before it is set', async () => {
    await using world = await createBrokerWorld()
    const token = await world.broker.createToken(world.root, 'mine', 3_600_000_000n)
    const setUs = world.clock.nowUs
    world.clock.isTrusted = false
    world.clock.passMs(20 * 365 * 86_400_000)
    await world.broker.maintain()
    assert.throws(() => world.broker.authenticateToken(token), { code: 'EDGE_TOKEN_EXPIRED' })
    world.clock.nowUs = setUs
    world.clock.isTrusted = true
    assert.equal(world.broker.authenticateToken(token), 0)
  })

  test('are kept as hashes, named once a user, and gone when deleted', async () => {
    await using world = await createBrokerWorld()
    const token = await world.broker.createToken(world.root, 'mine', null)
    assert.ok(!JSON.stringify(world.log.metadata.tokensOf(0)).includes(token))
    await assert.rejects(world.broker.createToken(world.root, 'mine', null), { code: 'EDGE_TOKEN_NAME_TAKEN' })
    await assert.rejects(world.broker.createToken(world.root, 'ab', null), { code: 'EDGE_TOKEN_NAME_INVALID' })
    await world.broker.deleteToken(world.root, 'mine')
    assert.throws(() => world.broker.authenticateToken(token), { code: 'EDGE_TOKEN_INVALID' })
    await assert.rejects(world.broker.deleteToken(world.root, 'mine'), { code: 'EDGE_TOKEN_NOT_FOUND' })
  })

  test('for devices open no other session', async () => {
    await using world = await createBrokerWorld()
    const token = await world.broker.createDeviceToken(world.root, 'pump', null, '{"device":"pump-*"}')
    assert.throws(() => world.broker.authenticateToken(token), { code: 'EDGE_TOKEN_INVALID' })
    assert.equal(world.broker.authenticateDevice(token).deviceJson, '{"device":"pump-*"}')
    assert.deepEqual(world.broker.tokens(world.root), [])
  })
})

describe('sending', () => {
  test('balanced goes round the partitions, whoever sends', async () => {
    await using world = await withTopic()
    const partitions = []
    for (let count = 0; count < 5; count++) partitions.push((await send(world, batchOf([0n, 'a']))).partitionId)
    await send(world, batchOf([0n, 'b']), 3)
    partitions.push((await send(world, batchOf([0n, 'a']))).partitionId)
    assert.deepEqual(partitions, [0, 1, 2, 3, 0, 1])
  })

  test('to what is not there says what is missing', async () => {
    await using world = await withTopic()
    const to = (stream: string, topic: string, partitionId: number) =>
      world.broker.send(world.root, stream, topic, { kind: 'partition', partitionId }, batchOf([0n, 'a']), {
        settled() {},
      })
    assert.throws(() => to('x', 't', 0), { code: 'EDGE_STREAM_NOT_FOUND' })
    assert.throws(() => to('s', 'x', 0), { code: 'EDGE_TOPIC_NOT_FOUND' })
    assert.throws(() => to('s', 't', 9), { code: 'EDGE_PARTITION_NOT_FOUND' })
  })
})

describe('polling', () => {
  test('auto-commit stores the last offset answered, and never goes back', async () => {
    await using world = await withTopic()
    await send(world, batchOf([0n, 'a'], [0n, 'b'], [0n, 'c']), 0)
    assert.deepEqual(await textsOf(poll(world, { count: 2, autoCommit: true })), ['a', 'b'])
    assert.deepEqual(await textsOf(poll(world, { strategy: { kind: 'first' }, count: 1, autoCommit: true })), ['a'])
    assert.equal(world.broker.offset(world.root, SINGLE, 's', 't', 0)?.storedOffset, 1n)
    assert.deepEqual(await textsOf(poll(world, { autoCommit: true })), ['c'])
    assert.deepEqual(await textsOf(poll(world)), [])
  })

  test('sees nothing that has not kept its promise', async () => {
    await using world = await withTopic()
    world.log.holdSyncs = true
    const sent = send(world, batchOf([0n, 'a']), 0)
    assert.deepEqual(await textsOf(poll(world)), [])
    world.log.syncNow()
    await sent
    assert.deepEqual(await textsOf(poll(world)), ['a'])
  })

  test('a purge takes the messages, the stored offsets and what groups wait for', async () => {
    await using world = await withTopic()
    await send(world, batchOf([0n, 'a'], [0n, 'b']), 0)
    await textsOf(poll(world, { autoCommit: true }))
    await world.broker.purgeTopic(world.root, 's', 't')
    const emptied = await poll(world, { strategy: { kind: 'first' } })
    assert.deepEqual([emptied.messageCount, emptied.currentOffset], [0, 0n])
    assert.equal(world.broker.offset(world.root, SINGLE, 's', 't', 0), undefined)
    const { baseOffset } = await send(world, batchOf([0n, 'c']), 0)
    assert.equal(baseOffset, 2n, 'an offset once given is never given again')
    assert.deepEqual(await textsOf(poll(world)), ['c'])
  })
})

describe('offsets', () => {
  test('beyond the end, or of a partition that never had a message, are refused', async () => {
    await using world = await withTopic()
    const store = (partitionId: number, offset: bigint) =>
      world.broker.storeOffset(world.root, SINGLE, 's', 't', partitionId, offset)
    assert.throws(() => store(0, 0n), { code: 'EDGE_OFFSET_INVALID' })
    await send(world, batchOf([0n, 'a']), 0)
    await store(0, 0n)
    assert.throws(() => store(0, 1n), { code: 'EDGE_OFFSET_INVALID' })
    assert.throws(() => store(9, 0n), { code: 'EDGE_PARTITION_NOT_FOUND' })
  })

  test('survive a restart and are gone when deleted', async () => {
    const world = await withTopic()
    await send(world, batchOf([0n, 'a']), 0)
    await world.broker.storeOffset(world.root, SINGLE, 's', 't', 0, 0n)
    await using again = await world.restart()
    assert.equal(again.broker.offset(again.root, SINGLE, 's', 't', 0)?.storedOffset, 0n)
    await again.broker.deleteOffset(again.root, SINGLE, 's', 't', 0)
    assert.throws(() => again.broker.deleteOffset(again.root, SINGLE, 's', 't', 0), { code: 'EDGE_OFFSET_NOT_FOUND' })
  })

  test('hold back the deletion of segments until the slowest consumer has passed', async () => {
    await using world = await withTopic()
    for (const text of ['a', 'b', 'c', 'd']) await send(world, batchOf([0n, text]), 0)
    const partition = world.log.partition(1)
    assert.ok(partition)
    partition.sealedEnds = [1n, 2n, 3n]
    await world.broker.storeOffset(world.root, SINGLE, 's', 't', 0, 1n)
    await world.broker.deleteSegments(world.root, 's', 't', 0, 10)
    assert.equal(partition.logStartOffset, 2n)
  })
})

describe('consumer groups', () => {
  async function withGroup(settings = {}) {
    const world = await withTopic({ settings })
    await world.broker.createGroup(world.root, 's', 't', 'g')
    return world
  }
  const splitOf = ({ broker, root }: BrokerWorld) =>
    broker.group(root, 's', 't', 'g')?.members.map(({ partitions }) => partitions)

  test('deal each message to one member, and a disconnect deals its partitions to the others', async () => {
    await using world = await withGroup()
    const [first, second] = [world.connect(), world.connect()]
    world.broker.joinGroup(first, 's', 't', 'g')
    world.broker.joinGroup(second, 's', 't', 'g')
    assert.deepEqual(splitOf(world), [
      [0, 1],
      [3, 2],
    ])
    assert.throws(() => poll(world, { consumer: GROUP, partitionId: 2 }, first), { code: 'EDGE_PARTITION_NOT_OWNED' })
    world.broker.closeClient(first.client)
    assert.deepEqual(splitOf(world), [[0, 1, 2, 3]])
  })

  test('a member that is frozen loses its partitions after the heartbeat, an idle stranger stays', async () => {
    await using world = await withGroup({ heartbeat: { ...defaultsOf(HEARTBEAT_SETTINGS), interval: 30_000 } })
    const [frozen, living, stranger] = [world.connect(), world.connect(), world.connect()]
    const evicted: string[] = []
    frozen.client.onEvicted = (reason) => evicted.push(`frozen ${reason}`)
    stranger.client.onEvicted = (reason) => evicted.push(`stranger ${reason}`)
    world.broker.joinGroup(frozen, 's', 't', 'g')
    world.broker.joinGroup(living, 's', 't', 'g')
    world.clock.passMs(35_000)
    living.client.lastSeenUs = world.clock.monotonicUs()
    await world.broker.maintain()
    assert.deepEqual(evicted, [])
    world.clock.passMs(1001)
    await world.broker.maintain()
    assert.deepEqual(evicted, ['frozen stale'])
    assert.deepEqual(splitOf(world), [[0, 1, 2, 3]])
    assert.equal(world.broker.clients(world.root).length, 3)
  })

  test('members of before a restart are gone, the group and its offsets are not', async () => {
    const world = await withGroup()
    await send(world, batchOf([0n, 'a']), 0)
    const member = world.connect()
    world.broker.joinGroup(member, 's', 't', 'g')
    await textsOf(poll(world, { consumer: GROUP, autoCommit: true }, member))
    await using again = await world.restart()
    assert.deepEqual(splitOf(again), [])
    const returning = again.connect()
    again.broker.joinGroup(returning, 's', 't', 'g')
    assert.deepEqual(splitOf(again), [[0, 1, 2, 3]])
    assert.deepEqual(await textsOf(poll(again, { consumer: GROUP }, returning)), [])
  })

  test('a partition with messages in flight moves when they are committed', async () => {
    await using world = await withGroup()
    await send(world, batchOf([0n, 'a']), 3)
    const [first, second] = [world.connect(), world.connect()]
    world.broker.joinGroup(first, 's', 't', 'g')
    await textsOf(poll(world, { consumer: GROUP, partitionId: 3 }, first))
    world.broker.joinGroup(second, 's', 't', 'g')
    assert.deepEqual(world.broker.syncGroup(second, 's', 't', 'g')?.partitions, [2])
    await world.broker.storeOffset(first, GROUP, 's', 't', 3, 0n)
    assert.deepEqual(world.broker.syncGroup(second, 's', 't', 'g')?.partitions, [2, 3])
  })

  test('offsets of a group are changed by the member that owns the partition alone', async () => {
    await using world = await withGroup()
    await send(world, batchOf([0n, 'a']), 0)
    const [first, second] = [world.connect(), world.connect()]
    world.broker.joinGroup(first, 's', 't', 'g')
    world.broker.joinGroup(second, 's', 't', 'g')
    assert.throws(() => world.broker.storeOffset(second, GROUP, 's', 't', 0, 0n), { code: 'EDGE_PARTITION_NOT_OWNED' })
    assert.throws(() => world.broker.storeOffset(world.connect(), GROUP, 's', 't', 0, 0n), {
      code: 'EDGE_MEMBER_NOT_FOUND',
    })
    await world.broker.storeOffset(first, GROUP, 's', 't', 0, 0n)
    assert.equal(world.broker.offset(world.root, GROUP, 's', 't', 0)?.storedOffset, 0n)
    await world.broker.deleteGroup(world.root, 's', 't', 'g')
    await world.broker.createGroup(world.root, 's', 't', 'g')
    assert.equal(world.broker.offset(world.root, GROUP, 's', 't', 0), undefined)
  })

  test('follow the number of partitions', async () => {
    await using world = await withGroup()
    world.broker.joinGroup(world.connect(), 's', 't', 'g')
    await world.broker.createPartitions(world.root, 's', 't', 2)
    assert.deepEqual(splitOf(world), [[0, 1, 2, 3, 4, 5]])
    await world.broker.deletePartitions(world.root, 's', 't', 3)
    assert.deepEqual(splitOf(world), [[0, 1, 2]])
    await assert.rejects(world.broker.deletePartitions(world.root, 's', 't', 9), {
      code: 'EDGE_PARTITION_COUNT_INVALID',
    })
    await assert.rejects(world.broker.createPartitions(world.root, 's', 't', 0), { code: 'EDGE_TOO_MANY_PARTITIONS' })
  })
})

test('the time that the server has run follows no clock that is set', async () => {
  await using world = await createBrokerWorld()
  const before = world.broker.stats(world.root)
  const { clock } = world
  clock.wallUs = () => 5_000_000n
  clock.passMs(1000)
  const after = world.broker.stats(world.root)
  assert.equal(after.runTimeUs - before.runTimeUs, 1_000_000n)
  assert.equal(after.startTimeUs, before.startTimeUs)
})

test('a snapshot is an archive, and names what it cannot make', async () => {
  await using world = await createBrokerWorld()
  const zip = Buffer.from(await world.broker.snapshot(world.root, { compression: 2, types: [100] }))
  assert.equal(zip.readUInt32LE(0), 0x04034b50)
  for (const request of [
    { compression: 9, types: [100] },
    { compression: 1, types: [7] },
    { compression: 1, types: [100, 1] },
  ]) {
    await assert.rejects(world.broker.snapshot(world.root, request), { code: 'EDGE_COMMAND_MALFORMED' })
  }
})

test('a snapshot of the logs holds the newest lines and what was found', async () => {
  await using world = await createBrokerWorld()
  const zip = Buffer.from(await world.broker.snapshot(world.root, { compression: 1, types: [5] }))
  for (const part of ['findings.json', 'server_logs.txt{"event":"edge.ready"}\n']) assert.ok(zip.includes(part), part)
  assert.ok(!zip.includes('config.toml'))
})

test('statistics count what there is', async () => {
  await using world = await withTopic()
  await send(world, batchOf([0n, 'a'], [0n, 'b']), 0)
  const stats = world.broker.stats(world.root)
  assert.deepEqual(
    [stats.streamsCount, stats.topicsCount, stats.partitionsCount, stats.messagesCount, stats.serverSemver],
    [1, 1, 4, 2, 9000],
  )
  assert.equal(stats.segmentsCount, 4, 'each partition has one, however little is in it')
  assert.equal(stats.messagesSizeBytes, 2 * (64 + 1), "as they are in Iggy's form")
  assert.ok(stats.memoryUsage > 0 && stats.threadsCount > 0 && stats.hostname !== '')
})
