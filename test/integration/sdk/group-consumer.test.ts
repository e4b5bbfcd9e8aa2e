/** Members of a consumer group that stop, close and begin: nothing is handled twice, and nothing is left out. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Client, type ConsumerOptions, connect } from '../../../src/sdk/index.ts'
import { startProtocolServer } from '../../support/protocol-server.ts'

const GENERATIONS = ['classic', 'vsr'] as const
const COUNT = 10
const PLACE = { stream: 'site', topic: 'temp', group: 'workers' } as const

interface World {
  connected(): Promise<Client>
}

async function startWorld(context: TestContext, generation: string): Promise<World> {
  const server = await startProtocolServer()
  const { port } = server.listener
  const clients: Client[] = []
  context.after(async () => {
    for (const client of clients) await client.close()
    await server[Symbol.asyncDispose]()
  })
  const connected = async (): Promise<Client> => {
    const client = await connect(`iggy://iggy:iggy@127.0.0.1:${port}?heartbeat_interval=1h&generation=${generation}`)
    clients.push(client)
    return client
  }
  const admin = await connected()
  await admin.streams.create('site')
  await admin.topics.create('site', 'temp', { partitions: 1 })
  const messages = Array.from({ length: COUNT }, (_, index) => ({ payload: Uint8Array.of(index) }))
  await admin.messages.send('site', 'temp', { kind: 'partition', partitionId: 0 }, messages)
  return { connected }
}

/** What a member reads until it has `last`. */
async function readTo(client: Client, last: bigint, options: Partial<ConsumerOptions> = {}): Promise<bigint[]> {
  const offsets: bigint[] = []
  const consumer = client.consumer({ ...PLACE, ...options })
  for await (const { offset } of consumer) {
    offsets.push(offset)
    if (offset === last) consumer.stop()
  }
  return offsets
}

for (const generation of GENERATIONS) {
  test(`${generation}: a member that stops has handled what it was at, and the next one goes on behind it`, async (context) => {
    const { connected } = await startWorld(context, generation)
    const consumer = (await connected()).consumer({ ...PLACE, commit: { kind: 'interval', intervalMs: 60_000 } })
    const handled: bigint[] = []
    for await (const { offset } of consumer) {
      if (offset === 3n) consumer.stop()
      await new Promise((resolve) => setImmediate(resolve))
      handled.push(offset)
    }
    assert.deepEqual(handled, [0n, 1n, 2n, 3n])
    assert.deepEqual(await readTo(await connected(), 9n), [4n, 5n, 6n, 7n, 8n, 9n])
  })

  test(`${generation}: whoever closes, all is stored when it is done`, async (context) => {
    const { connected } = await startWorld(context, generation)
    const client = await connected()
    const consumer = client.consumer({ ...PLACE, commit: { kind: 'interval', intervalMs: 60_000 } })
    for await (const { offset } of consumer) if (offset === 4n) void consumer.close()
    await consumer.close()
    await client.close()
    assert.deepEqual(await readTo(await connected(), 9n), [4n, 5n, 6n, 7n, 8n, 9n])
  })

  test(`${generation}: whoever closes while it is joining is no member afterwards`, async (context) => {
    const { connected } = await startWorld(context, generation)
    const client = await connected()
    const consumer = client.consumer(PLACE)
    const join = client.groups.join.bind(client.groups)
    let closing: Promise<void> | undefined
    context.mock.method(client.groups, 'join', (...place: Parameters<typeof join>) => {
      const joining = join(...place)
      closing = consumer.close()
      return joining
    })
    for await (const { offset } of consumer) assert.fail(`read ${offset}`)
    await closing
    assert.equal((await client.groups.get(PLACE.stream, PLACE.topic, PLACE.group))?.members.length, 0)
  })

  test(`${generation}: a member whose group is deleted makes it anew, and goes on there`, async (context) => {
    const { connected } = await startWorld(context, generation)
    const admin = await connected()
    const consumer = (await connected()).consumer({ ...PLACE, commit: { kind: 'each' } })
    const offsets: bigint[] = []
    for await (const { offset } of consumer) {
      offsets.push(offset)
      if (offset !== 9n) continue
      if (offsets.length > COUNT) consumer.stop()
      else await admin.groups.delete('site', 'temp', 'workers')
    }
    const once = Array.from({ length: COUNT }, (_, index) => BigInt(index))
    assert.deepEqual(offsets, [...once, ...once])
  })

  test(`${generation}: a member that begins at an offset does so only where the group has not read yet`, async (context) => {
    const { connected } = await startWorld(context, generation)
    const start = { kind: 'offset', offset: 2n } as const
    assert.deepEqual(await readTo(await connected(), 5n, { start }), [2n, 3n, 4n, 5n])
    assert.deepEqual(await readTo(await connected(), 9n, { start }), [6n, 7n, 8n, 9n])
  })
}
