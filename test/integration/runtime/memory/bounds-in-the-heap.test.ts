/** What may be configured by default fits into the heap that the executable has, and starts again. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { LOG_SETTINGS } from '../../../../src/log/index.ts'
import { MESSAGE_DEDUPLICATION_SETTINGS } from '../../../../src/runtime/broker/settings.ts'
import { connect } from '../../../../src/sdk/index.ts'
import { encodeRecords } from '../../../../src/sdk/wire/messages.ts'
import { type EdgeProcess, MAIN, startEdgeProcess } from '../../../support/edge-process.ts'

/** As in the executable. From the checkout V8 holds some 8 MiB more: the text of the sources. */
const COMMAND = [process.execPath, '--max-old-space-size=48', '--max-semi-space-size=1', '--v8-pool-size=1', MAIN]
const PARTITIONS_PER_TOPIC = 500
/** A route upstream that is away, for all topics. */
const ROUTES = `
[[sync.upstreams]]
name = "central"
url = "iggy+tcp://user:password@127.0.0.1:9"
[[sync.routes]]
from = "*/*"
to = "central:site/{topic}"
`

interface Place {
  readonly dataPath: string
  readonly config: string
}

function place(context: TestContext): Place {
  const folder = mkdtempSync(join(tmpdir(), 'edge-heap-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const config = join(folder, 'edge.toml')
  writeFileSync(config, ROUTES, { mode: 0o600 })
  return { dataPath: join(folder, 'data'), config }
}

const start = ({ dataPath, config }: Place, environment: Readonly<Record<string, string>>): Promise<EdgeProcess> =>
  startEdgeProcess({
    dataPath,
    command: COMMAND,
    arguments: ['--config', config],
    environment: { EDGE_WEBTRANSPORT__ENABLED: 'false', EDGE_LOG__DEFAULT_DURABILITY: 'buffered', ...environment },
  })

const connectTo = (edge: EdgeProcess) => connect(`iggy+tcp://iggy:iggy@${edge.tcp}`)

test('as many partitions as there may be, each with messages and a route', async (context) => {
  const folder = place(context)
  const topicCount = LOG_SETTINGS.max_partitions.default / PARTITIONS_PER_TOPIC
  const partitionIds = Array.from({ length: PARTITIONS_PER_TOPIC }, (_, partitionId) => partitionId)
  const payload = new Uint8Array(200)
  {
    await using edge = await start(folder, {})
    await using client = await connectTo(edge)
    await client.streams.create('s')
    for (let topic = 0; topic < topicCount; topic++) {
      await client.topics.create('s', `t${topic}`, { partitions: PARTITIONS_PER_TOPIC })
      const send = (partitionId: number) =>
        client.messages.send('s', `t${topic}`, { kind: 'partition', partitionId }, [{ payload }])
      for (let round = 0; round < 3; round++) await Promise.all(partitionIds.map(send))
    }
    await assert.rejects(client.topics.create('s', 'one-more'))
    assert.equal(await edge.stop(), 0)
  }
  await using edge = await start(folder, {})
  await using client = await connectTo(edge)
  let count = 0
  for (let topic = 0; topic < topicCount; topic++) {
    for (const partitionId of partitionIds) {
      const { messages } = await client.messages.poll('s', `t${topic}`, { partitionId, strategy: { kind: 'first' } })
      count += messages.length
    }
  }
  assert.equal(count, 3 * LOG_SETTINGS.max_partitions.default)
})

test('more topics with deduplication than ids are remembered for', async (context) => {
  const folder = place(context)
  const { max_entries, max_total_entries } = MESSAGE_DEDUPLICATION_SETTINGS
  const topicCount = max_total_entries.default / max_entries.default + 5
  const environment = { EDGE_MESSAGE_DEDUPLICATION__ENABLED: 'true', EDGE_MESSAGE_DEDUPLICATION__EXPIRY: '1 h' }
  const payload = new Uint8Array(20)
  const send = async (edge: EdgeProcess, topic: number, from: number): Promise<void> => {
    await using client = await connectTo(edge)
    const messages = Array.from({ length: 1000 }, (_, index) => ({ id: BigInt(from + index), payload }))
    await client.messages.send('s', `t${topic}`, { kind: 'balanced' }, messages)
  }
  {
    await using edge = await start(folder, environment)
    await using client = await connectTo(edge)
    await client.streams.create('s')
    for (let topic = 0; topic < topicCount; topic++) {
      await client.topics.create('s', `t${topic}`)
      for (let from = 1; from < max_entries.default; from += 1000) await send(edge, topic, from)
    }
    assert.equal(await edge.stop(), 0)
  }
  await using edge = await start(folder, environment)
  // What came last is still known.
  await send(edge, topicCount - 1, max_entries.default - 999)
  await using client = await connectTo(edge)
  const { currentOffset } = await client.messages.poll('s', `t${topicCount - 1}`, { partitionId: 0, count: 1 })
  assert.equal(currentOffset, BigInt(max_entries.default - 1))
})

test('polls over HTTP of as many tiny messages, or small headers, as there may be', async (context) => {
  await using edge = await start(place(context), {})
  await using client = await connectTo(edge)
  await client.streams.create('s')
  await client.topics.create('s', 'tiny')
  await client.topics.create('s', 'headed')
  const tiny = Array.from({ length: 1000 }, () => ({ payload: new Uint8Array(1) }))
  const one = Uint8Array.of(2, 1, 0, 0, 0, 107, 1, 1, 0, 0, 0, 5)
  const headers = new Uint8Array(8000 * one.length)
  for (let at = 0; at < headers.length; at += one.length) headers.set(one, at)
  for (let count = 0; count < 100; count++) await client.messages.send('s', 'tiny', { kind: 'balanced' }, tiny)
  for (let count = 0; count < 40; count++) {
    const batch = encodeRecords([{ payload: new Uint8Array(1), userHeaders: headers, originUs: 5n }])
    await client.messages.sendBatch('s', 'headed', { kind: 'balanced' }, batch)
  }
  for (const topic of ['tiny', 'headed']) {
    for (let offset = 0; offset < 40; ) {
      const query = `partition_id=0&kind=offset&value=${offset}&count=100000`
      const url = `http://${edge.http}/streams/s/topics/${topic}/messages?${query}`
      const answer = await fetch(url, { headers: { authorization: 'Basic aWdneTppZ2d5' } })
      const { messages } = (await answer.json()) as { messages: readonly unknown[] }
      assert.ok(messages.length > 0)
      offset += messages.length
    }
  }
})
