/** Sync from a log in memory to this runtime's own server, over a link that is cut and a server that starts anew. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { EdgeError } from '../../../src/errors.ts'
import { type Logger, silentLogger } from '../../../src/logger.ts'
import { loadCertificate } from '../../../src/quic-edge/io/certificate.ts'
import { connect } from '../../../src/sdk/index.ts'
import { type DeadLetter, type Sync, type SyncOptions, startSync, type UpstreamState } from '../../../src/sync/index.ts'
import { eventually } from '../../support/eventually.ts'
import { startTestHttpOn } from '../../support/http-server.ts'
import { MemoryLog } from '../../support/memory-log.ts'
import { MemorySource } from '../../support/memory-source.ts'
import { startProtocolServer } from '../../support/protocol-server.ts'
import { TcpRelay } from '../../support/tcp-relay.ts'
import { readAll } from '../../support/upstream-readings.ts'

const FAST = { retryDelayMinMs: 10, retryDelayMaxMs: 50, settleMs: 50, blockedRetryMs: 50 }

async function start(
  context: TestContext,
  source: MemorySource,
  options: SyncOptions,
  deadLetters: DeadLetter[] = [],
  logger: Logger = silentLogger,
): Promise<Sync> {
  const sink = {
    add: (letter: DeadLetter) => {
      deadLetters.push(letter)
      return Promise.resolve()
    },
  }
  const ports = { log: source, cursors: source, clock: systemClock, logger, deadLetters: sink }
  const sync = await startSync(options, ports)
  context.after(() => sync.close())
  return sync
}

/** With a server of the test's own as the upstream. */
async function startOverHttp(context: TestContext, server: Server): Promise<{ sync: Sync; port: number }> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  context.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return { sync: await start(context, new MemorySource(), toUrl(`iggy+http://iggy:iggy@127.0.0.1:${port}`)), port }
}

const to = (port: number, more = ''): SyncOptions => toUrl(`iggy://iggy:iggy@127.0.0.1:${port}${more}`)

function toUrl(url: string): SyncOptions {
  return {
    upstreams: [{ name: 'central', url, ...FAST }],
    routes: [{ from: 'sensors/*', to: 'central:site-7/{topic}' }],
  }
}

const lagIn = (upstream: UpstreamState | undefined): bigint | undefined =>
  upstream?.partitions.reduce((sum, { lagCount }) => sum + lagCount, 0n)
const lagOf = (sync: Sync): bigint => sync.state().upstreams.reduce((sum, each) => sum + (lagIn(each) ?? 0n), 0n)
const numbers = (from: number, end: number): string[] =>
  Array.from({ length: end - from }, (_, index) => `r${from + index}`)

for (const generation of ['classic', 'vsr'] as const) {
  test(`${generation}: topics are made upstream, and every record arrives once, in order, with our ids`, async (context) => {
    const central = await startProtocolServer()
    context.after(() => central[Symbol.asyncDispose]())
    const { port } = central.listener
    const source = new MemorySource()
    const [first, second] = source.addTopic('sensors', 'temp', 2)
    source.addTopic('logs', 'other', 1)[0]?.append('stays here')
    const sync = await start(context, source, to(port, `?generation=${generation}`))
    for (const number of numbers(0, 200)) first?.append(number)
    second?.append(...numbers(200, 500))
    await eventually(() => lagOf(sync) === 0n, 'drained')
    const url = `iggy://iggy:iggy@127.0.0.1:${port}`
    assert.deepEqual(await readAll(url, 'site-7', 'temp', 2), [numbers(0, 200), numbers(200, 500)])
    const [upstream] = sync.state().upstreams
    assert.equal(upstream?.link, 'up')
    assert.deepEqual(
      upstream.partitions.map(({ sentCount }) => sentCount),
      [200n, 300n],
    )
  })
}

