import assert from 'node:assert/strict'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { EdgeError } from '../../../src/errors.ts'
import type { Catalog, Stream, Topic } from '../../../src/log/api.ts'
import type { FileSystem } from '../../../src/log/io/file-system.ts'
import { streamAt, topicAt } from '../../support/by-number.ts'
import { CatalogWorld, fillStore, isCode, OPTIONS, seen } from '../../support/catalog-world.ts'

const world = new CatalogWorld()

beforeEach(() => world.create())
afterEach(() => world.destroy())

test('names, ids, options and partitions are there after a restart, with the same store id', async () => {
  let store = await world.open()
  await fillStore(store)
  const before = seen(store.catalog)
  const { storeId } = store.catalog
  store = await world.reopen(store)
  assert.deepEqual(seen(store.catalog), before)
  assert.deepEqual(store.catalog.storeId, storeId)
  assert.equal(store.catalog.topic(0, '../../escape')?.id, 1)
  assert.deepEqual(world.findings, [])
})

test('ids are the lowest free ones, listed in order', async () => {
  const { catalog } = await world.open()
  for (const name of ['a', 'b', 'c', 'd']) await catalog.createStream(name)
  await catalog.deleteStream(streamAt(catalog, 1))
  await catalog.deleteStream(streamAt(catalog, 0))
  assert.equal((await catalog.createStream('e')).id, 0)
  assert.equal((await catalog.createStream('f')).id, 1)
  assert.equal((await catalog.createStream('g')).id, 4)
  assert.deepEqual([...catalog.streams.keys()], [0, 1, 2, 3, 4])
})

test('a key is never given twice, over deletes, restarts and blocks', async () => {
  let store = await world.open()
  const given = new Set<number>()
  await store.catalog.createStream('s')
  for (let round = 0; round < 6; round++) {
    const topic = await store.catalog.createTopic(streamAt(store.catalog, 0), {
      name: 't',
      partitionCount: 30,
      options: OPTIONS,
    })
    for (const { key } of topic.partitions) {
      assert.ok(!given.has(key), `key ${key}`)
      given.add(key)
    }
    await store.catalog.deleteTopic(topicAt(store.catalog, 0, topic.id))
    if (round % 2 === 1) store = await world.reopen(store)
  }
  assert.equal(given.size, 180)
})

test('a deleted topic is gone at once, its files a few per turn, and the next one of its id starts anew', async () => {
  const store = await world.open()
  const { catalog, metadata, host } = store
  await catalog.createStream('s')
  await catalog.createTopic(streamAt(catalog, 0), { name: 't', partitionCount: 2, options: OPTIONS })
  for (let number = 0; number < 40; number++)
    writeFileSync(join(world.folder, `streams/0/topics/0/1/${number}.seg`), 'x')
  await metadata.createGroup(0, 0, 'g')
  metadata.setOffset(1, 'group', 0, 5n)
  await catalog.deleteTopic(topicAt(catalog, 0, 0))
  assert.equal(catalog.topic(0, 0), undefined)
  assert.deepEqual(host.removed, [1, 2])
  assert.ok(!existsSync(join(world.folder, 'streams/0/topics/0')))
  assert.equal(readdirSync(join(world.folder, 'trash')).length, 1)
  world.tasks.shift()?.()
  const left = readdirSync(join(world.folder, 'trash'), { recursive: true }).length
  assert.ok(left > 30, `one turn removes a bounded number of files, ${left} left`)
  world.drain()
  assert.deepEqual(readdirSync(join(world.folder, 'trash')), [])
  const again = await catalog.createTopic(streamAt(catalog, 0), { name: 't', partitionCount: 1, options: OPTIONS })
  assert.equal(again.id, 0)
  assert.deepEqual(metadata.groupsOf(0, 0), [])
  assert.equal(metadata.offset(again.partitions[0]?.key ?? 0, 'group', 0), undefined)
})

