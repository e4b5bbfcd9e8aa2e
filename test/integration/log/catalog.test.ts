import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { EdgeError } from '../../../src/errors.ts'
import type { Partition, TopicOptions } from '../../../src/log/api.ts'
import type { StoreCatalog } from '../../../src/log/catalog/catalog.ts'
import { RECOVERED_OPTIONS } from '../../../src/log/catalog/scan.ts'
import { inspectStore } from '../../../src/log/catalog/store-state.ts'
import type { FileSystem, LogFile } from '../../../src/log/io/file-system.ts'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'
import type { SqliteMetadata } from '../../../src/log/metadata/metadata-store.ts'
import { openNames } from '../../../src/log/names.ts'
import type { PartitionHost, PartitionSpec } from '../../../src/log/ports.ts'
import type { Scheduler } from '../../../src/log/scheduler.ts'
import { LOG_SETTINGS } from '../../../src/log/settings.ts'
import { defaultsOf } from '../../../src/setting.ts'

let folder: string
let findings: string[]
let tasks: (() => void)[]
let nowUs = 1_700_000_000_000_000n
const opened: Store[] = []

const clock = { wallUs: () => nowUs++, monotonicUs: () => 0 }
/** Nothing runs by itself; `drain` runs what waits, as often as it asks for more. */
const scheduler: Scheduler = {
  nextTurn: (task) => void tasks.push(task),
  after(_delay, task) {
    tasks.push(task)
    return () => {
      tasks = tasks.filter((other) => other !== task)
    }
  },
}

function drain(): void {
  for (let turn = 0; turn < 1000 && tasks.length > 0; turn++) tasks.shift()?.()
}

const OPTIONS: TopicOptions = {
  ...RECOVERED_OPTIONS,
  messageExpiryUs: 5_000_000n,
  maxSizeBytes: 2n ** 60n,
  given: new Map([['segment_size', { kind: 3, valueBytes: Uint8Array.of(1, 2, 255) }]]),
}

/** The engine's side: makes the folders and remembers what it was told. */
class Host implements PartitionHost {
  readonly specs = new Map<number, PartitionSpec>()
  readonly removed: number[] = []
  readonly updated: number[] = []
  failAtKey = -1
  readonly #fileSystem: FileSystem

  constructor(fileSystem: FileSystem) {
    this.#fileSystem = fileSystem
  }

  addPartition(spec: PartitionSpec): Partition {
    if (spec.key === this.failAtKey) throw new EdgeError('EDGE_DISK_FULL', 'no room')
    this.#fileSystem.makeDirectory(spec.directory)
    this.specs.set(spec.key, spec)
    return { ...spec } as unknown as Partition
  }

  removePartition(key: number): void {
    this.removed.push(key)
    this.specs.delete(key)
  }

  updateOptions(key: number): void {
    this.updated.push(key)
  }
}

interface Store {
  catalog: StoreCatalog
  metadata: SqliteMetadata
  host: Host
  close(): Promise<void>
}

async function open(fileSystem: FileSystem = createNodeFileSystem(folder), maxPartitions = 5000): Promise<Store> {
  const { catalog, metadata, close } = await openNames({
    fileSystem,
    metadataPath: join(folder, 'metadata.sqlite'),
    clock,
    scheduler,
    report: (finding) => findings.push(finding.event),
    settings: { ...defaultsOf(LOG_SETTINGS), max_partitions: maxPartitions },
    expectExisting: false,
  })
  const host = new Host(fileSystem)
  catalog.attach(host, () => undefined)
  const store = { catalog, metadata, host, close }
  opened.push(store)
  return store
}

async function reopen(store: Store): Promise<Store> {
  await store.close()
  return open()
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edge-catalog-'))
  findings = []
  tasks = []
})

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close()
  rmSync(folder, { recursive: true, force: true })
})

const isCode = (code: string) => (error: unknown) => error instanceof EdgeError && error.code === code