test('a new local partition gets one upstream', async (context) => {
  const central = await startProtocolServer()
  context.after(() => central[Symbol.asyncDispose]())
  const source = new MemorySource()
  source.addTopic('sensors', 'temp', 1)[0]?.append('a')
  const sync = await start(context, source, to(central.listener.port))
  await eventually(() => lagOf(sync) === 0n, 'the first is there')
  source.addPartition('temp').append('b')
  await eventually(() => lagOf(sync) === 0n, 'the second is there')
  assert.deepEqual(await readAll(`iggy://iggy:iggy@127.0.0.1:${central.listener.port}`, 'site-7', 'temp', 2), [
    ['a'],
    ['b'],
  ])
})

test('a lone record is forwarded at once, every time', async (context) => {
  const central = await startProtocolServer()
  context.after(() => central[Symbol.asyncDispose]())
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  const sync = await start(context, source, to(central.listener.port))
  for (let round = 0; round < 200; round++) {
    partition?.append(`r${round}`)
    await eventually(() => lagOf(sync) === 0n, `record ${round}`, 1000)
  }
})

test('a link that is cut at any moment loses and repeats nothing', async (context) => {
  const central = await startProtocolServer()
  context.after(() => central[Symbol.asyncDispose]())
  const relay = await TcpRelay.open(() => central.listener.port)
  context.after(() => relay.close())
  const source = new MemorySource()
  const partitions = source.addTopic('sensors', 'temp', 3)
  const sync = await start(context, source, to(relay.port))
  for (let round = 0; round < 30; round++) {
    for (const partition of partitions) partition.append(...numbers(round * 10, round * 10 + 10))
    await new Promise((resolve) => setTimeout(resolve, (round * 7) % 20))
    relay.cut()
  }
  await eventually(() => lagOf(sync) === 0n, 'drained')
  const held = await readAll(`iggy://iggy:iggy@127.0.0.1:${central.listener.port}`, 'site-7', 'temp', 3)
  assert.deepEqual(held, [numbers(0, 300), numbers(0, 300), numbers(0, 300)])
})

/** A link through a relay that was found to be fast. */
async function startOnFastLink(context: TestContext, requestTimeoutMinMs: number) {
  const central = await startProtocolServer()
  context.after(() => central[Symbol.asyncDispose]())
  const relay = await TcpRelay.open(() => central.listener.port)
  context.after(() => relay.close())
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  const options = to(relay.port, '?generation=classic')
  const [upstream] = options.upstreams
  assert.ok(upstream && partition)
  const sync = await start(context, source, { ...options, upstreams: [{ ...upstream, requestTimeoutMinMs }] })
  for (let round = 0; round < 20; round++) {
    partition.append(`r${round}`)
    await eventually(() => lagOf(sync) === 0n, 'learns that the link is fast')
  }
  const held = () => readAll(`iggy://iggy:iggy@127.0.0.1:${central.listener.port}`, 'site-7', 'temp', 1)
  return { relay, partition, sync, held }
}

test('a link whose round trip grew while it was down comes back, and carries records', async (context) => {
  const { relay, partition, sync, held } = await startOnFastLink(context, 20)
  relay.delayMs = 100
  relay.cut()
  partition.append('r20')
  await eventually(() => lagOf(sync) === 0n, 'learns that the link is slow')
  assert.deepEqual(await held(), [numbers(0, 21)])
})

test('a record that takes long on a slow link gets through, though small ones are answered at once', async (context) => {
  const { relay, partition, sync, held } = await startOnFastLink(context, 100)
  relay.bytesPerSecond = 20_000
  const large = 'x'.repeat(30_000)
  partition.append(large)
  await eventually(() => lagOf(sync) === 0n, 'learns that the link is slow')
  assert.deepEqual(await held(), [[...numbers(0, 20), large]])
})

test('a large record that is found at the tail again takes as long, and the next ones go on behind it', async (context) => {
  const { relay, partition, sync, held } = await startOnFastLink(context, 100)
  relay.bytesPerSecond = 20_000
  const large = 'x'.repeat(15_000)
  partition.append(large)
  await eventually(() => lagOf(sync) === 0n, 'the large one is there')
  relay.cut()
  partition.append('r21')
  await eventually(() => lagOf(sync) === 0n, 'the next one is there')
  assert.deepEqual(await held(), [[...numbers(0, 20), large, 'r21']])
})

