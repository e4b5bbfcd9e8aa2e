/**
 * Single vsr requests at the edges of the protocol: answered as server 0.9.0-edge.5 answered the same frames made by hand,
 * but for what `ON_PURPOSE` names.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { EdgeError } from '../../../src/errors.ts'
import { CODE } from '../../../src/sdk/wire/codes.ts'
import { encodeCommand } from '../../../src/sdk/wire/commands/index.ts'
import { packVersion } from '../../../src/sdk/wire/dialect.ts'
import { Writer } from '../../../src/sdk/wire/writer.ts'
import { batchOf } from '../../support/broker-world.ts'
import { VsrClient } from '../../support/protocol-clients.ts'
import { startProtocolServer, type TestServer } from '../../support/protocol-server.ts'

/** What a real server answers otherwise, and why we do not. */
const ON_PURPOSE = {
  'vsr: create_stream unbound, session 0': ['no answer', 'status 3', 'silence costs the client thirty seconds'],
  'vsr: register with request 1': ['no answer', 'status 3', 'silence costs the client thirty seconds'],
  'vsr: operation 50': ['no answer', 'status 3', 'silence costs the client thirty seconds'],
  'vsr: operation 64 (internal)': [
    'eviction 1',
    'status 3',
    'an operation of servers is no operation of clients, bound or not',
  ],
  'vsr: request number 0': ['no answer', 'status 3', 'silence costs the client thirty seconds'],
  'vsr: wrong frame checksum': ['no answer', 'status 4027', 'silence costs the client thirty seconds'],
  'vsr: wrong batch checksum': ['no answer', 'status 4039', 'silence costs the client thirty seconds'],
  'vsr: count mismatch': ['no answer', 'status 3', 'silence costs the client thirty seconds'],
  'vsr: batch of no messages': ['no answer', 'status 4009', 'silence costs the client thirty seconds'],
  'vsr: empty send': ['status 20', 'status 3', 'a body that cannot be read is malformed, not missing'],
  'vsr: attach_consumer_session': ['status 3', 'ok', 'one node can answer the routing of clusters with itself'],
  'vsr: create user with a password of 1': ['ok', 'result 44', 'such a user could never log in'],
  'vsr: create user with status 9': ['ok', 'status 3', 'there is no such status'],
  'vsr: token name of 2': ['ok', 'result 50', 'the bound of 3..30 bytes is one for both generations'],
  'vsr: unauthorized get_stream of a missing one': [
    'ok',
    'status 41',
    'who may not see streams does not learn their names',
  ],
  'vsr: unauthorized delete of a missing stream': [
    'result 1009',
    'result 41',
    'who may not see streams does not learn their names',
  ],
} as const satisfies Record<string, readonly [recorded: string, ours: string, reason: string]>

let running: TestServer

before(async () => {
  running = await startProtocolServer()
})
after(() => running[Symbol.asyncDispose]())

const port = () => running.listener.port
const name = (text: string) => Buffer.concat([Buffer.of(text.length), Buffer.from(text)]).toString('hex')

