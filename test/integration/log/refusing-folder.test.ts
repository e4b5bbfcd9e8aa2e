/** The folder of one partition takes no files: all topics go on, that one too, and nothing has to be put right afterwards. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { EdgeError } from '../../../src/errors.ts'
import { LOG_SETTINGS, type Log, openLog, type Partition } from '../../../src/log/index.ts'
import { openInspection } from '../../../src/log/inspect/store-inspection.ts'
import { plainCodec } from '../../../src/log/io/block-codec.ts'
import type { FileSystem, LogFile } from '../../../src/log/io/file-system.ts'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'
import { type Scheduler, systemScheduler } from '../../../src/log/scheduler.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { topicAt } from '../../support/by-number.ts'
import { eventually } from '../../support/eventually.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { append, range, readAll } from '../../support/partition-steps.ts'
import { recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SETTINGS = {
  ...defaultsOf(LOG_SETTINGS),
  journal_file_size: 256 * 1024,
  journal_files: 3,
  append_retry: 20,
}
const RECORD_SIZE = 8000
/** Messages that fill a journal file. */
const FILE_COUNT = 32

/** What happens at the disk, beside folders that were made immutable (`chattr +i`). */
interface Faults {
  /** Called when a segment is synced; the sync fails when it says so. */
  isSyncFailing: (path: string) => boolean
  /** The files in such folders are immutable as well (`chattr -R`). */
  areFilesRefusing: boolean
  /** Journal files are not recycled. */
  isRecyclingFailing: boolean
  /** Folders that were synced. */
  readonly synced: Set<string>
}

/** Gives and takes no names in some folders. */
function withImmutable(inner: FileSystem, folders: ReadonlySet<string>, faults: Faults): FileSystem {
  const failing = (path: string, file: LogFile): LogFile => ({
    size: () => file.size(),
    read: (target, position) => file.read(target, position),
    readAtHand: () => false,
    readLater: (target, position) => file.readLater(target, position),
    write(bytesView, position) {
      if (position === 0 && path.startsWith('journal/') && faults.isRecyclingFailing) throw failure('EIO', path)
      file.write(bytesView, position)
    },
    datasync(done) {
      if (path.endsWith('.seg') && faults.isSyncFailing(path)) setImmediate(done, failure('EIO', path))
      else file.datasync(done)
    },
    truncate: (size) => file.truncate(size),
    close: () => file.close(),
  })
  const refuse = (path: string): void => {
    if (!folders.has(path.slice(0, path.lastIndexOf('/')))) return
    throw failure('EPERM', path)
  }
  return {
    ...inner,
    open(path, mode) {
      if (mode === 'create' || (mode === 'existing' && faults.areFilesRefusing)) refuse(path)
      return failing(path, inner.open(path, mode))
    },
    rename(from, to) {
      refuse(from)
      refuse(to)
      inner.rename(from, to)
    },
    unlink(path) {
      refuse(path)
      inner.unlink(path)
    },
    async syncDirectory(path) {
      await inner.syncDirectory(path)
      faults.synced.add(path)
    },
  }
}

const failure = (code: string, path: string): EdgeError =>
  new EdgeError('EDGE_IO', `${code} on ${path}`, { details: { code, path } })

interface World {
  readonly path: string
  readonly faults: Faults
  readonly immutable: Set<string>
  readonly open: (path?: string) => Promise<Log>
  readonly log: Log
}

/** A log with one topic of two partitions. */
async function start(context: TestContext, scheduler = systemScheduler): Promise<World> {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-refusing-folder-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const immutable = new Set<string>()
  const faults: Faults = {
    isSyncFailing: () => false,
    areFilesRefusing: false,
    isRecyclingFailing: false,
    synced: new Set(),
  }
  const path = join(folder, 'data')
  fs.mkdirSync(path)
  const open = async (at = path): Promise<Log> => {
    const fileSystem = withImmutable(createNodeFileSystem(at), immutable, faults)
    // As large in a segment as in the journal.
    const options = { path: at, clock: systemClock, logger: silentLogger, settings: SETTINGS, codec: plainCodec }
    const log = await openLog({ ...options, fileSystem, scheduler })
    context.after(() => log.close())
    return log
  }
  const log = await open()
  const stream = await log.catalog.createStream('plant')
  const options = topicOptions('durable', { segmentSizeBytes: 64 * 1024 })
  await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 2, options })
  return { path, immutable, faults, open, log }
}

function partitionsOf(log: Log): readonly [Partition, Partition] {
  const [first, second] = log.catalog.topic(0, 'pumps')?.partitions ?? []
  assert.ok(first && second)
  return [first, second]
}