test('over HTTP too, where an earlier process sent it, so that its size is news', async (context) => {
  const log = new MemoryLog()
  const [tcp, http] = [await startProtocolServer({ log }), await startTestHttpOn(log)]
  context.after(() => tcp[Symbol.asyncDispose]())
  context.after(() => http[Symbol.asyncDispose]())
  const relay = await TcpRelay.open(() => Number(new URL(http.url).port))
  context.after(() => relay.close())
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  const { upstreams, routes } = toUrl(`iggy+http://iggy:iggy@127.0.0.1:${relay.port}`)
  const slow = upstreams.map((one) => ({ ...one, requestTimeoutMinMs: 50, requestTimeoutInitialMs: 50 }))
  const large = 'x'.repeat(15_000)
  partition?.append(large)
  const before = await start(context, source, { upstreams: slow, routes })
  await eventually(() => lagOf(before) === 0n, 'the large one is there')
  await before.close()
  relay.bytesPerSecond = 20_000
  partition?.append('next')
  const sync = await start(context, source, { upstreams: slow, routes })
  await eventually(() => lagOf(sync) === 0n, 'the next one is there')
  const held = await readAll(`iggy://iggy:iggy@127.0.0.1:${tcp.listener.port}`, 'site-7', 'temp', 1)
  assert.deepEqual(held, [[large, 'next']])
})

test('the log tells each end of a link that stood, however short, and one failure of a series', async (context) => {
  const central = await startProtocolServer()
  context.after(() => central[Symbol.asyncDispose]())
  let target = central.listener.port
  const relay = await TcpRelay.open(() => target)
  context.after(() => relay.close())
  const told: string[] = []
  const tell = (event: string): void => void (event.startsWith('sync.link.') && told.push(event.slice(10)))
  const sync = await start(context, new MemorySource(), to(relay.port), [], { ...silentLogger, info: tell, warn: tell })
  for (let round = 1; round <= 3; round++) {
    await eventually(() => told.filter((each) => each === 'up').length === round, `up for the ${round}. time`)
    // Where nobody listens, so that it stays down for some attempts.
    if (round === 3) target = 1
    relay.cut()
  }
  await eventually(() => (sync.state().upstreams[0]?.failureCount ?? 0) >= 6, 'some attempts in vain')
  assert.deepEqual(told, ['up', 'down', 'up', 'down', 'up', 'down'])
})

test('an edge that starts again without its cursors goes on where the upstream stands', async (context) => {
  const central = await startProtocolServer()
  context.after(() => central[Symbol.asyncDispose]())
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  for (let round = 0; round < 6; round++) {
    const sync = await start(context, source, to(central.listener.port))
    partition?.append(...numbers(round * 100, round * 100 + 100))
    await eventually(() => lagOf(sync) < 60n || round % 2 === 1, 'some of it is there')
    await sync.close()
    if (round % 3 === 0) source.cursors.clear()
  }
  const sync = await start(context, source, to(central.listener.port))
  await eventually(() => lagOf(sync) === 0n, 'drained')
  const held = await readAll(`iggy://iggy:iggy@127.0.0.1:${central.listener.port}`, 'site-7', 'temp', 1)
  assert.deepEqual(held, [numbers(0, 600)])
})

test('an upstream that lost everything gets it again', async (context) => {
  let central = await startProtocolServer()
  const relay = await TcpRelay.open(() => central.listener.port)
  context.after(() => relay.close())
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  partition?.append(...numbers(0, 50))
  const sync = await start(context, source, to(relay.port))
  await eventually(() => lagOf(sync) === 0n, 'first time')
  await central[Symbol.asyncDispose]()
  central = await startProtocolServer({ log: new MemoryLog() })
  context.after(() => central[Symbol.asyncDispose]())
  const url = `iggy://iggy:iggy@127.0.0.1:${central.listener.port}`
  await eventually(async () => (await readAll(url, 'site-7', 'temp', 1).catch(() => [[]]))[0]?.length === 50, 'again')
  assert.deepEqual(await readAll(url, 'site-7', 'temp', 1), [numbers(0, 50)])
  assert.equal(sync.state().upstreams[0]?.partitions[0]?.resentCount, 50n)
})

