/** Iggy's binary protocol over plain QUIC, with real sockets: a connection is a client, a stream is a request. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { type QuicEdge, startPlainQuic } from '../../../src/quic-edge/index.ts'
import { serveIggyClients } from '../../../src/runtime/iggy-sessions.ts'
import { STREAM_CLIENT_CODES } from '../../../src/runtime/server/index.ts'
import { decodeReplyFrame, writeRequestFrame } from '../../../src/sdk/wire/classic/frame.ts'
import { CODE, type CommandCode } from '../../../src/sdk/wire/codes.ts'
import { decodeResponse, type Request, type ResponseBody } from '../../../src/sdk/wire/commands/index.ts'
import { Writer } from '../../../src/sdk/wire/writer.ts'
import { batchOf } from '../../support/broker-world.ts'
import { startEdgeProcess } from '../../support/edge-process.ts'
import { MemoryLog } from '../../support/memory-log.ts'
import type { BodyOf } from '../../support/protocol-clients.ts'
import { startProtocolServer, type TestServer } from '../../support/protocol-server.ts'
import { UdpQuicClient, within } from '../../support/quic/udp-client.ts'

const PING = Buffer.from('0400000001000000', 'hex')
const ROOT = { username: 'iggy', password: 'iggy', version: '', context: '' }
const TOPIC = { stream: 's', topic: 't' }

/** A classic client: each request on a stream of its own. */
class QuicClient {
  readonly quic: UdpQuicClient

  constructor(quic: UdpQuicClient) {
    this.quic = quic
  }

  async ask<C extends CommandCode>(code: C, body: BodyOf<C>): Promise<ResponseBody<C>> {
    const writer = new Writer()
    writeRequestFrame(writer, { code, body } as Request)
    const { bytes, resetCode } = await this.quic.request(writer.toBytes())
    assert.equal(resetCode, undefined)
    const { status, payloadView } = decodeReplyFrame(bytes)
    assert.equal(status, 0)
    return decodeResponse('classic', code, payloadView)
  }

  send(text: string): Promise<unknown> {
    const partitioning = { kind: 'partition', partitionId: 0 } as const
    return this.ask(CODE.sendMessages, { ...TOPIC, partitioning, batch: batchOf([0n, text]) })
  }
}

interface Rig {
  readonly running: TestServer
  readonly log: MemoryLog
  readonly edge: QuicEdge
  /** Logged in, unless told otherwise. */
  connect(login?: BodyOf<typeof CODE.loginUser> | null): Promise<QuicClient>
}

async function open(context: TestContext): Promise<Rig> {
  const directory = mkdtempSync(join(tmpdir(), 'edge-quic-'))
  const log = new MemoryLog(() => systemClock.wallUs())
  const running = await startProtocolServer({ log })
  const edge = await startPlainQuic(
    {
      host: '127.0.0.1',
      port: 0,
      certificate: { type: 'self-signed', directory },
      retry: 'auto',
      logger: silentLogger,
    },
    serveIggyClients(running.server),
  )
  context.after(async () => {
    await edge.close({ graceMs: 100 })
    await running[Symbol.asyncDispose]()
    rmSync(directory, { recursive: true })
  })
  return {
    running,
    log,
    edge,
    async connect(login = ROOT) {
      const quic = await UdpQuicClient.connect({ address: `127.0.0.1:${edge.port}` })
      context.after(() => quic[Symbol.asyncDispose]())
      const client = new QuicClient(quic)
      if (login !== null) await client.ask(CODE.loginUser, login)
      return client
    },
  }
}

async function createTopic(client: QuicClient): Promise<void> {
  await client.ask(CODE.createStream, { name: 's', options: [] })
  await client.ask(CODE.createTopic, { stream: 's', name: 't', partitionsCount: 1, replicationFactor: 1, options: [] })
}

test('a login on one stream holds for all others, and a connection is one client', async (context) => {
  const rig = await open(context)
  const client = await rig.connect()
  const me = await client.ask(CODE.getMe, null)
  assert.equal(me?.userId, 0)
  assert.equal(me?.transport, 2, 'transport 2 is QUIC')
  assert.match(me?.address ?? '', /^127\.0\.0\.1:\d+$/)
  await rig.connect()
  assert.equal(rig.running.server.connectionCount, 2)
})