test('partitions are added behind the others and removed from the end, with new keys each time', async () => {
  let store = await world.open()
  await store.catalog.createStream('s')
  await store.catalog.createTopic(streamAt(store.catalog, 0), { name: 't', partitionCount: 2, options: OPTIONS })
  await store.catalog.addPartitions(topicAt(store.catalog, 0, 0), 2)
  await store.catalog.removePartitions(topicAt(store.catalog, 0, 0), 3)
  await store.catalog.addPartitions(topicAt(store.catalog, 0, 0), 1)
  assert.deepEqual(
    store.catalog.topic(0, 0)?.partitions.map(({ key, partitionId }) => [partitionId, key]),
    [
      [0, 1],
      [1, 5],
    ],
  )
  assert.deepEqual(store.host.removed, [2, 3, 4])
  store = await world.reopen(store)
  assert.deepEqual(
    store.catalog.topic(0, 0)?.partitions.map(({ key }) => key),
    [1, 5],
  )
  assert.deepEqual(readdirSync(join(world.folder, 'streams/0/topics/0')).sort(), ['1', '5', 'topic.json'])
})

test('wrong counts, names and limits are refused and leave nothing behind', async () => {
  const { catalog } = await world.open(world.fileSystem(), 1500)
  await catalog.createStream('s')
  await catalog.createTopic(streamAt(catalog, 0), { name: 't', partitionCount: 1, options: OPTIONS })
  const create = (name: string, partitionCount: number) =>
    catalog.createTopic(streamAt(catalog, 0), { name, partitionCount, options: OPTIONS })
  await assert.rejects(catalog.createStream('s'), isCode('EDGE_STREAM_NAME_TAKEN'))
  await assert.rejects(catalog.createStream(''), isCode('EDGE_NAME_INVALID'))
  await assert.rejects(create('t', 1), isCode('EDGE_TOPIC_NAME_TAKEN'))
  await assert.rejects(create('x'.repeat(256), 1), isCode('EDGE_NAME_INVALID'))
  await assert.rejects(create('u', 1001), isCode('EDGE_TOO_MANY_PARTITIONS'))
  await create('u', 1000)
  await assert.rejects(create('v', 500), isCode('EDGE_TOO_MANY_PARTITIONS'))
  await assert.rejects(catalog.addPartitions(topicAt(catalog, 0, 0), 0), isCode('EDGE_TOO_MANY_PARTITIONS'))
  await assert.rejects(catalog.removePartitions(topicAt(catalog, 0, 0), 2), isCode('EDGE_PARTITION_COUNT_INVALID'))
  assert.deepEqual(readdirSync(join(world.folder, 'streams/0/topics')).sort(), ['0', '1'])
})

const OF_TOPIC: Record<string, (catalog: Catalog, topic: Topic) => Promise<unknown>> = {
  updateTopic: (catalog, topic) => catalog.updateTopic(topic, { name: 'other' }),
  deleteTopic: (catalog, topic) => catalog.deleteTopic(topic),
  addPartitions: (catalog, topic) => catalog.addPartitions(topic, 1),
  removePartitions: (catalog, topic) => catalog.removePartitions(topic, 1),
}

const OF_STREAM: Record<string, (catalog: Catalog, stream: Stream) => Promise<unknown>> = {
  renameStream: (catalog, stream) => catalog.renameStream(stream, 'other'),
  deleteStream: (catalog, stream) => catalog.deleteStream(stream),
  createTopic: (catalog, stream) => catalog.createTopic(stream, { name: 't', partitionCount: 1, options: OPTIONS }),
}