for (const protocol of ['iggy', 'iggy+http'] as const) {
  test(`${protocol}: a topic that is deleted upstream is made again and filled, without a new message`, async (context) => {
    const log = new MemoryLog()
    const [tcp, http] = [await startProtocolServer({ log }), await startTestHttpOn(log)]
    context.after(() => tcp[Symbol.asyncDispose]())
    context.after(() => http[Symbol.asyncDispose]())
    const port = protocol === 'iggy' ? tcp.listener.port : Number(new URL(http.url).port)
    const source = new MemorySource()
    const [first, second] = source.addTopic('sensors', 'temp', 2)
    second?.append(...numbers(0, 20))
    const url = `${protocol}://iggy:iggy@127.0.0.1:${port}`
    const sync = await start(context, source, {
      upstreams: [{ name: 'central', url, ...FAST, topicCheckIntervalMs: 20 }],
      routes: [{ from: 'sensors/*', to: 'central:site-7/{topic}' }],
    })
    await eventually(() => lagOf(sync) === 0n, 'drained')
    const readable = `iggy://iggy:iggy@127.0.0.1:${tcp.listener.port}`
    await using client = await connect(readable)
    for (const again of ['delete it', 'delete it and make another of that name']) {
      await client.topics.delete('site-7', 'temp')
      if (again !== 'delete it') await client.topics.create('site-7', 'temp', { partitions: 2 })
      await eventually(async () => {
        const [, second] = await readAll(readable, 'site-7', 'temp', 2).catch(() => [])
        return second?.length === 20
      }, `${again}: it is there again`)
    }
    // The first partition has the topic made anew: the second one, with nothing to send, must not take it for its own.
    await client.topics.delete('site-7', 'temp')
    first?.append('one more')
    await eventually(async () => {
      const counts = (await readAll(readable, 'site-7', 'temp', 2).catch(() => [])).map(({ length }) => length)
      return counts[0] === 1 && counts[1] === 20
    }, 'all partitions are there again')
  })

  test(`${protocol}: so is one that is deleted and made again while records go on coming`, async (context) => {
    const log = new MemoryLog()
    const [tcp, http] = [await startProtocolServer({ log }), await startTestHttpOn(log)]
    context.after(() => tcp[Symbol.asyncDispose]())
    context.after(() => http[Symbol.asyncDispose]())
    const port = protocol === 'iggy' ? tcp.listener.port : Number(new URL(http.url).port)
    const source = new MemorySource()
    const [partition] = source.addTopic('sensors', 'temp', 1)
    partition?.append(...numbers(0, 20))
    const url = `${protocol}://iggy:iggy@127.0.0.1:${port}`
    const sync = await start(context, source, {
      upstreams: [{ name: 'central', url, ...FAST, topicCheckIntervalMs: 20 }],
      routes: [{ from: 'sensors/*', to: 'central:site-7/{topic}' }],
    })
    await eventually(() => lagOf(sync) === 0n, 'drained')
    const readable = `iggy://iggy:iggy@127.0.0.1:${tcp.listener.port}`
    await using client = await connect(readable)
    await client.topics.delete('site-7', 'temp')
    await client.topics.create('site-7', 'temp')
    partition?.append(...numbers(20, 25))
    await eventually(async () => {
      const [all = []] = await readAll(readable, 'site-7', 'temp', 1).catch(() => [])
      return new Set(all).size === 25
    }, 'everything is there again')
  })
}

