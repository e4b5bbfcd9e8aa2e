/** Where a device's readings go, and what it reads, when the topic is deleted, made anew or renamed meanwhile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../../../../src/sdk/index.ts'
import type { Frame } from '../../../../src/sdk/wire/edge/index.ts'
import { EdgeDevice } from '../../../support/edge-device.ts'
import { type EdgeWorld, startEdgeWorld } from '../../../support/edge-world.ts'

const TOPIC_NOT_FOUND = 7
const OFFSET_GONE = 21
const bytesOf = (text: string) => new TextEncoder().encode(text)
const publish = (sequence: number, text: string): Frame => ({
  type: 'publish',
  alias: 1,
  sequence,
  time: null,
  value: bytesOf(text),
})

/** A device with a token for one topic, declared as alias 1. */
async function connectDevice({ edge, call }: EdgeWorld, tokenName = 'pumps'): Promise<EdgeDevice> {
  const body = { name: tokenName, device: 'dev-1', publish: ['plant/pumps'], subscribe: ['plant/pumps'] }
  const { token } = (await call('POST', '/edge/device-tokens', { body })).body as { token: string }
  const port = Number(edge.addresses.webtransport.split(':').at(-1))
  const device = await EdgeDevice.connect({ port, certificateSha256: edge.certificateSha256() ?? '' })
  const auth = bytesOf(token)
  device.send({ type: 'hello', minVersion: 1, maxVersion: 1, name: 'dev-1', auth, epoch: 7, lanes: [] })
  device.send({ type: 'alias', alias: 1, topic: 'plant/pumps', kind: 0 })
  return device
}

async function connectDeclared(world: EdgeWorld, tokenName?: string): Promise<EdgeDevice> {
  const device = await connectDevice(world, tokenName)
  await device.next('alias-ok')
  return device
}

async function readAll(client: Client, topic: string): Promise<string[]> {
  const strategy = { kind: 'first' } as const
  const { messages } = await client.messages.poll('plant', topic, { partitionId: 0, strategy, count: 100 })
  return messages.map(({ payload }) => new TextDecoder().decode(payload))
}

test('readings follow the name of their topic, never its number, and wait while nothing has the name', async () => {
  await using world = await startEdgeWorld({ EDGE_WEBTRANSPORT__ENABLED: 'true' })
  const client = await world.connect()
  await client.streams.create('plant')
  const { id } = await client.topics.create('plant', 'pumps')
  const device = await connectDeclared(world)
  device.send(publish(1, 'first'))
  await device.next('ack')

  await client.topics.delete('plant', 'pumps')
  assert.equal((await client.topics.create('plant', 'secret')).id, id, 'the number is given again')
  device.send(publish(2, 'second'))
  const { code, first, retryMs } = await device.next('nack')
  assert.deepEqual([code, first], [TOPIC_NOT_FOUND, 2])
  assert.ok(retryMs !== null, 'the device keeps the reading')

  await client.topics.create('plant', 'pumps')
  device.send(publish(2, 'second'))
  assert.equal((await device.next('ack')).upTo, 2)
  assert.deepEqual(await readAll(client, 'secret'), [])
  assert.deepEqual(await readAll(client, 'pumps'), ['second'])
  device.close()
})

test('readings that were promised to be durable are not put into a topic of that name that promises less', async () => {
  await using world = await startEdgeWorld({ EDGE_WEBTRANSPORT__ENABLED: 'true' })
  const client = await world.connect()
  await client.streams.create('plant')
  await client.topics.create('plant', 'pumps')
  const device = await connectDeclared(world)
  await client.topics.delete('plant', 'pumps')
  await client.topics.create('plant', 'pumps', { options: { durability: 'buffered' } })
  device.send(publish(1, 'first'))
  assert.equal((await device.next('nack')).code, TOPIC_NOT_FOUND)
  device.send({ type: 'alias', alias: 1, topic: 'plant/pumps', kind: 0 }, publish(1, 'first'))
  assert.equal((await device.next('ack')).promise, 1)
  assert.deepEqual(await readAll(client, 'pumps'), ['first'])
  device.close()
})