test('sends on several streams wait for one sync, and what was sent is polled back whole', async (context) => {
  const rig = await open(context)
  const client = await rig.connect()
  await createTopic(client)
  rig.log.holdSyncs = true
  const sends = Array.from({ length: 20 }, (_, at) => client.send(`${at}`.repeat(50_000)))
  // A request that comes after them passes them.
  await client.ask(CODE.ping, null)
  while ((rig.log.partition(1)?.nextOffset ?? 0n) < 20n) await client.ask(CODE.ping, null)
  rig.log.holdSyncs = false
  rig.log.syncNow()
  await Promise.all(sends)
  const polled = await client.ask(CODE.pollMessages, {
    ...TOPIC,
    consumer: { kind: 'consumer', id: 1 },
    partitionId: 0,
    strategy: { kind: 'first' },
    count: 100,
    autoCommit: false,
  })
  assert.equal(polled.messageCount, 20)
})

test('a request that is none is reset without a response, and the connection lives on', async (context) => {
  const rig = await open(context)
  const client = await rig.connect(null)
  for (const broken of ['0300000001000000', 'ffffffff01000000', '16030100', '2000000026000000']) {
    const { bytes, resetCode } = await client.quic.request(Buffer.from(broken, 'hex'))
    assert.equal(bytes.length, 0, broken)
    assert.equal(resetCode, 0, broken)
  }
  assert.equal((await client.quic.request(PING)).bytes.toString('hex'), '0000000000000000')
})

test('a client whose user is deleted learns it by the end of its connection', async (context) => {
  const rig = await open(context)
  const root = await rig.connect()
  const user = { username: 'other', password: 'secret' }
  await root.ask(CODE.createUser, { ...user, status: 1, permissions: null, options: [] })
  const other = await rig.connect({ ...ROOT, ...user })
  await root.ask(CODE.deleteUser, { user: 'other' })
  const { code, isApplication } = await within(other.quic.closed, 'the end')
  assert.deepEqual([code, isApplication], [STREAM_CLIENT_CODES.authFailed, true])
  await root.ask(CODE.ping, null)
})

test('a client that is gone leaves its groups', async (context) => {
  const rig = await open(context)
  const root = await rig.connect()
  await createTopic(root)
  await root.ask(CODE.createConsumerGroup, { ...TOPIC, name: 'g' })
  const member = await rig.connect()
  await member.ask(CODE.joinConsumerGroup, { ...TOPIC, group: 'g' })
  const count = async () => (await root.ask(CODE.getConsumerGroup, { ...TOPIC, group: 'g' }))?.members.length
  assert.equal(await count(), 1)
  member.quic.connection.close(0, 'done')
  while ((await count()) !== 0) await root.ask(CODE.ping, null)
})

test('an edge that runs by itself serves it where it is turned on, and says so everywhere', async (context) => {
  const dataPath = mkdtempSync(join(tmpdir(), 'edge-quic-'))
  context.after(() => rmSync(dataPath, { recursive: true }))
  await using edge = await startEdgeProcess({
    dataPath,
    environment: { EDGE_QUIC__ENABLED: 'true', IGGY_ROOT_USERNAME: 'iggy', IGGY_ROOT_PASSWORD: 'iggy' },
  })
  const quic = await UdpQuicClient.connect({ address: edge.quic })
  context.after(() => quic[Symbol.asyncDispose]())
  const client = new QuicClient(quic)
  await client.ask(CODE.loginUser, ROOT)
  const cluster = await client.ask(CODE.getClusterMetadata, null)
  assert.equal(cluster.nodes[0]?.quicPort, Number(edge.quic.split(':').at(-1)))
  const authorization = `Basic ${Buffer.from('iggy:iggy').toString('base64')}`
  const status = await fetch(`http://${edge.http}/edge/overview`, { headers: { authorization } })
  assert.match(await status.text(), new RegExp(`"${edge.quic}"`))
  const metrics = await (await fetch(`http://${edge.http}/metrics`, { headers: { authorization } })).text()
  assert.match(metrics, /^edge_quic_connections 1$/m)
  assert.match(metrics, /^edge_quic_refused_connections_total\{reason="limit"\} 0$/m)
  const closed = within(quic.closed, 'the end')
  assert.equal(await edge.stop(), 0)
  assert.equal((await closed).code, STREAM_CLIENT_CODES.shutdown)
})