for (const [protocol, bytes] of [
  ['iggy', 'POISON'],
  ['iggy+http', btoa('POISON')],
] as const) {
  test(`${protocol}: a record at which the peer hangs up is set aside, and none of the partitions beside it`, async (context) => {
    const log = new MemoryLog()
    const [tcp, http] = [await startProtocolServer({ log }), await startTestHttpOn(log)]
    context.after(() => tcp[Symbol.asyncDispose]())
    context.after(() => http[Symbol.asyncDispose]())
    const targetPort = protocol === 'iggy' ? tcp.listener.port : Number(new URL(http.url).port)
    const relay = await TcpRelay.open(() => targetPort)
    context.after(() => relay.close())
    relay.hangsUpAt = bytes
    const source = new MemorySource()
    const partitions = source.addTopic('sensors', 'temp', 4)
    partitions[0]?.append('POISON', ...numbers(0, 20))
    for (const partition of partitions.slice(1)) partition.append(...numbers(0, 20))
    const deadLetters: DeadLetter[] = []
    const { upstreams, routes } = toUrl(`${protocol}://iggy:iggy@127.0.0.1:${relay.port}`)
    const quick = upstreams.map((one) => ({ ...one, maxRefusals: 2, retryDelayMaxMs: 20, settleMs: 10 }))
    const sync = await start(context, source, { upstreams: quick, routes }, deadLetters)
    await eventually(() => lagOf(sync) === 0n, 'drained')
    assert.deepEqual(
      deadLetters.map(({ partitionId, offset, reason }) => [partitionId, offset, reason.code]),
      [[0, 0n, 'EDGE_CONNECTION_LOST']],
    )
    const held = await readAll(`iggy://iggy:iggy@127.0.0.1:${tcp.listener.port}`, 'site-7', 'temp', 4)
    assert.deepEqual(held, Array(4).fill(numbers(0, 20)))
  })
}

test('over HTTPS an upstream is proven by the authority and the name that are configured', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'sync-https-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const made = await loadCertificate({ type: 'self-signed', directory: folder }, systemClock)
  const [cert_file, key_file] = [join(folder, 'ca.pem'), join(folder, 'key.pem')]
  writeFileSync(cert_file, made.certificatePem)
  writeFileSync(key_file, made.privateKeyPem)
  const tls = { enabled: true, cert_file, key_file }
  const central = await startTestHttpOn(new MemoryLog(), { settings: { 'http.tls': tls } })
  context.after(() => central[Symbol.asyncDispose]())
  const url = `iggy+http://iggy:iggy@127.0.0.1:${central.http.port}?tls=true&tls_domain=localhost`
  const unproven = await start(context, new MemorySource(), toUrl(url))
  await eventually(() => unproven.state().upstreams[0]?.failureKind === 'certificate', 'refused by name')
  const proven = await start(context, new MemorySource(), toUrl(`${url}&tls_ca_file=${cert_file}`))
  await eventually(() => proven.state().upstreams[0]?.link === 'up', 'trusted')
})

test('an upstream that ends each connection with its answer is not asked because of that', async (context) => {
  let statsCount = 0
  const server = createServer((request, response) => {
    if (request.url === '/stats') statsCount++
    const body = request.url === '/users/login' ? '{"access_token":{"token":"t"}}' : '{"process_id":1,"start_time":1}'
    response.setHeader('connection', 'close').end(body)
  })
  const ended = context.mock.fn()
  server.on('connection', (socket) => socket.once('close', ended))
  const { sync, port } = await startOverHttp(context, server)
  await eventually(() => sync.state().upstreams[0]?.link === 'up' && ended.mock.callCount() >= 2, 'login and a look')
  // Whoever asks because of an end has asked again by the time a round trip of our own is over.
  for (let round = 0; round < 3; round++) await fetch(`http://127.0.0.1:${port}/`)
  assert.equal(statsCount, 1)
})

test('an upstream that closes idle connections is looked at for the one that carried work, not for the look', async (context) => {
  let [statsCount, ended] = [0, 0]
  const idle = new Set<Socket>()
  const server = createServer((request, response) => {
    idle.delete(request.socket)
    response.once('close', () => idle.add(request.socket))
    if (request.url === '/stats') statsCount++
    response.end(request.url === '/users/login' ? '{"access_token":{"token":"t"}}' : '{"process_id":1,"start_time":1}')
  })
  // Says no limit, else our side would close first.
  server.keepAliveTimeout = 0
  // Not one that has just come, with its first request on the way: that would be an answer lost.
  const closeIdle = (): void => idle.forEach((socket) => void socket.destroy())
  server.on('connection', (socket) => socket.once('close', () => ended++))
  const { sync, port } = await startOverHttp(context, server)
  await eventually(() => sync.state().upstreams[0]?.link === 'up' && statsCount === 1, 'login and a look')
  await eventually(() => {
    closeIdle()
    return statsCount === 2
  }, 'a look, since the end of what carried the login may be news')
  const before = ended
  await eventually(() => {
    closeIdle()
    return ended > before
  }, 'the connection of the look has ended')
  // Whoever asks because of an end has asked again by the time a round trip of our own is over.
  for (let round = 0; round < 3; round++) {
    await fetch(`http://127.0.0.1:${port}/`)
    closeIdle()
  }
  assert.equal(statsCount, 2)
})