for (const [name, change] of Object.entries(OF_TOPIC)) {
  test(`${name} that waits while its topic goes spares the topic that has its numbers then, and its name`, async () => {
    const { catalog } = await world.open()
    const spec = { name: 't', partitionCount: 2, options: OPTIONS }
    const stream = await catalog.createStream('s')
    const topic = await catalog.createTopic(stream, spec)
    const deleted = catalog.deleteTopic(topic)
    const next = catalog.createTopic(stream, spec)
    await assert.rejects(change(catalog, topic), isCode('EDGE_TOPIC_NOT_FOUND'))
    await deleted
    assert.deepEqual([catalog.topic(0, 't'), (await next).id, (await next).partitions.length], [await next, 0, 2])
    // So where the whole stream went.
    const streamDeleted = catalog.deleteStream(stream)
    const nextStream = catalog.createStream('s')
    await assert.rejects(change(catalog, await next), isCode('EDGE_TOPIC_NOT_FOUND'))
    await streamDeleted
    assert.equal((await nextStream).id, 0)
  })
}

for (const [name, change] of Object.entries(OF_STREAM)) {
  test(`${name} that waits while its stream goes spares the stream that has its number then, and its name`, async () => {
    const { catalog } = await world.open()
    const stream = await catalog.createStream('s')
    const deleted = catalog.deleteStream(stream)
    const next = catalog.createStream('s')
    await assert.rejects(change(catalog, stream), isCode('EDGE_STREAM_NOT_FOUND'))
    await deleted
    assert.deepEqual([catalog.stream('s'), (await next).id, (await next).topics.size], [await next, 0, 0])
  })
}

test('streams without topics, and topics without partitions, are bounded by the same number as partitions', async () => {
  const { catalog } = await world.open(world.fileSystem(), 3)
  for (const name of ['a', 'b', 'c']) await catalog.createStream(name)
  await assert.rejects(catalog.createStream('d'), (error: EdgeError) => {
    assert.equal(error.code, 'EDGE_TOO_MANY_STREAMS')
    assert.match(error.message, /3 streams exist and no more than 3 are allowed: .*log\.max_partitions/)
    return true
  })
  const create = (streamId: number, name: string) =>
    catalog.createTopic(streamAt(catalog, streamId), { name, partitionCount: 0, options: OPTIONS })
  await create(0, 't')
  await create(0, 'u')
  await create(1, 't')
  await assert.rejects(create(2, 't'), isCode('EDGE_TOO_MANY_TOPICS'))
  await catalog.deleteStream(streamAt(catalog, 0))
  await create(2, 't')
})

test('options and names change durably; the promise of a topic does not', async () => {
  let store = await world.open()
  await fillStore(store)
  await store.catalog.renameStream(streamAt(store.catalog, 0), 'works')
  await store.catalog.updateTopic(topicAt(store.catalog, 0, 0), {
    name: 'heat',
    options: { ...OPTIONS, messageExpiryUs: null },
  })
  assert.deepEqual(store.host.updated, [1, 2, 3])
  await assert.rejects(
    store.catalog.updateTopic(topicAt(store.catalog, 0, 0), { options: { ...OPTIONS, durability: 'buffered' } }),
    isCode('EDGE_OPTION_INVALID'),
  )
  await assert.rejects(
    store.catalog.updateTopic(topicAt(store.catalog, 0, 0), { name: '../../escape' }),
    isCode('EDGE_TOPIC_NAME_TAKEN'),
  )
  store = await world.reopen(store)
  assert.equal(store.catalog.stream('works')?.id, 0)
  assert.equal(store.catalog.topic(0, 'heat')?.options.messageExpiryUs, null)
  assert.equal(store.catalog.topic(0, 'temperature'), undefined)
})

test('a floor only rises and is there after a restart', async () => {
  let store = await world.open()
  await fillStore(store)
  await store.catalog.raiseFloors(new Map([[2, 100n]]))
  await store.catalog.raiseFloors(
    new Map([
      [2, 50n],
      [99, 50n],
    ]),
  )
  store = await world.reopen(store)
  assert.deepEqual(
    store.catalog.specs().map(({ key, floorOffset }) => [key, floorOffset]),
    [
      [1, 0n],
      [2, 100n],
      [3, 0n],
      [4, 0n],
    ],
  )
})

