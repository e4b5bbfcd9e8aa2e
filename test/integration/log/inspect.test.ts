/** Looking at a closed store: everything readable comes out in order, damage is told by its offsets, nothing is changed. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import Database from 'better-sqlite3'
import { systemClock } from '../../../src/clock.ts'
import type { EdgeError } from '../../../src/errors.ts'
import { isEmptyStore, LOG_SETTINGS, openInspection, openLog, type StoreInspection } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { idsOf, recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

/** More than the journal holds, so that the older ones lie in segments; then one that fits no journal file. */
const SMALL_COUNT = 3000
const LARGE_NUMBER = SMALL_COUNT
const LARGE_SIZE = 600 * 1024
const SETTINGS = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 260 * 1024, segment_size: 4096 }

async function closedStore(context: TestContext): Promise<string> {
  const folder = fs.mkdtempSync(join(tmpdir(), 'iggy-edge-inspect-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'data')
  await using log = await openLog({ path, clock: systemClock, logger: silentLogger, settings: SETTINGS })
  const stream = await log.catalog.createStream('plant')
  const options = topicOptions('durable')
  const topic = await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 1, options })
  const [partition] = topic.partitions
  assert.ok(partition)
  const append = async (recordsView: Uint8Array): Promise<void> => {
    while (!log.hasRoom(recordsView.length)) await new Promise<void>((resolve) => log.onceRoom(resolve))
    await new Promise<void>((resolve, reject) => {
      const receipt = { settled: (error: EdgeError | null) => (error === null ? resolve() : reject(error)) }
      partition.append({ count: 1, baseOriginUs: 1n, recordsView }, receipt)
    })
  }
  const numbers = Array.from({ length: SMALL_COUNT }, (_, number) => number)
  for (let at = 0; at < SMALL_COUNT; at += 100)
    await Promise.all(numbers.slice(at, at + 100).map((number) => append(recordsOf([number], 400))))
  const end = performance.now() + 10_000
  while (partition.segmentCount < 3) {
    assert.ok(performance.now() < end, 'journal files were not gathered into segments')
    await new Promise((resolve) => setImmediate(resolve))
  }
  await append(recordsOf([LARGE_NUMBER], LARGE_SIZE))
  await append(recordsOf([LARGE_NUMBER + 1]))
  return path
}

async function readAll(inspection: StoreInspection): Promise<number[]> {
  const numbers: number[] = []
  for (const { partitions } of inspection.topics) {
    for (const partition of partitions) {
      for await (const batch of inspection.read(partition).batches()) numbers.push(...idsOf(batch))
    }
  }
  return numbers
}

const expectedNumbers = (): number[] => Array.from({ length: SMALL_COUNT + 2 }, (_, number) => number)
const segmentsOf = (path: string): string[] => fs.globSync('streams/**/*.seg', { cwd: path }).sort()

test('segments, a large batch and the journal give every message once and in order', async (context) => {
  const path = await closedStore(context)
  assert.ok(segmentsOf(path).length > 1, 'the store has segments')
  using inspection = openInspection({ path })
  assert.deepEqual(await readAll(inspection), expectedNumbers())
  assert.deepEqual(inspection.findings, [])
  assert.equal(inspection.isCleanStop, true)
  assert.deepEqual(
    inspection.topics.map(({ streamName, topicName }) => `${streamName}/${topicName}`),
    ['plant/pumps'],
  )
})

test('a large batch that a kill left renamed, with its journal file not recycled yet, is not missed', async (context) => {
  const path = await closedStore(context)
  const [name] = fs.globSync('streams/**/*.external', { cwd: path })
  assert.ok(name)
  fs.renameSync(join(path, name), join(path, name.replace('.external', '.seg')))
  using inspection = openInspection({ path })
  assert.deepEqual(await readAll(inspection), expectedNumbers())
  assert.deepEqual(inspection.findings, [])
})

