/** Folders and files that the disk does not give, or does not let go: a start goes on, and nothing of them is lost. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, type Log, openLog, type Partition } from '../../../src/log/index.ts'
import { createReadOnlyFileSystem } from '../../../src/log/inspect/read-only-file-system.ts'
import { StoreInspection } from '../../../src/log/inspect/store-inspection.ts'
import { plainCodec } from '../../../src/log/io/block-codec.ts'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'
import { noKeys } from '../../../src/log/io/store-keys.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { eventually } from '../../support/eventually.ts'
import { FaultyFileSystem } from '../../support/faulty-file-system.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { append, range, readAll } from '../../support/partition-steps.ts'
import { recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SETTINGS = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, journal_files: 3, append_retry: 20 }
const RECORD_SIZE = 8000
/** Messages that fill a journal file. */
const FILE_COUNT = 32
/** In either topic: some in segments, some in the journal. */
const COUNT = 3 * FILE_COUNT
const TOPICS = ['pumps', 'valves'] as const

interface Opened {
  readonly disk: FaultyFileSystem
  readonly log: Log
}

async function open(
  context: TestContext,
  path: string,
  prepare: (disk: FaultyFileSystem) => void = () => {},
): Promise<Opened> {
  const disk = new FaultyFileSystem(createNodeFileSystem(path))
  prepare(disk)
  const options = { path, clock: systemClock, logger: silentLogger, settings: SETTINGS, codec: plainCodec }
  const log = await openLog({ ...options, fileSystem: disk })
  context.after(() => log.close())
  return { disk, log }
}

function partitionOf(log: Log, topic: string): Partition {
  const [partition] = log.catalog.topic(0, topic)?.partitions ?? []
  return partition ?? assert.fail(`topic ${topic} is missing`)
}

async function fill(log: Log, from: number, end: number): Promise<void> {
  for (let number = from; number < end; number++) {
    for (const topic of TOPICS) await append(log, partitionOf(log, topic), [recordsOf([number], RECORD_SIZE)])
  }
}

/** A stream with two topics, each in segments and in the journal; one of them has files in its refuge too. */
async function store(context: TestContext): Promise<string> {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-refused-folders-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'data')
  fs.mkdirSync(path)
  const { log } = await open(context, path)
  const stream = await log.catalog.createStream('plant')
  const options = topicOptions('durable', { segmentSizeBytes: 64 * 1024 })
  for (const name of TOPICS) await log.catalog.createTopic(stream, { name, partitionCount: 1, options })
  await fill(log, 0, COUNT)
  await eventually(() => TOPICS.every((topic) => partitionOf(log, topic).segmentCount > 2), 'some segments')
  await log.close()
  return path
}

const folderOf = ({ streamId, topicId, key }: Partition): string => `streams/${streamId}/topics/${topicId}/${key}`
const textsOf = (log: Log): string =>
  log
    .findings()
    .map(({ event, text }) => `${event} ${text}`)
    .join('\n')

async function assertWhole(log: Log, topic: string, count: number): Promise<void> {
  const partition = partitionOf(log, topic)
  assert.deepEqual(await readAll(partition, partition.logStartOffset), range(0, count), topic)
}

/** What is appended now is there, behind everything that was there before. */
async function assertGoesOn(log: Log, topic: string, number: number): Promise<bigint> {
  const partition = partitionOf(log, topic)
  const offset = partition.nextOffset
  assert.ok(offset >= BigInt(COUNT), `${topic} goes on at ${offset}`)
  await append(log, partition, [recordsOf([number], RECORD_SIZE)])
  assert.deepEqual(await readAll(partition, offset), [number])
  return offset
}

const PARTITION = (path: string): string => {
  const [key] = fs.readdirSync(join(path, 'streams/0/topics/0')).filter((name) => /^\d+$/.test(name))
  return `streams/0/topics/0/${key}`
}

type Place = readonly [
  name: string,
  placeIn: (path: string) => string,
  fault: 'broken' | 'unlistable',
  isJournalEmpty?: boolean,
]