test('a subscription ends when its topic is deleted or renamed, and not when others are', async () => {
  await using world = await startEdgeWorld({ EDGE_WEBTRANSPORT__ENABLED: 'true' })
  const client = await world.connect()
  await client.streams.create('plant')
  await client.topics.create('plant', 'pumps')
  const device = await connectDeclared(world)
  const window = { bytes: 1000, messages: 10 }
  for (const change of ['delete', 'rename'] as const) {
    device.send({ type: 'subscribe', subscription: 3, topic: 'plant/pumps', from: 'new', window })
    await device.next('subscribed')
    await client.topics.create('plant', `other-${change}`)
    device.send(publish(change === 'delete' ? 1 : 2, change))
    assert.equal(new TextDecoder().decode((await device.next('message')).body), change)
    if (change === 'delete') await client.topics.delete('plant', 'pumps')
    else await client.topics.update('plant', 'pumps', 'renamed')
    const { subscription, code } = await device.next('end')
    assert.deepEqual([subscription, code], [3, TOPIC_NOT_FOUND])
    await client.topics.create('plant', 'pumps')
  }
  device.close()
})

test('a device that comes back to a topic made anew under its name gets all of it, and is told', async () => {
  await using world = await startEdgeWorld({ EDGE_WEBTRANSPORT__ENABLED: 'true' })
  const client = await world.connect()
  await client.streams.create('plant')
  await client.topics.create('plant', 'pumps')
  const subscribe = { type: 'subscribe', subscription: 3, topic: 'plant/pumps' } as const
  const window = { bytes: 1000, messages: 10 }
  const first = await connectDeclared(world)
  first.send(publish(1, 'a'), publish(2, 'b'), { ...subscribe, from: 'oldest', window })
  const { incarnation } = await first.next('subscribed')
  assert.ok(incarnation !== undefined)
  await first.next('message')
  assert.equal((await first.next('message')).offset, 1n)
  first.close()

  await client.topics.delete('plant', 'pumps')
  await client.topics.create('plant', 'pumps')
  const messages = ['c', 'd', 'e'].map((text) => ({ payload: bytesOf(text) }))
  await client.messages.send('plant', 'pumps', { kind: 'partition', partitionId: 0 }, messages)
  const second = await connectDeclared(world, 'pumps again')
  second.send({ ...subscribe, from: 2n, window, options: { incarnation } })
  assert.equal((await second.next('subscribed')).next, 0n)
  assert.equal((await second.next('error')).code, OFFSET_GONE)
  assert.equal(new TextDecoder().decode((await second.next('message')).body), 'c')
  second.close()
})

test('readings declared for a topic that is not there yet are kept, and taken once it is', async () => {
  await using world = await startEdgeWorld({ EDGE_WEBTRANSPORT__ENABLED: 'true' })
  const client = await world.connect()
  await client.streams.create('plant')
  const device = await connectDevice(world)
  device.send(publish(1, 'early'))
  assert.equal((await device.next('error')).code, TOPIC_NOT_FOUND)
  assert.ok((await device.next('nack')).retryMs !== null, 'the device keeps the reading')
  device.send(publish(1, 'early'))
  assert.equal((await device.next('nack')).code, TOPIC_NOT_FOUND)
  await client.topics.create('plant', 'pumps')
  assert.equal((await device.next('alias-ok')).promise, 0)
  device.send(publish(1, 'early'))
  assert.equal((await device.next('ack')).upTo, 1)
  assert.equal(device.frames.filter(({ type }) => type === 'error').length, 0, 'the refusal is told once')
  assert.deepEqual(await readAll(client, 'pumps'), ['early'])
  device.close()
})