test('a damaged block costs its own offsets, and says which', async (context) => {
  const path = await closedStore(context)
  const [name] = segmentsOf(path)
  const file = join(path, name ?? assert.fail('no segment'))
  const bytes = fs.readFileSync(file)
  // Behind the file's header and the first block's.
  const at = 64 + 80 + 20
  bytes[at] = (bytes[at] ?? 0) ^ 0xff
  fs.writeFileSync(file, bytes)
  using inspection = openInspection({ path })
  const numbers = await readAll(inspection)
  const [finding] = inspection.findings
  const [, from, to] = /offsets (\d+) to (\d+) cannot be read here/.exec(finding?.text ?? '') ?? []
  assert.equal(from, '0')
  assert.deepEqual(numbers, expectedNumbers().slice(Number(to) + 1))
})

test('a segment without its header is named, and the others are read', async (context) => {
  const path = await closedStore(context)
  const [, name] = segmentsOf(path)
  const file = join(path, name ?? assert.fail('no second segment'))
  fs.writeFileSync(file, Buffer.alloc(fs.statSync(file).size))
  using inspection = openInspection({ path })
  const numbers = await readAll(inspection)
  assert.ok(numbers.length < SMALL_COUNT && numbers.length > 0)
  assert.deepEqual(numbers.at(-1), LARGE_NUMBER + 1)
  assert.ok(inspection.findings.some((each) => each.path.endsWith('.seg') && /no intact header/.test(each.text)))
  assert.ok(
    inspection.findings.some(({ text }) =>
      /^offsets \d+ to \d+ are missing \(stream "\S+", topic "\S+", partition 0\)$/.test(text),
    ),
  )
})

test('the oldest segment is missed, though nothing lies before it', async (context) => {
  const path = await closedStore(context)
  fs.rmSync(join(path, segmentsOf(path)[0] ?? assert.fail('no segment')))
  using inspection = openInspection({ path })
  const numbers = await readAll(inspection)
  const [first = 0] = numbers
  assert.ok(first > 0)
  assert.deepEqual(
    inspection.findings.map(({ text }) => text.replace(/ \(.*/, '')),
    [`offsets 0 to ${first - 1} are missing`],
  )
})

test('without any descriptor and without SQLite the messages come under made-up names', async (context) => {
  const path = await closedStore(context)
  for (const name of fs.globSync('{streams/**/*.json,metadata.sqlite*}', { cwd: path })) fs.rmSync(join(path, name))
  using inspection = openInspection({ path })
  assert.deepEqual(await readAll(inspection), expectedNumbers())
  assert.match(inspection.topics[0]?.streamName ?? '', /^recovered-stream-/)
  const errors = inspection.findings.filter(({ level }) => level === 'error')
  assert.deepEqual(errors.map(({ path: each }) => each.replace(/^.*\//, '')).sort(), [
    'metadata.sqlite',
    'stream.json',
    'topic.json',
  ])
})

/** The files as a killed process leaves them, with an offset that the database does not have yet. */
async function killedStore(context: TestContext): Promise<string> {
  const folder = fs.mkdtempSync(join(tmpdir(), 'iggy-edge-inspect-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  await using log = await openLog({
    path: join(folder, 'living'),
    clock: systemClock,
    logger: silentLogger,
    settings: SETTINGS,
  })
  const stream = await log.catalog.createStream('plant')
  const options = topicOptions('durable')
  const topic = await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 1, options })
  const [partition] = topic.partitions
  assert.ok(partition)
  await new Promise<void>((resolve, reject) => {
    const receipt = { settled: (error: EdgeError | null) => (error === null ? resolve() : reject(error)) }
    partition.append({ count: 3, baseOriginUs: 1n, recordsView: recordsOf([0, 1, 2]) }, receipt)
  })
  log.metadata.setOffset(partition.key, 'consumer', 9, 0n)
  await log.metadata.flush()
  log.metadata.setOffset(partition.key, 'consumer', 9, 2n)
  const path = join(folder, 'killed')
  killedCopy(join(folder, 'living'), path)
  return path
}