/** Everything a user can see, as plain data. */
function seen(catalog: StoreCatalog) {
  return [...catalog.streams.values()].map(({ id, name, createdAtUs, topics }) => ({
    id,
    name,
    createdAtUs,
    topics: [...topics.values()].map((topic) => ({
      id: topic.id,
      name: topic.name,
      createdAtUs: topic.createdAtUs,
      options: topic.options,
      partitions: topic.partitions.map(({ key, partitionId, idSeed, createdAtUs: at }) => ({
        key,
        partitionId,
        idSeed,
        at,
      })),
    })),
  }))
}

async function fillStore(store: Store): Promise<void> {
  await store.catalog.createStream('plant')
  await store.catalog.createStream('öfen / "3"')
  await store.catalog.createTopic(0, { name: 'temperature', partitionCount: 3, options: OPTIONS })
  await store.catalog.createTopic(0, { name: '../../escape', partitionCount: 1, options: OPTIONS })
  await store.catalog.createTopic(1, { name: 'temperature', partitionCount: 0, options: OPTIONS })
}

test('names, ids, options and partitions are there after a restart, with the same store id', async () => {
  let store = await open()
  await fillStore(store)
  const before = seen(store.catalog)
  const { storeId } = store.catalog
  store = await reopen(store)
  assert.deepEqual(seen(store.catalog), before)
  assert.deepEqual(store.catalog.storeId, storeId)
  assert.equal(store.catalog.topic(0, '../../escape')?.id, 1)
  assert.deepEqual(findings, [])
})

test('without metadata.sqlite everything but accounts, groups and offsets is there', async () => {
  let store = await open()
  await fillStore(store)
  const before = seen(store.catalog)
  const { storeId } = store.catalog
  await store.close()
  rmSync(join(folder, 'metadata.sqlite'))
  store = await open()
  assert.deepEqual(seen(store.catalog), before)
  assert.deepEqual(store.catalog.storeId, storeId)
  assert.equal(store.metadata.copies.all().length, 6)
})

test('a damaged metadata.sqlite is set aside and its copies are made again', async () => {
  let store = await open()
  await fillStore(store)
  const before = seen(store.catalog)
  await store.close()
  writeFileSync(join(folder, 'metadata.sqlite'), new Uint8Array(8192))
  store = await open()
  assert.deepEqual(seen(store.catalog), before)
  assert.deepEqual(findings, ['log.metadata.rebuilt'])
  assert.equal(readdirSync(join(folder, 'quarantine')).length, 1)
})

for (const state of ['zero-filled', 'empty', 'garbage', 'gone'] as const) {
  test(`descriptors that are ${state} are restored from SQLite`, async () => {
    let store = await open()
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
      const file = join(folder, path)
      if (state === 'gone') rmSync(file)
      else if (state === 'empty') writeFileSync(file, '')
      else if (state === 'zero-filled') writeFileSync(file, new Uint8Array(readFileSync(file).length))
      else writeFileSync(file, '{"format":"iggy-edge topic"}')
    }
    store = await open()
    assert.deepEqual(seen(store.catalog), before)
    assert.deepEqual(store.catalog.storeId, storeId)
    assert.deepEqual(findings, Array(4).fill('log.descriptor.restored'))
    findings = []
    store = await reopen(store)
    assert.deepEqual(findings, [], 'mended for good')
  })
}

test('a topic whose descriptor and copy are both gone keeps its partitions under a name of its own', async () => {
  let store = await open()
  await fillStore(store)
  const seeds = store.catalog.topic(0, 0)?.partitions.map((partition) => partition.idSeed)
  await store.close()
  rmSync(join(folder, 'metadata.sqlite'))
  writeFileSync(join(folder, 'streams/0/topics/0/topic.json'), 'x')
  store = await open()
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
  assert.deepEqual(findings, ['log.descriptor.recovered'])
})

test('with store.json and SQLite gone no key is given again, and it is said', async () => {
  let store = await open()
  await fillStore(store)
  await store.catalog.deleteTopic(0, 1)
  await store.close()
  rmSync(join(folder, 'metadata.sqlite'))
  rmSync(join(folder, 'store.json'))
  store = await open()
  assert.deepEqual(findings, ['log.store.recovered'])
  assert.ok(store.catalog.nextKey > 65_536)
  assert.equal(store.catalog.topic(0, 0)?.name, 'temperature')
})