/** Without its journal a folder has lost what only that held, all topics the same. */
const PLACES: readonly Place[] = [
  ['the folder of a partition', PARTITION, 'unlistable'],
  ['the folder of a partition of which the journal has nothing', PARTITION, 'unlistable', true],
  ['the folder of a partition, nor anything be done in it', PARTITION, 'broken'],
  ['the folder of a partition, nor anything be done in it, nor has the journal anything', PARTITION, 'broken', true],
  ['the folder of a topic', () => 'streams/0/topics/0', 'unlistable'],
  ['the folder of a topic, nor anything be done in it', () => 'streams/0/topics/0', 'broken'],
  ['the folder of the topics of a stream', () => 'streams/0/topics', 'unlistable'],
  ['the folder of all streams', () => 'streams', 'unlistable'],
  ['the refuge', () => 'refuge', 'unlistable'],
  ['the refuge, nor anything be done in it', () => 'refuge', 'broken'],
  ['the staging folder', () => 'staging', 'unlistable'],
  ['the trash', () => 'trash', 'unlistable'],
  ['the quarantine', () => 'quarantine', 'unlistable'],
]

for (const [name, placeIn, fault, isJournalEmpty = false] of PLACES) {
  test(`${name} cannot be listed: all else is served, and a later start has it all`, async (context) => {
    const path = await store(context)
    if (isJournalEmpty) fs.rmSync(join(path, 'journal'), { recursive: true })
    const place = placeIn(path)
    fs.mkdirSync(join(path, 'refuge'), { recursive: true })
    const before = isJournalEmpty ? await readable(context, path) : COUNT
    const { log } = await open(context, path, (disk) => disk[fault].add(place))
    await assertWhole(log, 'valves', before)
    for (const topic of TOPICS) await assertGoesOn(log, topic, COUNT)
    assert.match(textsOf(log), new RegExp(`EIO on ${place}`), 'it is told')
    await fill(log, COUNT + 1, 2 * COUNT)
    await eventually(() => partitionOf(log, 'pumps').segmentCount > 1, 'what came since goes into segments')
    await log.close()

    const { log: later } = await open(context, path)
    for (const topic of TOPICS) {
      const partition = partitionOf(later, topic)
      const found = await readAll(partition, partition.logStartOffset)
      assert.deepEqual(found, [...range(0, before), ...range(COUNT, 2 * COUNT)], topic)
    }
  })
}

test('a partition whose folder cannot be listed goes on above all that was given, though nothing else tells how much', async (context) => {
  const path = await store(context)
  fs.rmSync(join(path, 'journal'), { recursive: true })
  for (const name of fs.readdirSync(path)) if (name.startsWith('metadata.sqlite')) fs.rmSync(join(path, name))
  const place = PARTITION(path)
  for (let start = 0; start < 3; start++) {
    const { log } = await open(context, path, (disk) => disk.unlistable.add(place))
    await assertGoesOn(log, 'pumps', COUNT + start)
    await log.close()
  }
  const { log } = await open(context, path)
  const partition = partitionOf(log, 'pumps')
  const found = await readAll(partition, partition.logStartOffset)
  assert.deepEqual(found.slice(-3), range(COUNT, COUNT + 3))
  assert.deepEqual(found.slice(0, -3), range(0, found.length - 3))
})

test('folders and files that the disk does not give are findings of an inspection, and all else is looked at', async (context) => {
  const path = await store(context)
  const partition = PARTITION(path)
  const [first] = fs.readdirSync(join(path, partition))
  const place = `${partition}/${first}`
  const faults: readonly ((disk: FaultyFileSystem) => void)[] = [
    (disk) => disk.unlistable.add('streams'),
    (disk) => disk.unlistable.add('streams/0/topics'),
    (disk) => disk.broken.add('streams/0/topics/0'),
    (disk) => disk.unlistable.add(partition),
    (disk) => disk.broken.add(place),
    (disk) => disk.unreadable.set(place, new Set([0, 1, 2, 3])),
  ]
  for (const fault of faults) {
    const disk = new FaultyFileSystem(createReadOnlyFileSystem(path))
    fault(disk)
    using inspection = new StoreInspection(path, { fileSystem: disk, keys: noKeys })
    for (const { topicName, partitions } of inspection.topics) {
      for (const each of partitions) {
        const reading = inspection.read(each)
        for await (const { take } of reading.batches()) assert.equal(take, 1)
        if (topicName === 'valves') assert.equal(reading.counts.messageCount, COUNT)
      }
    }
    assert.equal(inspection.topics.length, 2)
    assert.ok(inspection.findings.length > 0)
  }
})

