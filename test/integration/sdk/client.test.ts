/** The client against this runtime's own server, in both generations. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Client, type ConsumedMessage, connect, decodeHeaders, openSpoolFile } from '../../../src/sdk/index.ts'
import { stringHeader } from '../../../src/sdk/wire/header-values.ts'
import { eventually } from '../../support/eventually.ts'
import { MemoryLog } from '../../support/memory-log.ts'
import { startProtocolServer, type TestServer } from '../../support/protocol-server.ts'
import { TcpRelay } from '../../support/tcp-relay.ts'

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
const message = (content: string) => ({ payload: new TextEncoder().encode(content) })
const ORIGIN_US = BigInt(Date.now() - 60_000) * 1000n
const GENERATIONS = ['classic', 'vsr'] as const

async function serve(context: TestContext): Promise<TestServer> {
  const server = await startProtocolServer()
  context.after(() => server[Symbol.asyncDispose]())
  return server
}

async function clientOf(context: TestContext, port: number, options = ''): Promise<Client> {
  const client = await connect(
    `iggy://iggy:iggy@127.0.0.1:${port}?heartbeat_interval=1h&reconnection_interval=10ms${options}`,
  )
  context.after(() => client.close())
  return client
}

async function take(consumer: AsyncIterable<ConsumedMessage>, count: number): Promise<ConsumedMessage[]> {
  const taken: ConsumedMessage[] = []
  for await (const one of consumer) {
    taken.push(one)
    if (taken.length === count) break
  }
  return taken
}

async function spoolPath(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'spool-'))
  context.after(() => rm(folder, { recursive: true }))
  return join(folder, 'unsent')
}

for (const generation of GENERATIONS) {
  test(`${generation}: streams, topics, sends and polls`, async (context) => {
    const server = await serve(context)
    const client = await clientOf(context, server.listener.port, `&generation=${generation}`)
    assert.equal(client.dialect, generation)
    await client.streams.create('site')
    const topic = await client.topics.create('site', 'temp', { partitions: 2, messageExpiryUs: 3_600_000_000n })
    assert.deepEqual([topic.partitions.length, topic.messageExpiryUs], [2, 3_600_000_000n])
    const headers = [{ key: stringHeader('device'), value: stringHeader('d1') }]
    const place = await client.messages.send('site', 'temp', { kind: 'partition', partitionId: 1 }, [
      { ...message('a'), headers },
      { ...message('b'), id: 5n, originUs: ORIGIN_US },
    ])
    assert.equal(place?.baseOffset, generation === 'vsr' ? 0n : undefined)
    const polled = await client.messages.poll('site', 'temp', { partitionId: 1, strategy: { kind: 'first' } })
    assert.deepEqual(
      polled.messages.map((one) => [one.offset, text(one.payload)]),
      [
        [0n, 'a'],
        [1n, 'b'],
      ],
    )
    const [first, second] = polled.messages
    assert.ok(first && second && first.id !== 0n)
    assert.deepEqual(decodeHeaders(first), headers)
    assert.deepEqual([second.id, second.originUs], [5n, ORIGIN_US])
    assert.equal(await client.topics.get('site', 'none'), null)
    await client.topics.addPartitions('site', 'temp', 1)
    assert.equal((await client.topics.list('site'))[0]?.partitionsCount, 3)
  })

  test(`${generation}: errors carry the server's number, and the connection goes on`, async (context) => {
    const server = await serve(context)
    const client = await clientOf(context, server.listener.port, `&generation=${generation}`)
    await client.streams.create('site')
    await assert.rejects(client.streams.create('site'), {
      code: 'EDGE_STREAM_NAME_TAKEN',
      details: { iggyCode: 1012, asked: 'create_stream' },
    })
    await assert.rejects(client.messages.poll('site', 'none'), { code: 'EDGE_TOPIC_NOT_FOUND' })
    await client.system.ping()
    assert.ok((await client.system.stats()).processId > 0)
    assert.equal((await client.system.cluster()).nodes.length, 1)
  })

  test(`${generation}: users and tokens, and a login with the token`, async (context) => {
    const server = await serve(context)
    const { port } = server.listener
    const client = await clientOf(context, port, `&generation=${generation}`)
    await client.users.create({ username: 'reader', password: 'secret' })
    assert.equal((await client.users.get('reader'))?.status, 1)
    const token = await client.tokens.create('ci-token', null)
    assert.deepEqual(await client.tokens.list(), [{ name: 'ci-token', expiresAtUs: null }])
    const second = await connect(`iggy://${encodeURIComponent(token)}@127.0.0.1:${port}?generation=${generation}`)
    context.after(() => second.close())
    assert.equal((await second.system.me()).userId, 0)
    await client.users.delete('reader')
    assert.equal(await client.users.get('reader'), null)
  })

  test(`${generation}: a wrong password is told at once`, async (context) => {
    const server = await serve(context)
    const url = `iggy://iggy:wrong@127.0.0.1:${server.listener.port}?generation=${generation}`
    await assert.rejects(connect(url), { code: 'EDGE_CREDENTIALS_INVALID' })
  })

  test(`${generation}: a group's members share the partitions, and one that leaves hands its own over`, async (context) => {
    const server = await serve(context)
    const { port } = server.listener
    const first = await clientOf(context, port, `&generation=${generation}`)
    const second = await clientOf(context, port, `&generation=${generation}`)
    await first.streams.create('site')
    await first.topics.create('site', 'temp', { partitions: 4 })
    const commit = { kind: 'each' } as const
    const seen: string[] = []
    const members = [first, second].map((client) =>
      client.consumer({ stream: 'site', topic: 'temp', group: 'g', commit }),
    )
    const running = members.map(async (consumer) => {
      for await (const one of consumer) seen.push(text(one.payload))
    })
    await eventually(async () => (await first.groups.get('site', 'temp', 'g'))?.members.length === 2, 'both joined')
    for (let index = 0; index < 40; index++) {
      await first.messages.send('site', 'temp', { kind: 'partition', partitionId: index % 4 }, [message(`m${index}`)])
    }
    await eventually(() => new Set(seen).size === 40, 'all were read')
    assert.equal(seen.length, 40)
    await members[1]?.close()
    await first.messages.send('site', 'temp', { kind: 'partition', partitionId: 3 }, [message('later')])
    await eventually(() => seen.includes('later'), 'the other member took over')
    await members[0]?.close()
    await Promise.all(running)
  })
}

test('the generation is found out by itself', async (context) => {
  const server = await serve(context)
  const client = await clientOf(context, server.listener.port)
  assert.equal(client.dialect, 'vsr')
})

test('a peer that speaks something else is named, not waited for', async (context) => {
  const other = createServer((socket) => {
    socket.on('error', () => {}) // the client hangs up hard
    socket.on('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  })
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  context.after(() => other.close())
  const address = other.address()
  assert.ok(typeof address === 'object' && address !== null)
  await assert.rejects(connect(`iggy://iggy:iggy@127.0.0.1:${address.port}`), {
    code: 'EDGE_FRAME_INVALID',
    message: /speaks no Iggy protocol: it begins with "HTTP\/1\.1"$/,
  })
  await assert.rejects(connect(`iggy://iggy:iggy@127.0.0.1:${address.port}?tls=true`), {
    code: 'EDGE_UPSTREAM_UNREACHABLE',
    message: /^127\.0\.0\.1:\d+: no TLS is spoken there$/,
  })
})

test('a consumer goes on where it committed', async (context) => {
  const server = await serve(context)
  const client = await clientOf(context, server.listener.port)
  await client.streams.create('site')
  await client.topics.create('site', 'temp')
  const sent = Array.from({ length: 10 }, (_, index) => message(`m${index}`))
  await client.messages.send('site', 'temp', { kind: 'balanced' }, sent)
  const options = { stream: 'site', topic: 'temp', consumer: 'reader', commit: { kind: 'after', count: 2 } } as const
  assert.deepEqual(
    (await take(client.consumer(options), 4)).map((one) => text(one.payload)),
    ['m0', 'm1', 'm2', 'm3'],
  )
  assert.equal(text((await take(client.consumer(options), 1))[0]?.payload ?? new Uint8Array()), 'm3')
  const fresh = client.consumer({ ...options, consumer: 'other', start: { kind: 'offset', offset: 8n } })
  assert.equal((await take(fresh, 1))[0]?.offset, 8n)
})

test('a producer batches, keeps order, and tells where messages lie', async (context) => {
  const server = await serve(context)
  const client = await clientOf(context, server.listener.port)
  await client.streams.create('site')
  await client.topics.create('site', 'temp')
  const producer = client.producer({ stream: 'site', topic: 'temp', batchCount: 50, lingerMs: 5 })
  const places = await Promise.all(Array.from({ length: 500 }, (_, index) => producer.send(message(`m${index}`))))
  assert.deepEqual(
    places.map((place) => place?.baseOffset),
    Array.from({ length: 500 }, (_, index) => BigInt(index)),
  )
  await producer.close()
  await assert.rejects(producer.send(message('late')), { code: 'EDGE_SHUTTING_DOWN' })
})

test('a full buffer refuses, or gives up the oldest message', async (context) => {
  const server = await serve(context)
  const client = await clientOf(context, server.listener.port)
  const common = { stream: 'site', topic: 'none', bufferBytes: 300, lingerMs: 3_600_000 } as const
  const refusing = client.producer({ ...common, overflow: 'reject' })
  const kept = ['a', 'b', 'c', 'd'].map((content) => refusing.send(message(content)))
  const settled = Promise.allSettled(kept)
  await assert.rejects(refusing.send(message('e')), { code: 'EDGE_BACKPRESSURE' })
  const dropping = client.producer({ ...common, overflow: 'drop-oldest' })
  const all = ['a', 'b', 'c', 'd', 'e'].map((content) => dropping.send(message(content)))
  const dropped = Promise.allSettled(all)
  await eventually(() => dropping.droppedCount === 1, 'the oldest was given up')
  await Promise.all([refusing.close(50), dropping.close(50)])
  assert.ok((await settled).every(({ status }) => status === 'rejected'))
  assert.ok((await dropped).every(({ status }) => status === 'rejected'))
})

test('requests wait out a server that restarts, and groups are joined again', async (context) => {
  const log = new MemoryLog()
  let server = await startProtocolServer({ log })
  const { port } = server.listener
  const relay = await TcpRelay.open(() => server.listener.port)
  context.after(() => relay.close())
  const client = await clientOf(context, relay.port)
  await client.streams.create('site')
  await client.topics.create('site', 'temp')
  const producer = client.producer({ stream: 'site', topic: 'temp', retries: null, lingerMs: 0 })
  await producer.send(message('before'))
  relay.cut()
  const during = producer.send(message('during'))
  await server.listener.close()
  await server.server.close(50)
  server = await startProtocolServer({ log })
  context.after(() => server[Symbol.asyncDispose]())
  assert.notEqual(port, 0)
  await during
  const polled = await client.messages.poll('site', 'temp', { strategy: { kind: 'first' }, partitionId: 0 })
  assert.deepEqual(
    polled.messages.map((one) => text(one.payload)),
    ['before', 'during'],
  )
})

test('unsent messages come back from the spool file, once, with their ids', async (context) => {
  const server = await serve(context)
  const client = await clientOf(context, server.listener.port)
  const path = await spoolPath(context)
  const first = client.producer({
    stream: 'site',
    topic: 'temp',
    lingerMs: 3_600_000,
    spool: await openSpoolFile(path),
  })
  const lost = Promise.allSettled([first.send({ ...message('a'), id: 11n }), first.send({ ...message('b'), id: 12n })])
  await eventually(async () => (await stat(path)).size > 70, 'both are on disk')
  await first.close(0)
  await lost

  await client.streams.create('site')
  await client.topics.create('site', 'temp')
  const spool = await openSpoolFile(path)
  assert.equal(spool.pending.length, 2)
  const second = client.producer({ stream: 'site', topic: 'temp', spool })
  await second.flush()
  const polled = await client.messages.poll('site', 'temp', { strategy: { kind: 'first' }, partitionId: 0 })
  assert.deepEqual(
    polled.messages.map(({ id }) => id),
    [11n, 12n],
  )
  await second.close()
  const third = await openSpoolFile(path)
  assert.equal(third.pending.length, 0)
  await third.close()
})

test('a spool learns of messages that were given up, and of no others', async (context) => {
  const server = await serve(context)
  const client = await clientOf(context, server.listener.port)
  const path = await spoolPath(context)
  const options = { stream: 'site', topic: 'temp', bufferBytes: 300, overflow: 'drop-oldest' } as const
  const spool = await openSpoolFile(path)
  const producer = client.producer({ ...options, lingerMs: 3_600_000, spool })
  const sent = Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map((content) => producer.send(message(content))))
  await eventually(() => producer.droppedCount === 1 && producer.bufferedCount === 4, 'the oldest was given up')
  await producer.close(0)
  await sent
  const again = await openSpoolFile(path)
  context.after(() => again.close())
  assert.deepEqual(
    again.pending.map(({ payload }) => text(payload)),
    ['b', 'c', 'd', 'e'],
  )
})

/** Of the messages that the next run finds in the spool. */
async function idsKept(path: string): Promise<readonly bigint[]> {
  const spool = await openSpoolFile(path)
  await spool.close()
  return spool.pending.map(({ id }) => id)
}