test('ids are the lowest free ones, listed in order', async () => {
  const { catalog } = await open()
  for (const name of ['a', 'b', 'c', 'd']) await catalog.createStream(name)
  await catalog.deleteStream(1)
  await catalog.deleteStream(0)
  assert.equal((await catalog.createStream('e')).id, 0)
  assert.equal((await catalog.createStream('f')).id, 1)
  assert.equal((await catalog.createStream('g')).id, 4)
  assert.deepEqual([...catalog.streams.keys()], [0, 1, 2, 3, 4])
})

test('a key is never given twice, over deletes, restarts and blocks', async () => {
  let store = await open()
  const given = new Set<number>()
  await store.catalog.createStream('s')
  for (let round = 0; round < 6; round++) {
    const topic = await store.catalog.createTopic(0, { name: 't', partitionCount: 30, options: OPTIONS })
    for (const { key } of topic.partitions) {
      assert.ok(!given.has(key), `key ${key}`)
      given.add(key)
    }
    await store.catalog.deleteTopic(0, topic.id)
    if (round % 2 === 1) store = await reopen(store)
  }
  assert.equal(given.size, 180)
})

test('a deleted topic is gone at once, its files a few per turn, and the next one of its id starts anew', async () => {
  const store = await open()
  const { catalog, metadata, host } = store
  await catalog.createStream('s')
  await catalog.createTopic(0, { name: 't', partitionCount: 2, options: OPTIONS })
  for (let number = 0; number < 40; number++) writeFileSync(join(folder, `streams/0/topics/0/1/${number}.seg`), 'x')
  await metadata.createGroup(0, 0, 'g')
  metadata.setOffset(1, 'group', 0, 5n)
  await catalog.deleteTopic(0, 0)
  assert.equal(catalog.topic(0, 0), undefined)
  assert.deepEqual(host.removed, [1, 2])
  assert.ok(!existsSync(join(folder, 'streams/0/topics/0')))
  assert.equal(readdirSync(join(folder, 'trash')).length, 1)
  tasks.shift()?.()
  const left = readdirSync(join(folder, 'trash'), { recursive: true }).length
  assert.ok(left > 30, `one turn removes a bounded number of files, ${left} left`)
  drain()
  assert.deepEqual(readdirSync(join(folder, 'trash')), [])
  const again = await catalog.createTopic(0, { name: 't', partitionCount: 1, options: OPTIONS })
  assert.equal(again.id, 0)
  assert.deepEqual(metadata.groupsOf(0, 0), [])
  assert.equal(metadata.offset(again.partitions[0]?.key ?? 0, 'group', 0), undefined)
})

test('partitions are added behind the others and removed from the end, with new keys each time', async () => {
  let store = await open()
  await store.catalog.createStream('s')
  await store.catalog.createTopic(0, { name: 't', partitionCount: 2, options: OPTIONS })
  await store.catalog.addPartitions(0, 0, 2)
  await store.catalog.removePartitions(0, 0, 3)
  await store.catalog.addPartitions(0, 0, 1)
  assert.deepEqual(
    store.catalog.topic(0, 0)?.partitions.map(({ key, partitionId }) => [partitionId, key]),
    [
      [0, 1],
      [1, 5],
    ],
  )
  assert.deepEqual(store.host.removed, [2, 3, 4])
  store = await reopen(store)
  assert.deepEqual(
    store.catalog.topic(0, 0)?.partitions.map(({ key }) => key),
    [1, 5],
  )
  assert.deepEqual(readdirSync(join(folder, 'streams/0/topics/0')).sort(), ['1', '5', 'topic.json'])
})