/** Some journal files full, half of it in either partition, from that number on. */
async function fill(log: Log, from: number, count = 4 * FILE_COUNT): Promise<number> {
  for (let number = from; number < from + count; number++) {
    for (const partition of partitionsOf(log)) await append(log, partition, [recordsOf([number], RECORD_SIZE)])
  }
  return from + count
}

const eventsOf = (log: Log): string[] => log.findings().map(({ event }) => event)
const folderOf = ({ key }: Partition): string => `streams/0/topics/0/${key}`
const refugeOf = ({ key }: Partition): string => `refuge/${key}`
const filesIn = (path: string, folder: string): string[] =>
  fs.existsSync(join(path, folder)) ? fs.readdirSync(join(path, folder)) : []

async function assertWhole(log: Log, count: number): Promise<void> {
  for (const partition of partitionsOf(log)) {
    assert.deepEqual(await readAll(partition, partition.logStartOffset), range(0, count))
    assert.equal(partition.nextOffset, BigInt(count))
  }
}

test('with a file in the place of its folder a partition goes on, over a stop and a start, and goes home when it is gone', async (context) => {
  const { path, log, open } = await start(context)
  const [first] = partitionsOf(log)
  fs.writeFileSync(join(path, folderOf(first)), 'in the way')
  const early = await fill(log, 0)
  await eventually(() => first.segmentCount > 0, 'its messages are moved into segments')
  assert.deepEqual(eventsOf(log), ['log.folder.refused'], 'told once')
  assert.match(
    log.findings()[0]?.text ?? '',
    /streams\/0\/topics\/0\/\d+ of stream "plant", topic "pumps", partition 0 takes no files, .* kept in refuge\/\d+ until/,
  )
  assert.equal(log.stats().refusingFolderCount, 1)
  assert.equal(log.stats().journalFileCount, SETTINGS.journal_files)
  assert.ok(filesIn(path, refugeOf(first)).length > 0)
  await assertWhole(log, early)
  await log.close()

  const again = await open()
  await assertWhole(again, early)
  fs.rmSync(join(path, folderOf(first)))
  const late = await fill(again, early)
  await eventually(() => filesIn(path, folderOf(first)).length > 0, 'the folder is made')
  assert.deepEqual(eventsOf(again), [], 'it was not asked before it was free')
  assert.equal(again.stats().refusingFolderCount, 0)
  await assertWhole(again, late)
  await again.close()
  using inspection = openInspection({ path })
  for (const partition of inspection.topics.flatMap(({ partitions }) => partitions)) {
    const reading = inspection.read(partition)
    for await (const { take } of reading.batches()) assert.equal(take, 1)
    assert.equal(reading.counts.messageCount, late)
  }
  assert.deepEqual(inspection.findings, [])
})

test('a folder that is made immutable for a while is told once when it begins and once when it ends', async (context) => {
  const { path, log, immutable } = await start(context)
  const [first, second] = partitionsOf(log)
  const early = await fill(log, 0)
  immutable.add(folderOf(first))
  const late = await fill(log, early)
  await eventually(() => log.stats().refusingFolderCount === 1, 'noticed')
  assert.deepEqual(filesIn(path, refugeOf(second)), [])
  immutable.clear()
  const end = await fill(log, late)
  await eventually(() => log.stats().refusingFolderCount === 0, 'over')
  assert.deepEqual(eventsOf(log), ['log.folder.refused', 'log.folder.resumed'])
  const kept = filesIn(path, refugeOf(first))
  await fill(log, end)
  assert.deepEqual(filesIn(path, refugeOf(first)), kept, 'no more go there')
  await assertWhole(log, end + 4 * FILE_COUNT)
})

/** Folders are tried when the test says so. */
function withoutProbes(): { ticks: (() => void)[]; scheduler: Scheduler; tick: () => void } {
  const ticks: (() => void)[] = []
  const scheduler: Scheduler = {
    ...systemScheduler,
    after: (delayMs, task) => {
      if (delayMs !== 20_000) return systemScheduler.after(delayMs, task)
      ticks.push(task)
      return () => void ticks.splice(ticks.indexOf(task), 1)
    },
  }
  const tick = (): void => {
    for (const task of ticks.splice(0)) task()
  }
  return { ticks, scheduler, tick }
}

test('the name of a folder that was made for a try is synced before what is packed into it counts', async (context) => {
  const { scheduler, tick } = withoutProbes()
  const { path, log, immutable, faults } = await start(context, scheduler)
  const [first] = partitionsOf(log)
  immutable.add(folderOf(first))
  const refused = await fill(log, 0)
  immutable.clear()
  const early = await fill(log, refused)
  await eventually(() => filesIn(path, folderOf(first)).length > 1, 'it has a folder, and a refuge')
  fs.rmSync(join(path, folderOf(first)), { recursive: true })
  fs.writeFileSync(join(path, folderOf(first)), 'in the way')
  const late = await fill(log, early)
  await eventually(() => log.stats().refusingFolderCount === 1, 'noticed')
  fs.rmSync(join(path, folderOf(first)))
  faults.synced.clear()
  tick()
  assert.equal(log.stats().refusingFolderCount, 0)
  await fill(log, late)
  await eventually(() => faults.synced.has(folderOf(first)), 'it takes segments again')
  assert.ok(faults.synced.has('streams/0/topics/0'))
})

