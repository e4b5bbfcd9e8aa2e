/** The calls that guides show, word by word, as anybody would paste them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestHttp, type TestHttp } from '../../support/http-server.ts'

/** iggy:iggy, as guides print it. */
const BASIC = 'Basic aWdneTppZ2d5'

async function call(server: TestHttp, method: string, path: string, body?: string): Promise<Response> {
  const headers: Record<string, string> = { authorization: BASIC, 'content-type': 'application/json' }
  return await fetch(server.url + path, { method, headers, ...(body === undefined ? {} : { body }) })
}

const MESSAGE = `{
    "partitioning": {"kind": "message_key", "value": "Y3VzdC00NTY="},
    "messages": [
      {"id": null, "payload": "eyJldmVudCI6Im9yZGVyLmNyZWF0ZWQifQ==", "headers": null}
    ]
  }`
const POLL =
  '/streams/orders/topics/order-events/messages?consumer_group=processors&partition_id=0&strategy=next&count=10&auto_commit=true'

test('G1 to G4: create, publish and consume as a group that nobody has made', async () => {
  await using server = await startTestHttp()
  const stream = await call(server, 'POST', '/streams', '{"stream_id": null, "name": "orders"}')
  assert.equal(stream.status, 200)
  assert.equal(((await stream.json()) as { name: string }).name, 'orders')
  const again = await call(server, 'POST', '/streams', '{"stream_id": null, "name": "orders"}')
  assert.equal(again.status, 400)
  assert.equal(((await again.json()) as { id: number }).id, 1012)

  const topic = await call(
    server,
    'POST',
    '/streams/orders/topics',
    '{"topic_id": null, "name": "order-events", "partitions_count": 4, "message_expiry": null}',
  )
  assert.equal(topic.status, 200)
  assert.equal(((await topic.json()) as { partitions: unknown[] }).partitions.length, 4)

  const sent = await call(server, 'POST', '/streams/orders/topics/order-events/messages', MESSAGE)
  assert.equal(sent.status, 201)
  const confirmed = (await sent.json()) as { confirmations: { partition_id: number; base_offset: number }[] }
  // cust-456 lies in partition 0 of 4, as on Iggy's servers.
  assert.deepEqual(confirmed.confirmations, [{ stream_id: 0, topic_id: 0, partition_id: 0, base_offset: 0 }])
  assert.equal(sent.headers.get('iggy-durability'), 'durable')

  const first = (await (await call(server, 'GET', POLL)).json()) as { count: number; messages: { payload: string }[] }
  assert.equal(first.count, 1)
  assert.equal(Buffer.from(first.messages[0]?.payload ?? '', 'base64').toString(), '{"event":"order.created"}')

  await call(server, 'POST', '/streams/orders/topics/order-events/messages', MESSAGE)
  const second = (await (await call(server, 'GET', POLL)).json()) as { messages: { header: { offset: number } }[] }
  assert.deepEqual(
    second.messages.map(({ header }) => header.offset),
    [1],
  )
  const third = (await (await call(server, 'GET', POLL)).json()) as { count: number }
  assert.equal(third.count, 0)

  const groups = (await (await call(server, 'GET', '/streams/orders/topics/order-events/consumer-groups')).json()) as {
    name: string
  }[]
  assert.deepEqual(
    groups.map(({ name }) => name),
    ['processors'],
  )
})

test('G4: a single consumer and a group of the same name do not share an offset', async () => {
  await using server = await startTestHttp()
  await call(server, 'POST', '/streams', '{"name": "orders"}')
  await call(server, 'POST', '/streams/orders/topics', '{"name": "order-events", "partitions_count": 1}')
  await call(server, 'POST', '/streams/orders/topics/order-events/messages', MESSAGE)
  await call(server, 'GET', POLL)
  const single = POLL.replace('consumer_group', 'consumer_id')
  assert.equal(((await (await call(server, 'GET', single)).json()) as { count: number }).count, 1)
})

test('G5 to G7: statistics, banner and metrics answer without a header on this machine', async () => {
  await using server = await startTestHttp()
  const stats = await fetch(`${server.url}/stats`)
  assert.equal(stats.status, 200)
  assert.equal(((await stats.json()) as { streams_count: number }).streams_count, 0)
  const banner = await fetch(`${server.url}/`)
  assert.equal(banner.status, 200)
  assert.equal(await banner.text(), 'Iggy API')
  const metrics = await (await fetch(`${server.url}/metrics`)).text()
  assert.match(metrics, /^streams 0$/m)
  assert.match(metrics, /^http_requests_total \d+$/m)
  assert.match(metrics, /# EOF\n$/)
})
