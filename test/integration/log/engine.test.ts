/** The whole log on real files: what is acked is there after a reopen, damage costs what it hits, strangers stop nothing. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { EdgeError } from '../../../src/errors.ts'
import type { Durability, Log, LogSettings, Partition } from '../../../src/log/index.ts'
import { LOG_SETTINGS, openLog } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { streamAt, topicAt } from '../../support/by-number.ts'
import { eventually } from '../../support/eventually.ts'
import { append, batchesOf, range, readAll } from '../../support/partition-steps.ts'
import { recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SMALL: LogSettings = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, segment_size: 4096 }

function folder(context: TestContext): string {
  const path = fs.mkdtempSync(join(tmpdir(), 'iggy-edge-log-'))
  context.after(() => fs.rmSync(path, { recursive: true, force: true }))
  return join(path, 'data')
}

const open = (path: string, settings: LogSettings = SMALL): Promise<Log> =>
  openLog({ path, clock: systemClock, logger: silentLogger, settings })

async function createPartition(log: Log, durability: Durability = 'durable'): Promise<Partition> {
  const stream = log.catalog.stream('plant') ?? (await log.catalog.createStream('plant'))
  const topic = await log.catalog.createTopic(stream, {
    name: durability,
    partitionCount: 1,
    options: topicOptions(durability),
  })
  return partitionOf(topic.partitions)
}

function partitionOf(partitions: readonly Partition[] | undefined): Partition {
  const [partition] = partitions ?? []
  assert.ok(partition)
  return partition
}

const reopened = (log: Log, name: Durability = 'durable'): Partition =>
  partitionOf(log.catalog.topic(0, name)?.partitions)

for (const durability of ['durable', 'buffered'] as const) {
  test(`what a ${durability} topic acked is read after a clean reopen, at the same offsets`, async (context) => {
    const path = folder(context)
    const first = await open(path)
    const partition = await createPartition(first, durability)
    await append(first, partition, batchesOf(0, 50))
    assert.deepEqual(await readAll(partition), range(0, 50))
    await first.close()
    const second = await open(path)
    const again = reopened(second, durability)
    assert.deepEqual(await readAll(again), range(0, 50))
    assert.deepEqual([again.nextOffset, again.messageCount], [50n, 50])
    await append(second, again, batchesOf(50, 60))
    assert.deepEqual(await readAll(again, 45n), range(45, 60))
    await second.close()
  })
}

test('full journal files become compressed segments, and reads cross over without a gap', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log)
  await append(log, partition, batchesOf(0, 6000))
  await eventually(() => partition.segmentCount > 1 && log.stats().journalUsedBytes < 512 * 1024)
  assert.deepEqual(await readAll(partition), range(0, 6000))
  assert.deepEqual(await readAll(partition, 2999n), range(2999, 6000))
  assert.ok(partition.sizeBytes < 6000 * 100, `${partition.sizeBytes} bytes`)
  const middle = await partition.read({ fromOffset: 1234n, maxCount: 1, maxBytes: 1 })
  const time = middle.batches[0]?.appendTimeUs ?? 0n
  const found = await partition.offsetAt(time)
  const atFound = await partition.read({ fromOffset: found, maxCount: 1, maxBytes: 1 })
  assert.equal(atFound.batches[0]?.appendTimeUs, time)
  assert.ok(found <= 1234n)
  await log.close()
  const second = await open(path)
  assert.deepEqual(await readAll(reopened(second)), range(0, 6000))
  assert.deepEqual(second.findings(), [])
  await second.close()
})

test('a message larger than the journal takes keeps its place among others', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log)
  const batches = [...batchesOf(0, 3), recordsOf([3], 3_000_000), ...batchesOf(4, 8)]
  await append(log, partition, batches)
  assert.deepEqual(await readAll(partition), range(0, 8))
  await log.close()
  const second = await open(path)
  const again = reopened(second)
  assert.deepEqual(await readAll(again), range(0, 8))
  await append(second, again, batchesOf(8, 5000))
  await eventually(() => again.segmentCount > 2)
  assert.deepEqual(await readAll(again), range(0, 5000))
  await second.close()
})

test('the file of a large batch does not stay open when its topic is deleted', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log)
  await append(log, partition, [recordsOf([0], 3_000_000)])
  assert.deepEqual(await readAll(partition), [0])
  const openFiles = (): string[] =>
    fs.readdirSync('/proc/self/fd').flatMap((descriptor) => {
      const link = `/proc/self/fd/${descriptor}`
      // The listing has a descriptor of its own, which is gone by now.
      const target = fs.existsSync(link) ? fs.readlinkSync(link, { encoding: 'utf8' }) : ''
      return target.startsWith(path) && target.includes('.external') ? [target] : []
    })
  const before = openFiles()
  await log.catalog.deleteTopic(topicAt(log.catalog, 0, 0))
  const after = openFiles()
  await log.close()
  assert.deepEqual([before.length, after], [1, []])
})

test('partitions are removed without a complaint, also those that never had a file', async (context) => {
  const log = await open(folder(context))
  const partition = await createPartition(log)
  await append(log, partition, batchesOf(0, 6000))
  await eventually(() => partition.segmentCount > 1)
  await log.catalog.addPartitions(topicAt(log.catalog, 0, 0), 1)
  await log.catalog.removePartitions(topicAt(log.catalog, 0, 0), 2)
  assert.deepEqual(log.findings(), [])
  await log.close()
})

test('a purge keeps the numbering, also across a reopen', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log)
  await append(log, partition, batchesOf(0, 20))
  await partition.purge()
  assert.deepEqual([partition.logStartOffset, partition.nextOffset, partition.messageCount], [20n, 20n, 0])
  await log.close()
  const second = await open(path)
  const again = reopened(second)
  assert.deepEqual([again.logStartOffset, again.nextOffset], [20n, 20n])
  await append(second, again, batchesOf(20, 22))
  assert.deepEqual(await readAll(again, 0n), [20, 21])
  await second.close()
})

for (const [harm, act] of [
  ['was filled with zeros', (path: string) => fs.writeFileSync(path, new Uint8Array(fs.statSync(path).size))],
  ['is gone', (path: string) => fs.rmSync(path)],
] as const) {
  test(`a segment that ${harm} is told with its range, and all else reads`, async (context) => {
    const path = folder(context)
    const log = await open(path)
    const partition = await createPartition(log)
    await append(log, partition, batchesOf(0, 6000))
    await eventually(() => partition.segmentCount > 3)
    await log.close()
    const directory = join(path, 'streams/0/topics/0', String(partition.key))
    const [, second = '', third = ''] = fs.readdirSync(directory).sort()
    act(join(directory, second))
    const [from, end] = [BigInt(second.slice(0, 20)), BigInt(third.slice(0, 20))]

    const again = await open(path)
    const damaged = reopened(again)
    const numbers = await readAll(damaged)
    const expected = range(0, 6000).filter((number) => BigInt(number) < from || BigInt(number) >= end)
    assert.deepEqual(numbers, expected)
    assert.deepEqual(damaged.holes, [{ from, end, reason: 'damage' }])
    const finding = again.findings().at(-1)
    assert.equal(finding?.event, 'log.hole.found')
    assert.match(finding.text, /^offsets \d+ to \d+ of stream "\w+", topic "\w+", partition 0 cannot be read: /)
    await again.close()
  })
}

test('one flipped bit in a segment costs its block, is told with its range, and all else reads', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log)
  await append(log, partition, batchesOf(0, 6000))
  await eventually(() => partition.segmentCount > 1)
  await log.close()
  const directory = join(path, 'streams/0/topics/0', String(partition.key))
  const [segment = ''] = fs.readdirSync(directory).sort()
  const bytes = fs.readFileSync(join(directory, segment))
  bytes[200] = (bytes[200] ?? 0) ^ 16
  fs.writeFileSync(join(directory, segment), bytes)
  const second = await open(path)
  const again = reopened(second)
  const numbers = await readAll(again)
  const [hole] = again.holes
  assert.ok(hole)
  assert.equal(hole.reason, 'damage')
  const expected = range(0, 6000).filter((number) => BigInt(number) < hole.from || BigInt(number) >= hole.end)
  assert.deepEqual(numbers, expected)
  assert.ok(numbers.length > 4000)
  assert.equal(second.findings().at(-1)?.event, 'log.hole.found')
  await second.close()
})

test('empty, garbage and unknown files stop nothing and are set aside', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log)
  await append(log, partition, batchesOf(0, 3000))
  await eventually(() => partition.segmentCount > 0)
  await log.close()
  const directory = join(path, 'streams/0/topics/0', String(partition.key))
  fs.mkdirSync(join(path, 'journal', '77'))
  for (const ending of ['seg', 'external']) fs.mkdirSync(join(directory, `00000000000000000007.9.${ending}`))
  fs.writeFileSync(join(directory, 'notes.txt'), 'not a segment')
  fs.writeFileSync(join(directory, '00000000000000000000.77.seg'), '')
  fs.writeFileSync(join(path, 'journal', '9'), '')
  fs.writeFileSync(join(path, 'journal', 'readme'), 'hello')
  fs.writeFileSync(join(path, 'stray'), fs.readFileSync(process.execPath).subarray(0, 65_536))
  const second = await open(path)
  const again = reopened(second)
  assert.equal(again.nextOffset, 3000n)
  assert.deepEqual(await readAll(again), range(0, 3000))
  await append(second, again, batchesOf(3000, 3010))
  assert.ok(fs.readdirSync(join(path, 'quarantine')).length >= 2)
  await second.close()
})

test('a file that is set aside bears the time of the clock that the log was given', async (context) => {
  const path = folder(context)
  await (await open(path)).close()
  fs.writeFileSync(join(path, 'journal', 'readme'), 'hello')
  const clock = { ...systemClock, wallUs: () => 1_234_567_890_123_456n }
  const log = await openLog({ path, clock, logger: silentLogger, settings: SMALL })
  await log.close()
  assert.deepEqual(fs.readdirSync(join(path, 'quarantine')), ['1234567890123456-0-journal~readme'])
})

test('zero-filled journal files cost only what was not in segments, and no number is given twice', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log)
  await append(log, partition, batchesOf(0, 10))
  await log.close()
  for (const name of fs.readdirSync(join(path, 'journal'))) {
    fs.writeFileSync(join(path, 'journal', name), new Uint8Array(SMALL.journal_file_size))
  }
  const second = await open(path)
  const again = reopened(second)
  // What was acked is gone, and its numbers with it: they are not given to other messages, nor are those of messages that
  // the files may have held besides.
  assert.ok(again.nextOffset >= 10n)
  const events = second.findings().map(({ event }) => event)
  assert.deepEqual(events, ['log.hole.found', 'log.journal.file_missing'])
  await append(second, again, batchesOf(10, 12))
  assert.deepEqual(await readAll(again), [10, 11])
  await second.close()
})

test('messages whose names are all lost are kept under a name made up, for good', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log, 'buffered')
  const { partitions } = await log.catalog.createTopic(streamAt(log.catalog, 0), {
    name: 'other',
    partitionCount: 1,
    options: topicOptions('durable'),
  })
  // Files that were made by now know that the key was given, and not whether its partition was deleted.
  await append(log, partitionOf(partitions), batchesOf(0, 6000))
  await append(log, partition, batchesOf(0, 20))
  await log.close()
  for (const name of fs.readdirSync(path)) {
    if (name !== 'journal') fs.rmSync(join(path, name), { recursive: true, force: true })
  }
  for (let round = 0; round < 2; round++) {
    const again = await open(path)
    const found = partitionOf(again.catalog.topic(0, `recovered-${partition.key}`)?.partitions)
    assert.equal(found.key, partition.key)
    assert.deepEqual(await readAll(found), range(0, 20))
    const isTold = (text: string): boolean => text.includes(`partition key ${partition.key}, which no descriptor names`)
    assert.equal(again.findings().filter(({ text }) => isTold(text)).length, 1 - round)
    const other = await again.catalog.createTopic(streamAt(again.catalog, 0), {
      name: `other-${round}`,
      partitionCount: 1,
      options: topicOptions('durable'),
    })
    assert.notEqual(partitionOf(other.partitions).key, partition.key)
    await again.close()
  }
})

const removeDatabase = (path: string): void => {
  for (const name of fs.readdirSync(path)) if (name.startsWith('metadata.sqlite')) fs.rmSync(join(path, name))
}

test('a database that somebody deleted is told, and only then', async (context) => {
  const path = folder(context)
  const events = async () => {
    await using log = await open(path)
    return log.findings().map(({ event, level }) => `${level} ${event}`)
  }
  assert.deepEqual(await events(), [])
  assert.deepEqual(await events(), [])
  removeDatabase(path)
  assert.deepEqual(await events(), ['error log.metadata.missing'])
  assert.deepEqual(await events(), [])
})

test('messages that only the journal holds outlive the descriptor of their topic and its copy, also where that start is killed', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log)
  await append(log, partition, batchesOf(0, 20))
  await log.close()
  removeDatabase(path)
  fs.rmSync(join(path, 'streams/0/topics/0/topic.json'))
  const killedPath = `${path}-killed`
  const second = await openLog({
    path,
    clock: systemClock,
    logger: silentLogger,
    settings: SMALL,
    get bootId(): string {
      // Asked for when the names are there and the engine is not.
      fs.cpSync(path, killedPath, { recursive: true })
      fs.rmSync(join(killedPath, 'lock'))
      return 'boot'
    },
  })
  await second.close()
  for (const each of [path, killedPath]) {
    const again = await open(each)
    const found = again.catalog.topic(1, `recovered-${partition.key}`)?.partitions
    assert.deepEqual(await readAll(partitionOf(found)), range(0, 20))
    await again.close()
  }
})

test('messages that only the journal holds outlive a descriptor whose copy does not know their partition yet', async (context) => {
  const path = folder(context)
  const first = await open(path)
  await createPartition(first)
  await first.close()
  const copyPath = `${path}-metadata`
  fs.cpSync(join(path, 'metadata.sqlite'), copyPath)
  const second = await open(path)
  await second.catalog.addPartitions(topicAt(second.catalog, 0, 0), 1)
  const [, added] = second.catalog.topic(0, 0)?.partitions ?? []
  assert.ok(added !== undefined)
  await append(second, added, batchesOf(0, 20))
  await second.close()
  removeDatabase(path)
  fs.cpSync(copyPath, join(path, 'metadata.sqlite'))
  fs.rmSync(join(path, 'streams/0/topics/0/topic.json'))
  const third = await open(path)
  assert.equal(third.catalog.topic(0, 'durable')?.partitions.length, 1)
  const found = third.catalog.topic(1, `recovered-${added.key}`)?.partitions
  assert.deepEqual(await readAll(partitionOf(found)), range(0, 20))
  await third.close()
})

test('a data folder is opened once', async (context) => {
  const path = folder(context)
  const log = await open(path)
  await assert.rejects(open(path), (error) => error instanceof EdgeError && error.code === 'EDGE_STORE_IN_USE')
  await log.close()
  await (await open(path)).close()
})

test('on a disk without a free block the next start has the place of the lock before it', async (context) => {
  const path = folder(context)
  await (await open(path)).close()
  const lock = join(path, 'lock')
  assert.match(fs.readFileSync(lock, 'utf8'), /^ +$/)
  const { blocks } = fs.statSync(lock)
  const log = await open(path)
  assert.equal(fs.statSync(lock).blocks, blocks)
  await assert.rejects(open(path), (error) => error instanceof EdgeError && error.code === 'EDGE_STORE_IN_USE')
  await log.close()
})

test('a lock left by a process that is gone does not keep the log closed', async (context) => {
  const path = folder(context)
  await (await open(path)).close()
  fs.writeFileSync(join(path, 'lock'), '999999 12345')
  await (await open(path)).close()
})

test('of two starts at one moment one gets the log, and the other leaves its lock alone', async (context) => {
  const path = folder(context)
  const lock = join(path, 'lock')
  const log = await open(path)
  // What a start has read that came before the first one wrote its name.
  fs.writeFileSync(lock, '999999 12345')
  await assert.rejects(open(path), (error) => error instanceof EdgeError && error.code === 'EDGE_STORE_IN_USE')
  assert.ok(fs.existsSync(lock))
  await log.close()
  await (await open(path)).close()
})

test('sequence numbers of producers survive a clean stop with the messages that carried them', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log)
  const device = log.producers.numberOf('pump-7')
  const settled = Promise.withResolvers<void>()
  const tag = { device, epoch: 3, lane: 0, firstSequence: 11, sequenceCount: 1 }
  partition.append(
    { count: 1, baseOriginUs: 1n, recordsView: recordsOf([1]) },
    { settled: () => settled.resolve() },
    tag,
  )
  assert.equal(log.producers.have(device, 3, 0), undefined)
  await settled.promise
  assert.equal(log.producers.have(device, 3, 0), 11)
  const disposed = Promise.withResolvers<void>()
  log.producers.record({ ...tag, firstSequence: 12, sequenceCount: 5 }, { settled: () => disposed.resolve() })
  await disposed.promise
  await log.close()
  const second = await open(path)
  assert.equal(second.producers.numberOf('pump-7'), device)
  assert.deepEqual(second.producers.lanes(device, 3), [{ lane: 0, have: 16, durable: 16 }])
  assert.deepEqual(await readAll(reopened(second)), [1])
  await second.close()
})

test('idle, the log holds no more than its buffers', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log)
  for (let round = 0; round < 5; round++) await append(log, partition, batchesOf(round * 1000, round * 1000 + 1000))
  const { journalUsedBytes, journalFileCount } = log.stats()
  assert.ok(journalUsedBytes <= journalFileCount * SMALL.journal_file_size)
  assert.ok(journalFileCount <= SMALL.journal_files)
  await log.close()
})

test('a copy of a journal file under a name that only looks like one is no part of the journal', async (context) => {
  const path = folder(context)
  const log = await open(path)
  const partition = await createPartition(log)
  await append(log, partition, batchesOf(0, 10))
  const journal = join(path, 'journal')
  for (const name of fs.readdirSync(journal)) {
    fs.copyFileSync(join(journal, name), join(journal, `00${name}`))
    fs.copyFileSync(join(journal, name), join(journal, `60${name}`))
  }
  await log.close()
  const again = await open(path)
  context.after(() => again.close())
  assert.deepEqual(await readAll(reopened(again)), range(0, 10))
  assert.deepEqual(
    fs.readdirSync(journal).filter((name) => name.length > 1),
    [],
  )
})