test('a stream or topic that cannot be made leaves nothing behind', async () => {
  const inner = world.fileSystem()
  let isFull = false
  const fileSystem: FileSystem = {
    ...inner,
    open(path, mode) {
      if (isFull && path.startsWith('staging/')) throw new EdgeError('EDGE_DISK_FULL', 'ENOSPC')
      return inner.open(path, mode)
    },
  }
  const { catalog } = await world.open(fileSystem)
  await catalog.createStream('s')
  isFull = true
  for (let tries = 0; tries < 3; tries++) {
    await assert.rejects(catalog.createStream('u'), isCode('EDGE_DISK_FULL'))
    const topic = catalog.createTopic(streamAt(catalog, 0), { name: 't', partitionCount: 1, options: OPTIONS })
    await assert.rejects(topic, isCode('EDGE_DISK_FULL'))
  }
  world.drain()
  assert.deepEqual([fileSystem.list('staging'), fileSystem.list('trash')], [[], []])
  assert.deepEqual(world.findings, [])
  isFull = false
  await catalog.createTopic(streamAt(catalog, 0), { name: 't', partitionCount: 1, options: OPTIONS })
})

test('when the engine cannot open a partition the topic is taken back as if it had never been', async () => {
  let store = await world.open()
  await store.catalog.createStream('s')
  store.host.failAtKey = 2
  await assert.rejects(
    store.catalog.createTopic(streamAt(store.catalog, 0), { name: 't', partitionCount: 3, options: OPTIONS }),
    isCode('EDGE_DISK_FULL'),
  )
  assert.deepEqual(store.host.removed, [1])
  assert.equal(store.catalog.topic(0, 't'), undefined)
  await store.catalog.createTopic(streamAt(store.catalog, 0), { name: 't', partitionCount: 1, options: OPTIONS })
  store.host.failAtKey = 6
  await assert.rejects(store.catalog.addPartitions(topicAt(store.catalog, 0, 0), 3), isCode('EDGE_DISK_FULL'))
  assert.deepEqual(
    store.catalog.topic(0, 0)?.partitions.map(({ key }) => key),
    [4],
  )
  store = await world.reopen(store)
  assert.deepEqual(
    store.catalog.topic(0, 0)?.partitions.map(({ key }) => key),
    [4],
  )
})

test('changes asked for at the same time run one after the other', async () => {
  const { catalog } = await world.open()
  const streams = await Promise.all(Array.from({ length: 8 }, (_, index) => catalog.createStream(`s${index}`)))
  assert.deepEqual(
    streams.map(({ id }) => id),
    [0, 1, 2, 3, 4, 5, 6, 7],
  )
  const results = await Promise.allSettled([catalog.createStream('same'), catalog.createStream('same')])
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  )
})

test('a removal whose descriptor stands and cannot be synced leaves no partition that the next start would drop', async () => {
  let isFailing = false
  const inner = world.fileSystem()
  const store = await world.open({
    ...inner,
    syncDirectory(path) {
      if (!isFailing || path !== 'streams/0/topics/0') return inner.syncDirectory(path)
      isFailing = false
      return Promise.reject(new EdgeError('EDGE_IO', `EIO on ${path}`))
    },
  })
  const stream = await store.catalog.createStream('s')
  const topic = await store.catalog.createTopic(stream, { name: 't', partitionCount: 2, options: OPTIONS })
  const last = topic.partitions[1]?.key
  let toldCount = 0
  store.catalog.onChanged(() => toldCount++)
  isFailing = true
  await assert.rejects(store.catalog.removePartitions(topic, 1), isCode('EDGE_IO'))
  assert.deepEqual(store.host.removed, [last])
  assert.equal(toldCount, 1)
  const kept = topic.partitions.map(({ key }) => key)
  const again = await world.reopen(store)
  assert.deepEqual(
    again.catalog.topic(stream.id, 0)?.partitions.map(({ key }) => key),
    kept,
  )
})