function offsetsOf(inspection: StoreInspection): unknown[] {
  return inspection.topics.flatMap(({ partitions }) => partitions.flatMap((each) => inspection.consumerOffsets(each)))
}

test('consumer offsets are those of the database and of the trail beside it', async (context) => {
  const path = await killedStore(context)
  const trailSize = fs.statSync(join(path, 'metadata.sqlite-offsets')).size
  assert.ok(trailSize > 0, 'there is a trail')
  using inspection = openInspection({ path })
  assert.deepEqual(offsetsOf(inspection), [{ kind: 'consumer', consumerId: 9, offset: 2n }])
  assert.deepEqual(inspection.findings, [])
  const ofDatabase = ['', '-wal', '-shm']
    .map((ending) => fs.statSync(join(path, `metadata.sqlite${ending}`), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size, 0)
  assert.equal(inspection.sizes.metadata, ofDatabase + trailSize)
})

test('a damaged trail is a warning, and the offsets of the database are shown', async (context) => {
  const path = await killedStore(context)
  const trail = join(path, 'metadata.sqlite-offsets')
  const sound = fs.readFileSync(trail)
  const found = (): string[] => {
    using inspection = openInspection({ path })
    assert.deepEqual(offsetsOf(inspection), [{ kind: 'consumer', consumerId: 9, offset: 0n }])
    return inspection.findings.map(({ level, path: at, text }) => `${level} ${at} ${text.slice(0, 18)}`)
  }
  fs.writeFileSync(trail, sound.subarray(0, 31))
  assert.deepEqual(found(), ['warn metadata.sqlite-offsets 1 rows are torn or'])
  fs.writeFileSync(trail, Buffer.alloc(64 * 32 + 7, 0xa5))
  assert.deepEqual(found(), ['warn metadata.sqlite-offsets 65 rows are torn o'])
  fs.rmSync(trail)
  fs.mkdirSync(trail)
  assert.deepEqual(found(), ['warn metadata.sqlite-offsets cannot be read: so'])
})

test('of a damaged database the offsets of the trail are left, for check and for the next start', async (context) => {
  const path = await killedStore(context)
  fs.writeFileSync(join(path, 'metadata.sqlite'), Buffer.alloc(8192, 7))
  fs.rmSync(join(path, 'metadata.sqlite-wal'), { force: true })
  {
    using inspection = openInspection({ path })
    assert.deepEqual(offsetsOf(inspection), [{ kind: 'consumer', consumerId: 9, offset: 2n }])
  }
  await using log = await openLog({ path, clock: systemClock, logger: silentLogger, settings: SETTINGS })
  const [partition] = log.catalog.topic(0, 0)?.partitions ?? []
  assert.ok(partition)
  assert.equal(log.metadata.offset(partition.key, 'consumer', 9), 2n)
  assert.deepEqual(
    fs.readdirSync(join(path, 'quarantine')).filter((name) => name.endsWith('-offsets')),
    [],
    'the trail stays',
  )
})

test('a database whose pages are sound and whose tables are not is told, as the next start tells it', async (context) => {
  const path = await closedStore(context)
  const file = join(path, 'metadata.sqlite')
  const found = () => {
    using inspection = openInspection({ path })
    return inspection.findings.map(({ level, path: place, text }) => `${level} ${place} ${text}`)
  }
  const database = new Database(file)
  database.exec('ALTER TABLE cursors DROP COLUMN incarnation')
  database.close()
  assert.deepEqual(found(), ['error metadata.sqlite table cursors is not as its layout says'])
  fs.writeFileSync(file, '')
  assert.match(found()[0] ?? '', /^error metadata.sqlite has layout 0/)
})

test('an empty folder is no store yet, and a missing one is said to be missing', (context) => {
  const folder = fs.mkdtempSync(join(tmpdir(), 'iggy-edge-inspect-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  assert.equal(isEmptyStore(folder), true)
  assert.throws(() => openInspection({ path: join(folder, 'none') }), { code: 'EDGE_STORE_MISSING' })
})