test('a dead upstream is named, and another one is none the slower', async (context) => {
  const central = await startProtocolServer()
  context.after(() => central[Symbol.asyncDispose]())
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  const sync = await start(context, source, {
    upstreams: [
      { name: 'dead', url: 'iggy://iggy:iggy@127.0.0.1:1', ...FAST },
      { name: 'central', url: `iggy://iggy:iggy@127.0.0.1:${central.listener.port}`, ...FAST },
    ],
    routes: [
      { from: 'sensors/*', to: 'dead:a/{topic}' },
      { from: 'sensors/*', to: 'central:a/{topic}' },
    ],
  })
  partition?.append(...numbers(0, 10))
  await eventually(() => lagIn(sync.state().upstreams[1]) === 0n, 'the living one has it', 2000)
  const [dead] = sync.state().upstreams
  assert.equal(lagIn(dead), 10n)
  assert.equal(dead?.failureKind, 'unreachable')
  assert.equal(dead?.reason?.code, 'EDGE_UPSTREAM_UNREACHABLE')
  assert.ok(dead.nextAttemptInMs !== null || dead.link === 'connecting')
})

test('a wrong password blocks the link by name and never shows in the state', async (context) => {
  const central = await startProtocolServer()
  context.after(() => central[Symbol.asyncDispose]())
  const source = new MemorySource()
  source.addTopic('sensors', 'temp', 1)
  const url = `iggy://iggy:hidden@127.0.0.1:${central.listener.port}`
  const sync = await start(context, source, {
    upstreams: [{ name: 'c', url, ...FAST }],
    routes: [{ from: '*/*', to: 'c:a/b' }],
  })
  await eventually(() => sync.state().upstreams[0]?.link === 'blocked', 'blocked')
  const [upstream] = sync.state().upstreams
  assert.equal(upstream?.failureKind, 'refused')
  assert.equal(upstream?.reason?.code, 'EDGE_CREDENTIALS_INVALID')
  const shown = JSON.stringify(sync.state(), (_key, value) => (typeof value === 'bigint' ? String(value) : value))
  assert.ok(!shown.includes('hidden'))
})

test('a record that no frame can carry goes to the dead letters, and the next ones go on', async (context) => {
  const central = await startProtocolServer({ tcp: { max_request_size: 64 * 1024 } })
  context.after(() => central[Symbol.asyncDispose]())
  const source = new MemorySource()
  const [partition] = source.addTopic('sensors', 'temp', 1)
  const deadLetters: DeadLetter[] = []
  const options = to(central.listener.port, '?generation=classic')
  const sync = await start(
    context,
    source,
    { ...options, upstreams: options.upstreams.map((one) => ({ ...one, maxRefusals: 2 })) },
    deadLetters,
  )
  partition?.append('before')
  partition?.append('x'.repeat(100 * 1024))
  partition?.append('after')
  await eventually(() => lagOf(sync) === 0n, 'the record is set aside and the others are there')
  assert.deepEqual(await readAll(`iggy://iggy:iggy@127.0.0.1:${central.listener.port}`, 'site-7', 'temp', 1), [
    ['before', 'after'],
  ])
  assert.deepEqual(
    deadLetters.map(({ offset, payloadBytes }) => [offset, payloadBytes.length]),
    [[1n, 100 * 1024]],
  )
})

test('a configuration that cannot work is refused before anything starts', async () => {
  const source = new MemorySource()
  const ports = { log: source, cursors: source, clock: systemClock, logger: silentLogger }
  const options = { upstreams: [{ name: 'c', url: 'nonsense' }], routes: [{ from: 'a/*', to: 'd:x/y' }] }
  await assert.rejects(
    startSync(options, ports),
    (error: unknown) => error instanceof EdgeError && error.code === 'EDGE_CONFIG_INVALID',
  )
})