test('a folder that goes bad while the edge runs is given up, and nobody waits for it', async (context) => {
  const path = await store(context)
  const { log, disk } = await open(context, path)
  const partition = partitionOf(log, 'pumps')
  disk.broken.add(folderOf(partition))
  await fill(log, COUNT, 3 * COUNT)
  await eventually(() => log.stats().refusingFolderCount === 1, 'it is told')
  await assertWhole(log, 'valves', 3 * COUNT)
  await log.close()
  const { log: later } = await open(context, path)
  for (const topic of TOPICS) await assertWhole(later, topic, 3 * COUNT)
})

test('a file that somebody put there under the name of the last run that has one does not cost what is packed next', async (context) => {
  const path = await store(context)
  fs.writeFileSync(join(path, PARTITION(path), '00000000000000000000.999999999999999.seg'), '')
  const { log } = await open(context, path)
  await fill(log, COUNT, 3 * COUNT)
  await log.close()
  const { log: later } = await open(context, path)
  for (const topic of TOPICS) await assertWhole(later, topic, 3 * COUNT)
})

/** Segments of the first topic that the journal holds as well: a process was killed before it could recycle its file. */
async function killedBeforeRecycling(
  context: TestContext,
): Promise<{ path: string; leftovers: readonly string[]; count: number }> {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-refused-folders-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'data')
  fs.mkdirSync(path)
  const { log, disk } = await open(context, path)
  const stream = await log.catalog.createStream('plant')
  const options = topicOptions('durable', { segmentSizeBytes: 16 * 1024 })
  for (const name of TOPICS) await log.catalog.createTopic(stream, { name, partitionCount: 1, options })
  await eventually(() => log.stats().journalFileCount === SETTINGS.journal_files, 'all files are there')
  await fill(log, 0, FILE_COUNT)
  const segments = folderOf(partitionOf(log, 'pumps'))
  const namesNow = (): string[] => fs.readdirSync(join(path, segments))
  await eventually(() => log.stats().journalUsedBytes < SETTINGS.journal_file_size, 'packed and recycled')
  const before = namesNow()
  disk.isRecyclingFailing = true
  let count = FILE_COUNT
  for (; namesNow().length === before.length; count++) await fill(log, count, count + 1)
  await eventually(() => textsOf(log).includes('log.repack.failed'), 'packed, and not recycled')
  const killed = killedCopy(path, join(path, '..', 'killed'))
  disk.isRecyclingFailing = false
  await log.close()
  const made = fs.readdirSync(join(killed, segments)).filter((name) => !before.includes(name))
  assert.ok(made.length > 0, `of ${before}`)
  const leftovers = made.map((name) => `${segments}/${name}`)
  return { path: killed, leftovers, count }
}

for (const isTorn of [false, true]) {
  const state = isTorn ? 'torn' : 'whole'
  test(`files that are ${state}, that the journal holds as well and that cannot be removed do not count, now and later`, async (context) => {
    const { path, leftovers, ...held } = await killedBeforeRecycling(context)
    const lock = (disk: FaultyFileSystem): void => leftovers.forEach((name) => void disk.immutable.add(name))
    // The power cut that ended the process took their last pages.
    if (isTorn) for (const name of leftovers) garble(join(path, name))
    let { count } = held
    for (let start = 0; start < 3; start++) {
      const { log } = await open(context, path, lock)
      for (const topic of TOPICS) await assertWhole(log, topic, count)
      assert.match(textsOf(log), /log\.trash\.stuck .*\.seg.* could not be removed/)
      await fill(log, count, count + 2 * FILE_COUNT)
      count += 2 * FILE_COUNT
      await eventually(() => partitionOf(log, 'pumps').segmentCount > start, 'packed into other files')
      for (const topic of TOPICS) await assertWhole(log, topic, count)
      await log.close()
    }
    const { log } = await open(context, path)
    for (const topic of TOPICS) await assertWhole(log, topic, count)
    for (const name of leftovers) assert.ok(!fs.existsSync(join(path, name)), `${name} is gone`)
    assert.equal(textsOf(log), '')
  })
}

/** All but the header. */
function garble(file: string): void {
  const bytes = fs.readFileSync(file)
  fs.writeFileSync(file, bytes.fill(0xa5, 64))
}

/** How many messages there are without the journal. */
async function readable(context: TestContext, path: string): Promise<number> {
  const { log } = await open(context, killedCopy(path, join(path, '..', 'looked-into')))
  const counts = await Promise.all(TOPICS.map(async (topic) => (await readAll(partitionOf(log, topic))).length))
  await log.close()
  assert.equal(counts[0], counts[1])
  return counts[0] ?? 0
}