test('a spool does not grow while a batch has no answer and what comes behind it is given up', async (context) => {
  const path = await spoolPath(context)
  const spool = await openSpoolFile(path)
  const payload = new Uint8Array(1024 * 1024)
  let mostBytes = 0
  await spool.append({ id: 1n, originUs: ORIGIN_US, payload })
  for (let id = 2n; id <= 40n; id++) {
    await spool.append({ id, originUs: ORIGIN_US, payload })
    if (id > 2n) await spool.gaveUp(1)
    mostBytes = Math.max(mostBytes, (await stat(path)).size)
  }
  assert.ok(mostBytes < 19 * payload.length, `${mostBytes} bytes`)
  await spool.append({ id: 41n, originUs: ORIGIN_US, payload: new Uint8Array(1) })
  await spool.close()
  assert.deepEqual(await idsKept(path), [1n, 40n, 41n])
})

test('a note that the disk did not take goes before the next, which counts from it', async (context) => {
  const path = await spoolPath(context)
  const spool = await openSpoolFile(path)
  for (let id = 1n; id <= 4n; id++) await spool.append({ id, originUs: ORIGIN_US, payload: new Uint8Array(1) })
  const handle = await open(path)
  const full = context.mock.method(Object.getPrototypeOf(handle), 'writev', async () => {
    throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
  })
  await assert.rejects(spool.acknowledged(1), { code: 'EDGE_IO' })
  full.mock.restore()
  await handle.close()
  await spool.gaveUp(1)
  await spool.close()
  assert.deepEqual(await idsKept(path), [2n, 4n])
})