describe('vsr', () => {
  /** The answer of the real server, or ours where it differs on purpose. */
  const check = (title: string, found: string, recorded: string) => {
    const purpose = Object.entries(ON_PURPOSE).find(([key]) => key === `vsr: ${title}`)?.[1]
    if (purpose !== undefined) assert.equal(purpose[0], recorded, `${title}: the table says what was recorded`)
    assert.equal(found, purpose?.[1] ?? recorded, title)
  }
  const CREATE = { name: 'x', options: [] }

  test('what was not accepted for now is carried out when the same request comes again, and then only once', async () => {
    using client = await VsrClient.connect(port())
    const { catalog } = running.log
    const { createStream } = catalog
    catalog.createStream = async () => {
      throw new EdgeError('EDGE_BACKPRESSURE', 'too many changes wait')
    }
    const create = () => client.ask(CODE.createStream, { name: 'later', options: [] }, { requestNumber: 1n })
    assert.equal((await create()).outcome, 'status 58')
    catalog.createStream = createStream
    const { outcome, body } = await create()
    assert.equal(outcome, 'ok')
    assert.equal((await create()).body?.id, body?.id)
    await client.ask(CODE.deleteStream, { stream: 'later' }, { requestNumber: 2n })
  })

  test('before register only ping is served', async () => {
    using client = await VsrClient.connect(port(), null)
    check('ping', (await client.ask(CODE.ping, null)).outcome, 'ok')
    check('get_streams', (await client.ask(CODE.getStreams, null)).outcome, 'status 40')
    check('get_cluster_metadata', (await client.ask(CODE.getClusterMetadata, null)).outcome, 'status 40')
    check('unknown code', await client.outcomeOfBytes(9999, ''), 'status 40')
    check('code 38', await client.outcomeOfBytes(38, '', { operation: 2 }), 'eviction 15')
    check('create_stream unbound, session 0', (await client.ask(CODE.createStream, CREATE)).outcome, 'no answer')
    check(
      'create_stream unbound, session 5',
      (await client.ask(CODE.createStream, CREATE, { session: 5n })).outcome,
      'eviction 1',
    )
    check('logout unbound', (await client.ask(CODE.logoutUser, null, { session: 5n })).outcome, 'ok')
    check('ping after', (await client.ask(CODE.ping, null)).outcome, 'ok')
  })

  test('register looks at the version first, then at who it is', async () => {
    const PASSWORD = { kind: 'password', username: 'iggy', password: 'iggy' } as const
    using client = await VsrClient.connect(port(), null)
    for (const [major, minor, patch] of [
      [0, 10, 9],
      [0, 12, 0],
      [0, 12, 2],
      [1, 0, 0],
      [0, 0, 0],
    ] as const) {
      const { outcome } = await client.register(PASSWORD, packVersion(major, minor, patch))
      check(`register protocol ${major}.${minor}.${patch}`, outcome, 'eviction 14')
    }
    check(
      'register malformed body',
      await client.outcomeOfBytes(40, 'ffff', { session: 0n, requestNumber: 0n }),
      'eviction 15',
    )
    check(
      'register with request 1',
      await client.outcomeOfBytes(40, '', { session: 0n, requestNumber: 1n }),
      'no answer',
    )
    check('bad password', (await client.register({ ...PASSWORD, password: 'wrong' })).outcome, 'eviction 9')
    check('unknown user', (await client.register({ ...PASSWORD, username: 'nobody' })).outcome, 'eviction 9')
    check('short user', (await client.register({ ...PASSWORD, username: 'ab' })).outcome, 'eviction 9')
    check('bad token', (await client.register({ kind: 'token', token: 'nonsense' })).outcome, 'eviction 10')
    check('register 0.11.7', (await client.register(PASSWORD, packVersion(0, 11, 7))).outcome, 'ok')
    const { session } = client
    check('register again', (await client.register(PASSWORD)).outcome, 'ok')
    assert.equal(client.session, session, 'a bound connection gets its session again')
    await client.ask(CODE.logoutUser, null)
    check('read after logout', (await client.ask(CODE.getMe, null)).outcome, 'status 40')
    check('write after logout', (await client.ask(CODE.createStream, CREATE)).outcome, 'eviction 1')
  })

  test('a wrong request checksum is answered 4, a right one passes', async () => {
    using client = await VsrClient.connect(port())
    check(
      'wrong request_checksum',
      (await client.ask(CODE.getStreams, null, { requestChecksum: 1n })).outcome,
      'status 4',
    )
    check('good request', (await client.ask(CODE.getStreams, null)).outcome, 'ok')
  })

  test('a frame whose head says nothing closes the connection', async () => {
    for (const [at, value] of [
      [60, 99],
      [60, 6],
      [48, 100],
    ] as const) {
      using client = await VsrClient.connect(port())
      const frame = Buffer.alloc(256)
      frame.writeUInt32LE(256, 48)
      frame[60] = 5
      frame[128] = 1
      frame[176] = 2
      frame.writeUInt32LE(value, at)
      client.raw.write(frame)
      await client.raw.ended()
    }
  })

  test('metadata requests are carried out once, whatever comes twice', async () => {
    using client = await VsrClient.connect(port())
    const create = (streamName: string, requestNumber: bigint, head = {}) =>
      client.ask(CODE.createStream, { name: streamName, options: [] }, { requestNumber, ...head })
    const first = await create('once', 1n)
    assert.equal(first.outcome, 'ok')
    assert.deepEqual(await create('once', 1n), first)
    assert.deepEqual(await create('other body', 1n), first)
    check('gap', (await create('gap', 11n)).outcome, 'ok')
    assert.deepEqual(await create('older', 1n), first)
    check('request number 0', (await create('zero', 0n)).outcome, 'no answer')
    check('session +1', (await create('z1', 12n, { session: client.session + 1n })).outcome, 'ok')
    check('other client id', (await create('z2', 13n, { clientId: 5n })).outcome, 'ok')
    check('operation 50', await client.outcomeOfBytes(0, '', { operation: 50, requestNumber: 20n }), 'no answer')
    check(
      'operation 64 (internal)',
      await client.outcomeOfBytes(0, '', { operation: 64, requestNumber: 20n }),
      'eviction 1',
    )
    const token = { name: 'shown-once', expiryUs: 0n }
    check('pat', (await client.ask(CODE.createPersonalAccessToken, token, { requestNumber: 30n })).outcome, 'ok')
    check(
      'replay of pat',
      (await client.ask(CODE.createPersonalAccessToken, token, { requestNumber: 30n })).outcome,
      'result 51',
    )
    check(
      'token name of 2',
      (await client.ask(CODE.createPersonalAccessToken, { name: 'ab', expiryUs: 0n }, { requestNumber: 31n })).outcome,
      'ok',
    )
  })

  test('names and options that cannot be are told in the status, what is there already in the result', async () => {
    using client = await VsrClient.connect(port())
    const create = (body: string) => client.outcomeOfBytes(202, body)
    check('empty name', await create('00'), 'status 3')
    check('not UTF-8', await create('02c328'), 'status 3')
    check('trailing byte', await create(`${name('vs')}01`), 'status 3')
    check('option x=y', await create(`${name('vs')}020100000078020100000079`), 'status 4041')
    check('stream', await create(name('vs')), 'ok')
    check('stream again', await create(name('vs')), 'result 1012')
    const topic = (options: string, partitions = '01000000', topicName = 't') =>
      client.outcomeOfBytes(302, `02027673${partitions}${name(topicName)}${options}`)
    check('1001 partitions', await topic('', 'e9030000'), 'status 2015')
    check('missing stream', await client.outcomeOfBytes(302, `02026e6f01000000${name('t')}`), 'result 1009')
    check('topic', await topic(''), 'ok')
    check('topic again', await topic(''), 'result 2013')
  })

  test('sends are confirmed or refused, never dropped', async () => {
    using client = await VsrClient.connect(port())
    await client.ask(CODE.createStream, { name: 'sends', options: [] })
    await client.ask(CODE.createTopic, {
      stream: 'sends',
      name: 't',
      partitionsCount: 3,
      replicationFactor: 0,
      options: [],
    })
    const target = { stream: 'sends', topic: 't', partitioning: { kind: 'partition', partitionId: 0 } } as const
    const sent = await client.ask(CODE.sendMessages, { ...target, batch: batchOf([1n, 'a']) })
    assert.equal(sent.body?.confirmations.length, 1)
    assert.equal(sent.body?.confirmations[0]?.baseOffset, 0n)
    const again = await client.ask(CODE.sendMessages, { ...target, batch: batchOf([1n, 'a']) }, { requestNumber: 1n })
    assert.equal(again.body?.confirmations[0]?.baseOffset, 1n, 'sends are at least once: numbers do not matter')
    const elsewhere = { ...target, partitioning: { kind: 'partition', partitionId: 99 } } as const
    check(
      'send p99',
      (await client.ask(CODE.sendMessages, { ...elsewhere, batch: batchOf([1n, 'a']) })).outcome,
      'status 20',
    )
    check(
      'send unknown',
      (await client.ask(CODE.sendMessages, { ...target, topic: 'none', batch: batchOf([1n, 'a']) })).outcome,
      'status 20',
    )

    const body = bodyOfSend()
    const batchAt = body.length - 256 - 48 - 1
    const spoiled = (at: number) => {
      const bytes = Buffer.from(body)
      bytes[at] = (bytes[at] ?? 0) ^ 1
      return bytes.toString('hex')
    }
    check('wrong frame checksum', await client.outcomeOfBytes(101, spoiled(batchAt + 256)), 'no answer')
    check('wrong batch checksum', await client.outcomeOfBytes(101, spoiled(batchAt + 40)), 'no answer')
    check('count mismatch', await client.outcomeOfBytes(101, spoiled(batchAt + 48)), 'no answer')
    check('batch of no messages', await client.outcomeOfBytes(101, emptyBatch(body, batchAt)), 'no answer')
    check('empty send', await client.outcomeOfBytes(101, ''), 'status 20')
    check('ping after', (await client.ask(CODE.ping, null)).outcome, 'ok')
  })

  test('polls of what a member does not own tell it to sync, unreadable ones are empty', async () => {
    using client = await VsrClient.connect(port())
    await client.ask(CODE.createStream, { name: 'polls', options: [] })
    await client.ask(CODE.createTopic, {
      stream: 'polls',
      name: 't',
      partitionsCount: 3,
      replicationFactor: 0,
      options: [],
    })
    const poll = (change: object) =>
      client.ask(CODE.pollMessages, {
        consumer: { kind: 'consumer', id: 1 },
        stream: 'polls',
        topic: 't',
        partitionId: 0,
        strategy: { kind: 'first' },
        count: 1,
        autoCommit: false,
        ...change,
      })
    const asGroup = { consumer: { kind: 'group', id: 'g' } }
    assert.equal((await poll(asGroup)).body?.partitionId, 0xffff_ffff)
    await client.ask(CODE.createConsumerGroup, { stream: 'polls', topic: 't', name: 'g' })
    assert.equal((await poll(asGroup)).body?.partitionId, 0xffff_ffff)
    assert.equal((await poll({ ...asGroup, partitionId: null })).body?.partitionId, 0)
    check('p99', (await poll({ partitionId: 99 })).outcome, 'status 3007')
    check('unknown topic', (await poll({ topic: 'none' })).outcome, 'status 2010')
    check('truncated', await client.outcomeOfBytes(100, '0101'), 'ok')
    check(
      'get offset p99',
      (
        await client.ask(CODE.getConsumerOffset, {
          consumer: { kind: 'consumer', id: 1 },
          stream: 'polls',
          topic: 't',
          partitionId: 99,
        })
      ).outcome,
      'status 3007',
    )
    const store = (body: object) =>
      client.ask(CODE.storeConsumerOffset, {
        consumer: { kind: 'consumer', id: 1 },
        stream: 'polls',
        topic: 't',
        partitionId: 0,
        offset: 0n,
        ack: 1,
        ...body,
      })
    check('store in an empty partition', (await store({})).outcome, 'status 4100')
    check('store p99', (await store({ partitionId: 99 })).outcome, 'status 20')
    check('store without partition', (await store({ partitionId: null })).outcome, 'status 20')
    check('store unknown stream', (await store({ stream: 'none' })).outcome, 'status 20')
    check(
      'sync not member',
      JSON.stringify((await client.ask(CODE.syncConsumerGroup, { stream: 'polls', topic: 't', group: 'g' })).body),
      'null',
    )
    check(
      'group of unknown topic',
      (await client.ask(CODE.getConsumerGroup, { stream: 'polls', topic: 'none', group: 'g' })).outcome,
      'status 2010',
    )
    check(
      'flush',
      (await client.ask(CODE.flushUnsavedBuffer, { stream: 'polls', topic: 't', partitionId: 0, isFsync: false }))
        .outcome,
      'status 5',
    )
  })

  test('the routing of clusters leads to this node', async () => {
    using client = await VsrClient.connect(port())
    const { clientId, session } = client
    check(
      'attach_consumer_session',
      (await client.ask(CODE.attachConsumerSession, { clientId, session, metadataWatermark: 0n })).outcome,
      'status 3',
    )
    const route = await client.ask(CODE.getPollRouting, {
      consumer: { kind: 'consumer', id: 1 },
      stream: 0,
      topic: 0,
      partitionId: 0,
      strategy: { kind: 'first' },
      count: 1,
      autoCommit: true,
    })
    assert.deepEqual([route.body?.clientId, route.body?.session, route.body?.node.tcpPort], [clientId, session, port()])
  })

  test('users: rights, bounds, and the difference between denied and missing', async () => {
    using root = await VsrClient.connect(port())
    const user = { username: 'usr', password: 'secret', status: 1, permissions: null, options: [] }
    check('create user', (await root.ask(CODE.createUser, user)).outcome, 'ok')
    check('again', (await root.ask(CODE.createUser, user)).outcome, 'result 46')
    check('short name', (await root.ask(CODE.createUser, { ...user, username: 'ab' })).outcome, 'result 43')
    check(
      'create user with a password of 1',
      (await root.ask(CODE.createUser, { ...user, username: 'us2', password: 'x' })).outcome,
      'ok',
    )
    check(
      'create user with status 9',
      (await root.ask(CODE.createUser, { ...user, username: 'us3', status: 9 })).outcome,
      'ok',
    )
    check('delete root', (await root.ask(CODE.deleteUser, { user: 0 })).outcome, 'result 48')
    check(
      'root permissions',
      (await root.ask(CODE.updatePermissions, { user: 0, permissions: null })).outcome,
      'result 49',
    )
    check('unknown user', (await root.ask(CODE.deleteUser, { user: 'nobody' })).outcome, 'result 20')

    using client = await VsrClient.connect(port(), ['usr', 'secret'])
    check('stats', (await client.ask(CODE.getStats, null)).outcome, 'status 41')
    check('get_streams', (await client.ask(CODE.getStreams, null)).outcome, 'status 41')
    check('create stream', (await client.ask(CODE.createStream, CREATE)).outcome, 'result 41')
    check(
      'unauthorized get_stream of a missing one',
      (await client.ask(CODE.getStream, { stream: 'none' })).outcome,
      'ok',
    )
    check(
      'unauthorized delete of a missing stream',
      (await client.ask(CODE.deleteStream, { stream: 'none' })).outcome,
      'result 1009',
    )
    check('own get_me', (await client.ask(CODE.getMe, null)).outcome, 'ok')
    check('own tokens', (await client.ask(CODE.getPersonalAccessTokens, null)).outcome, 'ok')
    check(
      'own password',
      (await client.ask(CODE.changePassword, { user: 'usr', currentPassword: 'secret', newPassword: 'secret2' }))
        .outcome,
      'ok',
    )
  })

  function bodyOfSend(): Buffer {
    const writer = new Writer()
    const body = {
      stream: 'sends',
      topic: 't',
      partitioning: { kind: 'partition', partitionId: 0 },
      batch: batchOf([1n, 'a']),
    } as const
    encodeCommand('vsr', { code: CODE.sendMessages, body }, writer)
    return Buffer.from(writer.toBytes())
  }

  /** Metadata and batch that both say 0 messages. */
  function emptyBatch(body: Buffer, batchAt: number): string {
    const bytes = Buffer.from(body.subarray(0, batchAt + 256))
    bytes.writeUInt32LE(0, batchAt - 4)
    bytes.writeBigUInt64LE(256n, batchAt + 32)
    bytes.writeUInt32LE(0, batchAt + 48)
    return bytes.toString('hex')
  }
})