test('a folder that was mended is noticed though no segment is begun, and an attempt that a kill left is removed', async (context) => {
  const { ticks, scheduler, tick } = withoutProbes()
  const { path, log, immutable, open } = await start(context, scheduler)
  const [first] = partitionsOf(log)
  immutable.add(folderOf(first))
  const count = await fill(log, 0)
  await eventually(() => log.stats().refusingFolderCount === 1, 'noticed')
  tick()
  assert.equal(log.stats().refusingFolderCount, 1, 'it was tried in vain, and is tried again')
  immutable.clear()
  tick()
  assert.equal(log.stats().refusingFolderCount, 0)
  assert.deepEqual(eventsOf(log), ['log.folder.refused', 'log.folder.resumed'])
  assert.equal(ticks.length, 0, 'no folder is left to try')
  await log.close()
  const names = filesIn(path, folderOf(first))
  fs.writeFileSync(join(path, folderOf(first), '00000000000000000000.0.external'), 'left')
  const again = await open()
  assert.deepEqual(filesIn(path, folderOf(first)), names)
  assert.deepEqual(eventsOf(again), [])
  await assertWhole(again, count)
})

test('large batches before and after the folder was made immutable with all in it are kept, also over a kill', async (context) => {
  const { path, log, immutable, faults, open } = await start(context)
  const [first] = partitionsOf(log)
  faults.areFilesRefusing = true
  const addLarge = async (number: number): Promise<void> => {
    for (const partition of partitionsOf(log)) await append(log, partition, [recordsOf([number], 600_000)])
  }
  let next = await fill(log, 0, 4)
  await addLarge(next++)
  immutable.add(folderOf(first))
  await addLarge(next++)
  next = await fill(log, next)
  await eventually(() => first.segmentCount > 2, 'the first of them has become a segment')
  await assertWhole(log, next)
  await log.flush()

  // The page cache as a kill leaves it.
  const killed = `${path}-killed`
  killedCopy(path, killed)
  const again = await open(killed)
  await assertWhole(again, next)
  assert.ok(
    again.findings().every(({ event, text }) => event === 'log.trash.stuck' && / could not be removed/.test(text)),
    'what could not be renamed, or was just being packed, is of no use any more, and cannot be removed',
  )
  immutable.clear()
  next = await fill(again, next)
  await assertWhole(again, next)
})

test('what lies in the refuge goes with retention, with a purge and with its topic', async (context) => {
  const { path, log, immutable, open } = await start(context)
  const [first, second] = partitionsOf(log)
  immutable.add(folderOf(first))
  immutable.add(folderOf(second))
  await fill(log, 0)
  await eventually(() => first.segmentCount > 2, 'some segments')
  const before = filesIn(path, refugeOf(first)).length
  await first.deleteSegments(2, null)
  assert.equal(filesIn(path, refugeOf(first)).length, before - 2)
  await second.purge()
  assert.deepEqual(filesIn(path, refugeOf(second)), [])
  await fill(log, 0)
  await log.catalog.deleteTopic(topicAt(log.catalog, 0, 0))
  await eventually(() => filesIn(path, 'refuge').length === 0, 'the folders go')
  assert.equal(log.stats().refusingFolderCount, 0)

  // A stop that came too early.
  fs.mkdirSync(join(path, refugeOf(first)), { recursive: true })
  fs.writeFileSync(join(path, refugeOf(first), '00000000000000000000.1.seg'), 'left')
  await log.close()
  const again = await open()
  assert.deepEqual(filesIn(path, 'refuge'), [])
  assert.ok(!eventsOf(again).includes('log.trash.stuck'))
})

