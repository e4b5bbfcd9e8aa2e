import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { EdgeError } from '../../../src/errors.ts'
import { decodeDescriptor, encodeDescriptor } from '../../../src/log/catalog/descriptor-codec.ts'
import { inspectStore } from '../../../src/log/catalog/store-state.ts'
import { streamAt, topicAt } from '../../support/by-number.ts'
import { CatalogWorld, fillStore, isCode, OPTIONS, type OpenCatalog, seen } from '../../support/catalog-world.ts'

const world = new CatalogWorld()

beforeEach(() => world.create())
afterEach(() => world.destroy())

test('without metadata.sqlite everything but accounts, groups and offsets is there', async () => {
  let store = await world.open()
  await fillStore(store)
  const before = seen(store.catalog)
  const { storeId } = store.catalog
  await store.close()
  rmSync(join(world.folder, 'metadata.sqlite'))
  store = await world.open()
  assert.deepEqual(seen(store.catalog), before)
  assert.deepEqual(store.catalog.storeId, storeId)
  assert.equal(store.metadata.copies.all().length, 6)
})

test('a damaged metadata.sqlite is set aside and its copies are made again', async () => {
  let store = await world.open()
  await fillStore(store)
  const before = seen(store.catalog)
  await store.close()
  writeFileSync(join(world.folder, 'metadata.sqlite'), new Uint8Array(8192))
  store = await world.open()
  assert.deepEqual(seen(store.catalog), before)
  assert.deepEqual(world.findings, ['log.metadata.rebuilt'])
  assert.equal(readdirSync(join(world.folder, 'quarantine')).length, 1)
})

for (const state of ['zero-filled', 'empty', 'garbage', 'gone'] as const) {
  test(`descriptors that are ${state} are restored from SQLite`, async () => {
    let store = await world.open()
    await fillStore(store)
    const before = seen(store.catalog)
    const { storeId } = store.catalog
    await store.close()
    const paths = [
      'store.json',
      'streams/0/stream.json',
      'streams/0/topics/0/topic.json',
      'streams/1/topics/0/topic.json',
    ]
    for (const path of paths) {
      const file = join(world.folder, path)
      if (state === 'gone') rmSync(file)
      else if (state === 'empty') writeFileSync(file, '')
      else if (state === 'zero-filled') writeFileSync(file, new Uint8Array(readFileSync(file).length))
      else writeFileSync(file, '{"format":"iggy-edge topic"}')
    }
    store = await world.open()
    assert.deepEqual(seen(store.catalog), before)
    assert.deepEqual(store.catalog.storeId, storeId)
    assert.deepEqual(world.findings, Array(4).fill('log.descriptor.restored'))
    world.findings = []
    store = await world.reopen(store)
    assert.deepEqual(world.findings, [], 'mended for good')
  })
}

test('a partition that was removed does not come back with a copy: that is renewed first, or the removal refused', async () => {
  let store = await world.open()
  await fillStore(store)
  const file = join(world.folder, 'streams/0/topics/0/topic.json')
  const keysIn = ({ catalog }: OpenCatalog) => catalog.topic(0, 0)?.partitions.map(({ key }) => key)
  const before = keysIn(store)
  assert.ok(before !== undefined && before.length > 1)

  const { putDurably } = store.metadata.copies
  store.metadata.copies.putDurably = () => {
    throw new EdgeError('EDGE_DISK_FULL', 'no room')
  }
  await assert.rejects(store.catalog.removePartitions(topicAt(store.catalog, 0, 0), 1), isCode('EDGE_DISK_FULL'))
  assert.deepEqual([keysIn(store), store.host.removed], [before, []])
  store.metadata.copies.putDurably = putDurably

  // The copy of the file as it is, whatever the change that failed had put there.
  mkdirSync(`${file}.tmp`)
  await assert.rejects(store.catalog.removePartitions(topicAt(store.catalog, 0, 0), 1), isCode('EDGE_IO'))
  rmdirSync(`${file}.tmp`)
  writeFileSync(file, '')
  store = await world.reopen(store)
  assert.deepEqual(keysIn(store), before)

  // Nothing but the durable change of the copy: as a power cut may leave it.
  store.metadata.copies.put = () => {}
  store.metadata.forget = () => {}
  await store.catalog.removePartitions(topicAt(store.catalog, 0, 0), 1)
  await store.close()
  writeFileSync(file, '')
  store = await world.open()
  assert.deepEqual(keysIn(store), before.slice(0, -1))
})

test('a topic whose descriptor and copy are both gone keeps its partitions under a name of its own', async () => {
  let store = await world.open()
  await fillStore(store)
  const seeds = store.catalog.topic(0, 0)?.partitions.map((partition) => partition.idSeed)
  await store.close()
  rmSync(join(world.folder, 'metadata.sqlite'))
  writeFileSync(join(world.folder, 'streams/0/topics/0/topic.json'), 'x')
  store = await world.open()
  const topic = store.catalog.topic(0, 0)
  assert.equal(topic?.name, 'recovered-1')
  assert.deepEqual(
    topic?.partitions.map(({ key }) => key),
    [1, 2, 3],
  )
  assert.deepEqual(
    topic?.partitions.map(({ idSeed }) => idSeed),
    seeds,
    'derived message ids stay the same',
  )
  assert.deepEqual(world.findings, ['log.metadata.missing', 'log.descriptor.recovered'])
})

