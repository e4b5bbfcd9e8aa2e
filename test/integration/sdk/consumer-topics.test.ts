/** What a consumer reads when its topic is deleted and made anew under its name. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Client, type CommitMode, type ConsumerOptions, connect } from '../../../src/sdk/index.ts'
import { type EdgeWorld, startEdgeWorld } from '../../support/edge-world.ts'
import { TcpRelay } from '../../support/tcp-relay.ts'

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
/** A message that never comes would keep a consumer for ever. */
const PATIENCE_MS = 15_000
const READ = { stream: 'plant', topic: 'pumps', consumer: 'reader', partitionId: 0 } as const

/** @returns a client of the edge, which has the topic with five messages now. */
async function withOldTopic(world: EdgeWorld): Promise<Client> {
  const admin = await world.connect()
  await admin.streams.create('plant')
  await admin.topics.create('plant', 'pumps')
  await fill(admin, 'old', 5)
  return admin
}

async function fill(client: Client, label: string, count: number): Promise<string[]> {
  const payloads = Array.from({ length: count }, (_, index) => `${label}${index}`)
  const messages = payloads.map((payload) => ({ payload: new TextEncoder().encode(payload) }))
  await client.messages.send('plant', 'pumps', { kind: 'partition', partitionId: 0 }, messages)
  return payloads
}

async function remake(client: Client, label: string, count: number): Promise<string[]> {
  await client.topics.delete('plant', 'pumps')
  await client.topics.create('plant', 'pumps')
  return fill(client, label, count)
}

/** Reads until everything of the second topic was seen; tells all that came. */
async function readUntil(
  client: Client,
  options: ConsumerOptions,
  wanted: ReadonlySet<string>,
  onMessage: (payload: string) => Promise<void>,
): Promise<string[]> {
  const seen: string[] = []
  const left = new Set(wanted)
  const consumer = client.consumer(options)
  const limit = setTimeout(() => consumer.stop(), PATIENCE_MS)
  for await (const { payload } of consumer) {
    seen.push(text(payload))
    left.delete(text(payload))
    if (left.size === 0) break
    await onMessage(text(payload))
  }
  clearTimeout(limit)
  return seen
}

async function relayed(context: TestContext, { tcpPort }: EdgeWorld): Promise<{ relay: TcpRelay; client: Client }> {
  const relay = await TcpRelay.open(() => tcpPort)
  const client = await connect(`iggy://iggy:iggy@127.0.0.1:${relay.port}?reconnection_interval=10ms`)
  context.after(async () => {
    await client.close()
    relay.close()
  })
  return { relay, client }
}

const COMMITS: readonly CommitMode[] = [{ kind: 'each' }, { kind: 'disabled' }, { kind: 'interval', intervalMs: 1 }]

for (const commit of COMMITS) {
  test(`commit ${commit.kind}: a topic made anew between two polls is read from its oldest message on`, async () => {
    await using world = await startEdgeWorld()
    const client = await world.connect()
    await client.streams.create('plant')
    await client.topics.create('plant', 'pumps')
    await fill(client, 'old', 5)
    const wanted = new Set(Array.from({ length: 20 }, (_, index) => `new${index}`))
    const other = await world.connect()
    const seen = await readUntil(client, { ...READ, commit }, wanted, async (payload) => {
      if (payload === 'old4') await remake(other, 'new', 20)
    })
    assert.deepEqual(new Set(seen.slice(5)), wanted)
  })

  test(`commit ${commit.kind}: so is one made anew while the connection was lost`, async (context) => {
    await using world = await startEdgeWorld()
    const admin = await withOldTopic(world)
    const { relay, client } = await relayed(context, world)
    const wanted = new Set(Array.from({ length: 20 }, (_, index) => `new${index}`))
    const seen = await readUntil(client, { ...READ, commit }, wanted, async (payload) => {
      if (payload !== 'old2') return
      await remake(admin, 'new', 20)
      relay.cut()
    })
    assert.deepEqual(seen.slice(0, 5), ['old0', 'old1', 'old2', 'old3', 'old4'])
    assert.deepEqual(new Set(seen.slice(5)), wanted)
  })
}

test('a topic made anew is read from its oldest message on although the connection is lost before that is noticed', async (context) => {
  await using world = await startEdgeWorld()
  const admin = await withOldTopic(world)
  const { relay, client } = await relayed(context, world)
  const wanted = new Set(Array.from({ length: 20 }, (_, index) => `new${index}`))
  const seen = await readUntil(client, { ...READ, commit: { kind: 'each' } }, wanted, async (payload) => {
    if (payload === 'old4') await remake(admin, 'new', 20)
    if (payload === 'new7') relay.cut()
  })
  assert.equal(seen[5], 'new5')
  assert.deepEqual(new Set(seen.slice(5)), wanted)
})

test('what was polled of a topic before it was made anew stores no offset of the new one', async (context) => {
  await using world = await startEdgeWorld()
  const admin = await withOldTopic(world)
  const { relay, client } = await relayed(context, world)
  const consumer = client.consumer({ ...READ, commit: { kind: 'each' } })
  for await (const { payload } of consumer) {
    if (text(payload) === 'old2') {
      await remake(admin, 'new', 20)
      relay.cut()
    }
    if (text(payload) === 'old4') consumer.stop()
  }
  assert.equal(await client.offsets.get({ kind: 'consumer', id: 'reader' }, 'plant', 'pumps', 0), null)
})

test('a lost connection alone makes a consumer read nothing twice', async (context) => {
  await using world = await startEdgeWorld()
  const admin = await withOldTopic(world)
  const { relay, client } = await relayed(context, world)
  const seen = await readUntil(
    client,
    { ...READ, commit: { kind: 'disabled' } },
    new Set(['more2']),
    async (payload) => {
      if (payload !== 'old2') return
      await fill(admin, 'more', 3)
      relay.cut()
    },
  )
  assert.deepEqual(seen, ['old0', 'old1', 'old2', 'old3', 'old4', 'more0', 'more1', 'more2'])
})

test('a consumer of one partition does not ask for all partitions of its topic each second', async () => {
  await using world = await startEdgeWorld()
  const client = await world.connect()
  await client.streams.create('plant')
  await client.topics.create('plant', 'pumps')
  const get = client.topics.get.bind(client.topics)
  let askedCount = 0
  client.topics.get = (...names) => {
    askedCount += 1
    return get(...names)
  }
  const consumer = client.consumer(READ)
  const limit = setTimeout(() => consumer.stop(), 2500)
  for await (const _message of consumer);
  clearTimeout(limit)
  assert.equal(askedCount, 1)
})