test('wrong counts, names and limits are refused and leave nothing behind', async () => {
  const { catalog } = await open(createNodeFileSystem(folder), 1500)
  await catalog.createStream('s')
  await catalog.createTopic(0, { name: 't', partitionCount: 1, options: OPTIONS })
  const create = (name: string, partitionCount: number) =>
    catalog.createTopic(0, { name, partitionCount, options: OPTIONS })
  await assert.rejects(catalog.createStream('s'), isCode('EDGE_STREAM_NAME_TAKEN'))
  await assert.rejects(catalog.createStream(''), isCode('EDGE_NAME_INVALID'))
  await assert.rejects(create('t', 1), isCode('EDGE_TOPIC_NAME_TAKEN'))
  await assert.rejects(create('x'.repeat(256), 1), isCode('EDGE_NAME_INVALID'))
  await assert.rejects(create('u', 1001), isCode('EDGE_TOO_MANY_PARTITIONS'))
  await create('u', 1000)
  await assert.rejects(create('v', 500), isCode('EDGE_TOO_MANY_PARTITIONS'))
  await assert.rejects(catalog.addPartitions(0, 0, 0), isCode('EDGE_TOO_MANY_PARTITIONS'))
  await assert.rejects(catalog.removePartitions(0, 0, 2), isCode('EDGE_PARTITION_COUNT_INVALID'))
  await assert.rejects(catalog.deleteStream(7), isCode('EDGE_STREAM_NOT_FOUND'))
  await assert.rejects(catalog.deleteTopic(0, 7), isCode('EDGE_TOPIC_NOT_FOUND'))
  assert.deepEqual(readdirSync(join(folder, 'streams/0/topics')).sort(), ['0', '1'])
})

test('options and names change durably; the promise of a topic does not', async () => {
  let store = await open()
  await fillStore(store)
  await store.catalog.renameStream(0, 'works')
  await store.catalog.updateTopic(0, 0, { name: 'heat', options: { ...OPTIONS, messageExpiryUs: null } })
  assert.deepEqual(store.host.updated, [1, 2, 3])
  await assert.rejects(
    store.catalog.updateTopic(0, 0, { options: { ...OPTIONS, durability: 'buffered' } }),
    isCode('EDGE_OPTION_INVALID'),
  )
  await assert.rejects(store.catalog.updateTopic(0, 0, { name: '../../escape' }), isCode('EDGE_TOPIC_NAME_TAKEN'))
  store = await reopen(store)
  assert.equal(store.catalog.stream('works')?.id, 0)
  assert.equal(store.catalog.topic(0, 'heat')?.options.messageExpiryUs, null)
  assert.equal(store.catalog.topic(0, 'temperature'), undefined)
})