test('what lies in the refuge of a partition whose descriptor and its copy are lost is kept in a topic of its own', async (context) => {
  const { path, log, open } = await start(context)
  const [first, second] = partitionsOf(log)
  fs.writeFileSync(join(path, folderOf(first)), 'in the way')
  const count = await fill(log, 0)
  await log.close()
  fs.rmSync(join(path, 'streams/0/topics/0/topic.json'))
  for (const name of fs.readdirSync(path)) if (name.startsWith('metadata.sqlite')) fs.rmSync(join(path, name))
  // All that the journal knows of it lies in the refuge as well.
  fs.rmSync(join(path, 'journal'), { recursive: true })
  const again = await open()
  const found = [`recovered-${second.key}`, `recovered-${first.key}`].map((name) => {
    const topic = [...again.catalog.streams.values()].flatMap(({ topics }) => [...topics.values()])
    const [partition] = topic.find((each) => each.name === name)?.partitions ?? []
    return partition ?? assert.fail(`topic ${name} is missing`)
  })
  for (const partition of found) {
    const numbers = await readAll(partition)
    assert.ok(numbers.length > 0 && numbers.length <= count)
    assert.deepEqual(numbers, range(0, numbers.length))
  }
})

/** The next sync in the partition's folder fails, and nothing can be taken from it then. @returns files that it has, then. */
function failOnce({ path, immutable, faults }: World, partition: Partition): string[] {
  const left: string[] = []
  const folder = folderOf(partition)
  faults.isSyncFailing = (synced) => {
    if (!synced.startsWith(folder)) return false
    faults.isSyncFailing = () => false
    immutable.add(folder)
    left.push(...filesIn(path, folder))
    return true
  }
  return left
}

test('names that a run which failed could not take back are emptied before another one counts', async (context) => {
  const world = await start(context)
  const { path, log, immutable, open } = world
  const [first] = partitionsOf(log)
  const left = failOnce(world, first)
  const count = await fill(log, 0)
  await eventually(() => first.segmentCount > 2, 'the next try is done')
  assert.ok(left.length > 0)
  const sizes = left.map((name) => fs.statSync(join(path, folderOf(first), name)).size)
  assert.deepEqual(sizes, Array(left.length).fill(0))
  await assertWhole(log, count)
  await log.close()
  const again = await open()
  await assertWhole(again, count)
  immutable.clear()
  await again.close()
  await assertWhole(await open(), count)
  assert.deepEqual(
    left.filter((name) => filesIn(path, folderOf(first)).includes(name)),
    [],
  )
})

test('names that a run which failed could neither take back nor empty are overtaken, and nobody waits for them', async (context) => {
  const world = await start(context)
  const { path, log, immutable, faults, open } = world
  const [first] = partitionsOf(log)
  faults.areFilesRefusing = true
  const left = failOnce(world, first)
  const count = await fill(log, 0)
  await eventually(() => first.segmentCount > 2, 'the next try is done')
  assert.ok(left.length > 0)
  await assertWhole(log, count)
  await log.close()
  const again = await open()
  await assertWhole(again, count)
  const late = await fill(again, count)
  await again.close()
  immutable.clear()
  const last = await open()
  await assertWhole(last, late)
  assert.deepEqual(
    left.filter((name) => filesIn(path, folderOf(first)).includes(name)),
    [],
  )
})

test('after a kill what the journal holds as well is emptied where it cannot be removed', async (context) => {
  const { path, log, immutable, faults, open } = await start(context)
  const [first] = partitionsOf(log)
  await eventually(() => log.stats().journalFileCount === SETTINGS.journal_files, 'all files are there')
  faults.isRecyclingFailing = true
  const count = await fill(log, 0, FILE_COUNT)
  await eventually(() => eventsOf(log).includes('log.repack.failed'), 'packed, and not recycled')
  const killed = `${path}-killed`
  killedCopy(path, killed)
  faults.isRecyclingFailing = false
  immutable.add(folderOf(first))
  const packed = filesIn(killed, folderOf(first))
  assert.ok(packed.length > 0)
  const again = await open(killed)
  assert.deepEqual(
    packed.map((name) => fs.statSync(join(killed, folderOf(first), name)).size),
    Array(packed.length).fill(0),
  )
  assert.equal(eventsOf(again)[0], 'log.trash.stuck')
  await assertWhole(again, count)
  const late = await fill(again, count)
  await eventually(() => filesIn(killed, refugeOf(first)).length > 0, 'packed again')
  await assertWhole(again, late)
})

test('where the disk takes no segment anywhere, appends wait as ever, and go on by themselves', async (context) => {
  const { path, log, immutable } = await start(context)
  const [first, second] = partitionsOf(log)
  for (const partition of [first, second]) immutable.add(folderOf(partition)).add(refugeOf(partition))
  const filled = fill(log, 0, 8 * FILE_COUNT)
  await eventually(() => eventsOf(log).includes('log.repack.failed'), 'told')
  const { journal_files, journal_file_size } = SETTINGS
  await eventually(() => log.stats().journalUsedBytes > (journal_files - 1) * journal_file_size, 'the journal is full')
  assert.equal(log.stats().refusingFolderCount, 0, 'it is not said to be one folder')
  immutable.clear()
  await assertWhole(log, await filled)
  assert.deepEqual(filesIn(path, 'refuge'), [])
})