test('with store.json and SQLite gone no key is given again, and it is said', async () => {
  let store = await world.open()
  await fillStore(store)
  await store.catalog.deleteTopic(topicAt(store.catalog, 0, 1))
  await store.close()
  rmSync(join(world.folder, 'metadata.sqlite'))
  rmSync(join(world.folder, 'store.json'))
  store = await world.open()
  assert.deepEqual(world.findings, ['log.metadata.missing', 'log.store.recovered'])
  assert.ok(store.catalog.nextKey > 65_536)
  store = await world.reopen(store)
  assert.equal(
    store.catalog.firstLostKey,
    1,
    'after a kill the journal may still know partitions that have no names yet',
  )
  await store.catalog.keepAdopted()
  assert.equal(store.catalog.firstLostKey, store.catalog.nextKey)
  store = await world.reopen(store)
  assert.equal(store.catalog.firstLostKey, store.catalog.nextKey)
  assert.equal(store.catalog.topic(0, 0)?.name, 'temperature')
})

test('an empty mount point is refused where a store is expected, and nothing is made in it', () => {
  assert.throws(() => inspectStore(world.fileSystem(), true), isCode('EDGE_STORE_MISSING'))
  assert.deepEqual(readdirSync(world.folder), [])
  mkdirSync(join(world.folder, 'lost+found'))
  assert.throws(() => inspectStore(world.fileSystem(), true), isCode('EDGE_STORE_MISSING'))
})

test('a store or topic of a newer format stops the start before a byte is changed', async () => {
  const store = await world.open()
  await fillStore(store)
  await store.close()
  for (const path of ['streams/0/topics/1/topic.json', 'streams/1/stream.json', 'store.json']) {
    const file = join(world.folder, path)
    const sound = readFileSync(file)
    const body = decodeDescriptor(sound) ?? ''
    writeFileSync(file, encodeDescriptor(body.replace('"version":1', '"version":2')))
    writeFileSync(join(world.folder, 'streams/0/stream.json'), 'damaged')
    await assert.rejects(world.open(), isCode('EDGE_STORE_NEWER'), path)
    assert.equal(readFileSync(join(world.folder, 'streams/0/stream.json'), 'utf8'), 'damaged', path)
    writeFileSync(file, sound)
  }
})

test('a copied topic world.folder is left out, and its id is not given to another', async () => {
  let store = await world.open()
  await fillStore(store)
  await store.close()
  cpSync(join(world.folder, 'streams/0/topics/0'), join(world.folder, 'streams/0/topics/2'), { recursive: true })
  store = await world.open()
  assert.deepEqual(world.findings, ['log.descriptor.key_twice'])
  assert.deepEqual([...(store.catalog.stream(0)?.topics.keys() ?? [])], [0, 1])
  assert.equal(
    (await store.catalog.createTopic(streamAt(store.catalog, 0), { name: 'n', partitionCount: 1, options: OPTIONS }))
      .id,
    3,
  )
})

test('unknown files and folders are left where they are', async () => {
  let store = await world.open()
  await fillStore(store)
  await store.close()
  for (const path of ['notes.txt', 'streams/readme', 'streams/0/topics/007', 'streams/0/topics/0/old.bak']) {
    writeFileSync(join(world.folder, path), 'x')
  }
  mkdirSync(join(world.folder, 'streams/lost+found'))
  store = await world.open()
  world.drain()
  assert.deepEqual(world.findings, [])
  for (const path of [
    'notes.txt',
    'streams/readme',
    'streams/0/topics/007',
    'streams/0/topics/0/old.bak',
    'streams/lost+found',
  ]) {
    assert.ok(existsSync(join(world.folder, path)), path)
  }
})

test('an old copy of metadata.sqlite brings back neither deleted topics nor their groups, and hides no new ones', async () => {
  let store = await world.open()
  await fillStore(store)
  for (const topicId of [0, 1]) await store.metadata.createGroup(0, topicId, 'readers')
  await store.metadata.createGroup(1, 0, 'kept')
  store.metadata.setOffset(1, 'group', 0, 5n)
  await store.close()
  const old = readFileSync(join(world.folder, 'metadata.sqlite'))
  store = await world.open()
  await store.catalog.deleteTopic(topicAt(store.catalog, 0, 0))
  await store.catalog.deleteTopic(topicAt(store.catalog, 0, 1))
  await store.catalog.createTopic(streamAt(store.catalog, 0), {
    name: 'temperature',
    partitionCount: 1,
    options: OPTIONS,
  })
  await store.catalog.createStream('new')
  const after = seen(store.catalog)
  await store.close()
  writeFileSync(join(world.folder, 'metadata.sqlite'), old)
  store = await world.open()
  assert.deepEqual(seen(store.catalog), after)
  assert.deepEqual(store.metadata.groupsOf(0, 0), [], 'the group belonged to the topic that had this id before')
  assert.deepEqual(store.metadata.groupsOf(0, 1), [])
  assert.equal(store.metadata.groupsOf(1, 0).length, 1)
  assert.equal(store.metadata.offset(1, 'group', 0), undefined)
  assert.deepEqual(
    store.metadata.copies
      .all()
      .map(({ streamId, topicId }) => [streamId, topicId])
      .sort(),
    [
      [-1, -1],
      [0, -1],
      [0, 0],
      [1, -1],
      [1, 0],
      [2, -1],
    ].sort(),
  )
  assert.deepEqual(world.findings, [])
})