test('a floor only rises and is there after a restart', async () => {
  let store = await open()
  await fillStore(store)
  await store.catalog.raiseFloor(2, 100n)
  await store.catalog.raiseFloor(2, 50n)
  await store.catalog.raiseFloor(99, 50n)
  store = await reopen(store)
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

test('when the engine cannot open a partition the topic is taken back as if it had never been', async () => {
  let store = await open()
  await store.catalog.createStream('s')
  store.host.failAtKey = 2
  await assert.rejects(
    store.catalog.createTopic(0, { name: 't', partitionCount: 3, options: OPTIONS }),
    isCode('EDGE_DISK_FULL'),
  )
  assert.deepEqual(store.host.removed, [1])
  assert.equal(store.catalog.topic(0, 't'), undefined)
  await store.catalog.createTopic(0, { name: 't', partitionCount: 1, options: OPTIONS })
  store.host.failAtKey = 6
  await assert.rejects(store.catalog.addPartitions(0, 0, 3), isCode('EDGE_DISK_FULL'))
  assert.deepEqual(
    store.catalog.topic(0, 0)?.partitions.map(({ key }) => key),
    [4],
  )
  store = await reopen(store)
  assert.deepEqual(
    store.catalog.topic(0, 0)?.partitions.map(({ key }) => key),
    [4],
  )
})

test('changes asked for at the same time run one after the other', async () => {
  const { catalog } = await open()
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

test('an empty mount point is refused where a store is expected, and nothing is made in it', () => {
  assert.throws(() => inspectStore(createNodeFileSystem(folder), true), isCode('EDGE_STORE_MISSING'))
  assert.deepEqual(readdirSync(folder), [])
  mkdirSync(join(folder, 'lost+found'))
  assert.throws(() => inspectStore(createNodeFileSystem(folder), true), isCode('EDGE_STORE_MISSING'))
})

test('a store or topic of a newer format stops the start before a byte is changed', async () => {
  const store = await open()
  await fillStore(store)
  await store.close()
  const { encodeDescriptor, decodeDescriptor } = await import('../../../src/log/catalog/descriptor-codec.ts')
  for (const path of ['streams/0/topics/1/topic.json', 'streams/1/stream.json', 'store.json']) {
    const file = join(folder, path)
    const sound = readFileSync(file)
    const body = decodeDescriptor(sound) ?? ''
    writeFileSync(file, encodeDescriptor(body.replace('"version":1', '"version":2')))
    writeFileSync(join(folder, 'streams/0/stream.json'), 'damaged')
    await assert.rejects(open(), isCode('EDGE_STORE_NEWER'), path)
    assert.equal(readFileSync(join(folder, 'streams/0/stream.json'), 'utf8'), 'damaged', path)
    writeFileSync(file, sound)
  }
})

test('a copied topic folder is left out, and its id is not given to another', async () => {
  let store = await open()
  await fillStore(store)
  await store.close()
  cpSync(join(folder, 'streams/0/topics/0'), join(folder, 'streams/0/topics/2'), { recursive: true })
  store = await open()
  assert.deepEqual(findings, ['log.descriptor.key_twice'])
  assert.deepEqual([...(store.catalog.stream(0)?.topics.keys() ?? [])], [0, 1])
  assert.equal((await store.catalog.createTopic(0, { name: 'n', partitionCount: 1, options: OPTIONS })).id, 3)
})

test('unknown files and folders are left where they are', async () => {
  let store = await open()
  await fillStore(store)
  await store.close()
  for (const path of ['notes.txt', 'streams/readme', 'streams/0/topics/007', 'streams/0/topics/0/old.bak']) {
    writeFileSync(join(folder, path), 'x')
  }
  mkdirSync(join(folder, 'streams/lost+found'))
  store = await open()
  drain()
  assert.deepEqual(findings, [])
  for (const path of [
    'notes.txt',
    'streams/readme',
    'streams/0/topics/007',
    'streams/0/topics/0/old.bak',
    'streams/lost+found',
  ]) {
    assert.ok(existsSync(join(folder, path)), path)
  }
})

test('an old copy of metadata.sqlite brings back neither deleted topics nor their groups, and hides no new ones', async () => {
  let store = await open()
  await fillStore(store)
  for (const topicId of [0, 1]) await store.metadata.createGroup(0, topicId, 'readers')
  await store.metadata.createGroup(1, 0, 'kept')
  store.metadata.setOffset(1, 'group', 0, 5n)
  await store.close()
  const old = readFileSync(join(folder, 'metadata.sqlite'))
  store = await open()
  await store.catalog.deleteTopic(0, 0)
  await store.catalog.deleteTopic(0, 1)
  await store.catalog.createTopic(0, { name: 'temperature', partitionCount: 1, options: OPTIONS })
  await store.catalog.createStream('new')
  const after = seen(store.catalog)
  await store.close()
  writeFileSync(join(folder, 'metadata.sqlite'), old)
  store = await open()
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
  assert.deepEqual(findings, [])
})

// ---- stops between any two steps ---------------------------------------------------------------------------------------

class Stopped extends Error {}

/** A stopped process loses nothing that the kernel has: syncs are counted as steps and not made. Passes calls on until `left` changing calls were made; then it behaves as if the process were gone. */
function stopping(inner: FileSystem, left: { calls: number }): FileSystem {
  const step = () => {
    if (left.calls-- <= 0) throw new Stopped('stopped')
  }
  const stoppingFile = (file: LogFile): LogFile => ({
    size: () => file.size(),
    read: (target, position) => file.read(target, position),
    readLater: (target, position) => file.readLater(target, position),
    write(bytes, position) {
      step()
      // The last write of a process may be cut anywhere.
      if (left.calls === 0) file.write(bytes.subarray(0, bytes.length >> 1), position)
      else file.write(bytes, position)
    },
    datasync(done) {
      step()
      setImmediate(done, null)
    },
    truncate: (size) => file.truncate(size),
    close: () => file.close(),
  })
  return {
    list: (path) => inner.list(path),
    open(path, mode) {
      if (mode === 'create') step()
      return stoppingFile(inner.open(path, mode))
    },
    makeDirectory(path) {
      step()
      inner.makeDirectory(path)
    },
    rename(from, to) {
      step()
      inner.rename(from, to)
    },
    unlink(path) {
      step()
      inner.unlink(path)
    },
    removeDirectory(path) {
      step()
      inner.removeDirectory(path)
    },
    async syncDirectory() {
      step()
    },
    space: () => inner.space(),
    lock: (path) => inner.lock(path),
  }
}

const CHANGES: Record<string, (catalog: StoreCatalog) => Promise<unknown>> = {
  createStream: (catalog) => catalog.createStream('new'),
  createTopic: (catalog) => catalog.createTopic(0, { name: 'new', partitionCount: 70, options: OPTIONS }),
  renameStream: (catalog) => catalog.renameStream(0, 'renamed'),
  updateTopic: (catalog) =>
    catalog.updateTopic(0, 0, { name: 'renamed', options: { ...OPTIONS, messageExpiryUs: 9n } }),
  addPartitions: (catalog) => catalog.addPartitions(0, 0, 2),
  removePartitions: (catalog) => catalog.removePartitions(0, 0, 2),
  deleteTopic: (catalog) => catalog.deleteTopic(0, 0),
  deleteStream: (catalog) => catalog.deleteStream(0),
  raiseFloor: (catalog) => catalog.raiseFloor(1, 5n),
}

for (const [name, change] of Object.entries(CHANGES)) {
  test(`a stop after any step of ${name} leaves the state before or after it, and keys are not given twice`, async () => {
    const first = await open()
    await fillStore(first)
    const before = JSON.stringify(seenAndFloors(first.catalog), bigintText)
    await first.close()
    const original = `${folder}-original`
    cpSync(folder, original, { recursive: true })
    let after = ''
    const results = new Set<string>()
    for (let calls = 0; calls < 200; calls++) {
      rmSync(folder, { recursive: true })
      cpSync(original, folder, { recursive: true })
      nowUs = 1_800_000_000_000_000n
      const left = { calls: Number.POSITIVE_INFINITY }
      const store = await open(stopping(createNodeFileSystem(folder), left))
      const usedKeys = new Set(store.host.specs.keys())
      left.calls = calls
      const isDone = await change(store.catalog).then(
        () => true,
        () => false,
      )
      for (const key of store.host.specs.keys()) usedKeys.add(key)
      // What a killed process had in memory is gone; closing SQLite adds nothing that its transactions had not written.
      opened.pop()
      store.metadata.close()
      tasks = []
      findings = []
      left.calls = Number.POSITIVE_INFINITY
      const again = await open(stopping(createNodeFileSystem(folder), left))
      const state = JSON.stringify(seenAndFloors(again.catalog), bigintText)
      results.add(state)
      const mark = await again.catalog.createTopic(1, { name: 'mark', partitionCount: 1, options: OPTIONS })
      assert.ok(!usedKeys.has(mark.partitions[0]?.key ?? 0), `key given twice after ${calls} steps`)
      assert.deepEqual(findings, [], `after ${calls} steps`)
      drain()
      assert.deepEqual(readdirSync(join(folder, 'staging')), [])
      assert.deepEqual(readdirSync(join(folder, 'trash')), [])
      await again.close()
      opened.pop()
      if (isDone) {
        after = state
        break
      }
    }
    rmSync(original, { recursive: true })
    assert.notEqual(after, '', 'the change got through in the end')
    assert.notEqual(after, before)
    assert.deepEqual([...results].sort(), [before, after].sort())
  })
}

function seenAndFloors(catalog: StoreCatalog) {
  return { streams: seen(catalog), floors: catalog.specs().map(({ key, floorOffset }) => [key, floorOffset]) }
}

function bigintText(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