test('a damaged message costs itself; the file as it was stays beside the one that goes on', async (context) => {
  const path = await spoolPath(context)
  const first = await openSpoolFile(path)
  for (let id = 1n; id <= 3n; id++) await first.append({ id, originUs: ORIGIN_US, payload: new Uint8Array(100) })
  await first.close()
  const bytes = await readFile(path)
  bytes[200] = (bytes[200] ?? 0) ^ 1
  await writeFile(path, bytes)
  const spool = await openSpoolFile(path)
  assert.ok((spool.damagedBytes ?? 0) > 100)
  await spool.acknowledged(1)
  await spool.close()
  assert.deepEqual(await idsKept(path), [3n])
  assert.deepEqual(await readFile(`${path}.damaged`), bytes)
})

test('what an earlier run left leaves memory as it is done with', async (context) => {
  const path = await spoolPath(context)
  const first = await openSpoolFile(path)
  for (let id = 1n; id <= 5n; id++) await first.append({ id, originUs: ORIGIN_US, payload: new Uint8Array(1) })
  await first.close()
  const spool = await openSpoolFile(path)
  context.after(() => spool.close())
  await spool.append({ id: 6n, originUs: ORIGIN_US, payload: new Uint8Array(1) })
  assert.equal(spool.pending.length, 5)
  await spool.acknowledged(2)
  assert.deepEqual(
    spool.pending.map(({ id }) => id),
    [3n, 4n, 5n],
  )
  await spool.acknowledged(4)
  assert.deepEqual(spool.pending, [])
})

test('a spool that is never empty does not grow for ever', async (context) => {
  const path = await spoolPath(context)
  const spool = await openSpoolFile(path)
  const payload = new Uint8Array(1024 * 1024)
  let mostBytes = 0
  for (let id = 1n; id <= 40n; id++) {
    await spool.append({ id, originUs: ORIGIN_US, payload })
    if (id > 1n) await spool.acknowledged(1)
    mostBytes = Math.max(mostBytes, (await stat(path)).size)
  }
  assert.ok(mostBytes < 18 * payload.length, `${mostBytes} bytes`)
  await spool.append({ id: 41n, originUs: ORIGIN_US, payload: new Uint8Array(1) })
  await spool.close()
  assert.deepEqual(await idsKept(path), [40n, 41n])
})

test('a request that cannot be encoded holds up none of those behind it', async (context) => {
  const server = await serve(context)
  const client = await clientOf(context, server.listener.port)
  const lists = Array.from({ length: 16 }, () => client.streams.list())
  const broken = Array.from({ length: 16 }, () => client.streams.create('x'.repeat(300)))
  const behind = Array.from({ length: 16 }, () => client.streams.list())
  const settled = await Promise.allSettled([...lists, ...broken, ...behind])
  assert.deepEqual(
    settled.map(({ status }) => status),
    [...lists.map(() => 'fulfilled'), ...broken.map(() => 'rejected'), ...behind.map(() => 'fulfilled')],
  )
})

test('a consumer that is closed while there is no connection leaves nothing behind in its client', async (context) => {
  const server = await serve(context)
  const relay = await TcpRelay.open(() => server.listener.port)
  context.after(() => relay.close())
  const client = await clientOf(context, relay.port)
  let listening = 0
  const onReconnected = client.onReconnected.bind(client)
  client.onReconnected = (callback) => {
    const unsubscribe = onReconnected(callback)
    listening += 1
    return () => {
      listening -= 1
      unsubscribe()
    }
  }
  const consumer = client.consumer({ stream: 'site', topic: 'temp', group: 'readers' })
  assert.equal(listening, 1)
  relay.close()
  await eventually(() => client.state !== 'connected', 'the connection is lost')
  await consumer.close()
  assert.equal(listening, 0)
})
