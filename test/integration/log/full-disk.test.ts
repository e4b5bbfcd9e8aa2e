/** A disk that others have filled, while everything the log holds is still in its journal. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import type { EdgeError } from '../../../src/errors.ts'
import { LOG_SETTINGS, type Log, openLog, type Partition, RETENTION_SETTINGS } from '../../../src/log/index.ts'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { eventually } from '../../support/eventually.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { idsOf, recordsOf } from '../../support/records.ts'
import { TightFileSystem } from '../../support/tight-file-system.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SETTINGS = {
  ...defaultsOf(LOG_SETTINGS),
  journal_file_size: 256 * 1024,
  journal_files: 3,
  append_retry: 20,
}
const RETENTION = { ...defaultsOf(RETENTION_SETTINGS), free_space_floor: 0 }
const RECORD_SIZE = 8000
/** More than all journal files hold. */
const COUNT = 200

interface World {
  readonly log: Log
  readonly disk: TightFileSystem
  readonly path: string
  readonly partitionOf: (name: string, overflow: 'drop-oldest' | 'reject') => Promise<Partition>
}

async function open(path: string, disk: TightFileSystem): Promise<Log> {
  return openLog({
    path,
    clock: systemClock,
    logger: silentLogger,
    settings: SETTINGS,
    retention: RETENTION,
    fileSystem: disk,
  })
}

async function start(context: TestContext): Promise<World> {
  const path = fs.mkdtempSync(join(tmpdir(), 'edge-full-disk-'))
  context.after(() => fs.rmSync(path, { recursive: true, force: true }))
  const disk = new TightFileSystem(createNodeFileSystem(path), 64 * 1024 * 1024)
  const log = await open(path, disk)
  context.after(() => log.close())
  const stream = await log.catalog.createStream('plant')
  const partitionOf = async (name: string, overflow: 'drop-oldest' | 'reject'): Promise<Partition> => {
    const options = topicOptions('durable', { overflow })
    const topic = await log.catalog.createTopic(stream, { name, partitionCount: 1, options })
    return topic.partitions[0] ?? assert.fail('no partition')
  }
  return { log, disk, path, partitionOf }
}

/** The reserves are gone, and others take every byte that comes free. */
async function fill({ log, disk, path }: World): Promise<void> {
  await eventually(
    () => fs.existsSync(join(path, 'reserve')) && fs.readdirSync(join(path, 'journal')).length === 3,
    'set up',
  )
  await log.flush()
  fs.rmSync(join(path, 'reserve'))
  disk.freeBytes = 0
}

async function append(log: Log, partition: Partition, number: number, timeoutMs = 10_000): Promise<void> {
  const recordsView = recordsOf([number], RECORD_SIZE)
  const until = performance.now() + timeoutMs
  while (!log.hasRoom(recordsView.length)) {
    assert.ok(performance.now() < until, `no room for message ${number} within ${timeoutMs} ms`)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs)
      log.onceRoom(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }
  await new Promise<void>((resolve, reject) => {
    const settled = (error: EdgeError | null) => (error === null ? resolve() : reject(error))
    partition.append({ count: 1, baseOriginUs: 1n, recordsView }, { settled })
  })
}

async function readAll(partition: Partition): Promise<number[]> {
  const numbers: number[] = []
  for (let fromOffset = partition.logStartOffset; fromOffset < partition.visibleEnd; ) {
    const { batches, nextOffset } = await partition.read({ fromOffset, maxCount: 100, maxBytes: 1 << 20 })
    numbers.push(...batches.flatMap(idsOf))
    fromOffset = nextOffset
  }
  return numbers
}

test('where the oldest may go, new readings are stored, and what went is counted with its offsets', async (context) => {
  const world = await start(context)
  const { log } = world
  const partition = await world.partitionOf('pumps', 'drop-oldest')
  await fill(world)
  for (let number = 0; number < COUNT; number++) await append(log, partition, number)
  const kept = await readAll(partition)
  const first = Number(partition.logStartOffset)
  assert.ok(first > 0, 'the oldest went')
  assert.deepEqual(
    kept,
    Array.from({ length: COUNT - first }, (_, at) => first + at),
  )
  const [drop] = log.drops().recent
  assert.deepEqual([drop?.fromOffset, drop?.endOffset, drop?.messageCount], [0n, BigInt(first), first])
  assert.equal(log.stats().droppedMessages, first)
})

test('what was dropped stays dropped after a kill, and what was stored is there', async (context) => {
  const world = await start(context)
  const { log, disk, path } = world
  const partition = await world.partitionOf('pumps', 'drop-oldest')
  await fill(world)
  for (let number = 0; number < COUNT; number++) await append(log, partition, number)
  const first = Number(partition.logStartOffset)
  const copy = join(path, '..', `${path.slice(path.lastIndexOf('/') + 1)}-copy`)
  context.after(() => fs.rmSync(copy, { recursive: true, force: true }))
  killedCopy(path, copy)
  disk.freeBytes = 64 * 1024 * 1024
  await using again = await open(copy, new TightFileSystem(createNodeFileSystem(copy), 64 * 1024 * 1024))
  const [found] = again.catalog.topic(0, 0)?.partitions ?? []
  assert.ok(found)
  assert.equal(found.logStartOffset, BigInt(first))
  assert.deepEqual(
    await readAll(found),
    Array.from({ length: COUNT - first }, (_, at) => first + at),
  )
})

test('readings that an upstream has not got are told when they go', async (context) => {
  const world = await start(context)
  const { log } = world
  const partition = await world.partitionOf('pumps', 'drop-oldest')
  log.metadata.setCursor('central', partition.key, { confirmedOffset: -1n, upstreamOffset: null })
  await fill(world)
  for (let number = 0; number < COUNT; number++) await append(log, partition, number)
  const told = log.findings().find(({ event }) => event === 'log.retention.unread_dropped')
  assert.match(
    told?.text ?? '',
    /messages of stream "plant", topic "pumps", partition 0 are gone that a consumer or upstream had not read, offsets 0 to /,
  )
  assert.equal(log.drops().byReason.get('disk-budget-unread')?.messageCount, Number(partition.logStartOffset))
})

test('a topic that drops nothing loses nothing: its senders wait, and go on as soon as there is room', async (context) => {
  const world = await start(context)
  const { log, disk } = world
  const kept = await world.partitionOf('kept', 'reject')
  const dropping = await world.partitionOf('dropping', 'drop-oldest')
  await fill(world)
  let appended = 0
  const sender = (async () => {
    for (let number = 0; number < COUNT; number++) {
      await append(log, number % 2 === 0 ? kept : dropping, number, 60_000)
      appended++
    }
  })()
  await eventually(() => log.findings().some(({ event }) => event === 'log.journal.stuck'), 'told')
  const stuck = log.findings().find(({ event }) => event === 'log.journal.stuck')
  assert.match(stuck?.text ?? '', /the disk is full .*\(stream "plant", topic "kept"\) .* senders wait .* free space/)
  assert.deepEqual([kept.logStartOffset, dropping.logStartOffset], [0n, 0n])
  const before = appended
  assert.ok(before < COUNT)
  disk.freeBytes = 64 * 1024 * 1024
  await sender
  assert.deepEqual(
    await readAll(kept),
    Array.from({ length: COUNT / 2 }, (_, at) => 2 * at),
  )
})

test('large batches that the disk refuses are told once, do not count as taken, and are told again when it takes them', async (context) => {
  const world = await start(context)
  const { log, disk } = world
  const partition = await world.partitionOf('pumps', 'drop-oldest')
  await fill(world)
  const send = (): Promise<void> => {
    const recordsView = recordsOf([0], SETTINGS.journal_file_size)
    return new Promise<void>((resolve, reject) => {
      const settled = (error: EdgeError | null) => (error === null ? resolve() : reject(error))
      partition.append({ count: 1, baseOriginUs: 1n, recordsView }, { settled })
    })
  }
  const told = () =>
    log.findings().flatMap(({ event, text }) => (event.startsWith('log.append.') ? [`${event}: ${text}`] : []))
  await assert.rejects(send(), { code: 'EDGE_DISK_FULL' })
  await assert.rejects(send(), { code: 'EDGE_DISK_FULL' })
  assert.equal(told().length, 1)
  assert.match(told()[0] ?? '', /^log\.append\.large_refused: the disk refuses large batches, .*ENOSPC/)
  assert.equal(log.stats().appendedMessages, 0)
  await append(log, partition, 0)
  disk.freeBytes = 64 * 1024 * 1024
  await send()
  assert.match(told()[1] ?? '', /^log\.append\.resumed: .*large batches/)
  assert.equal(log.stats().appendedMessages, 2)
})

test('a start that must write gives up the reserve', async (context) => {
  const { log, disk, path } = await start(context)
  await eventually(() => fs.existsSync(join(path, 'reserve')), 'set up')
  await log.close()
  disk.freeBytes = 0
  // A start that failed takes the lock's file along, and others take its place.
  for (const name of ['store.json', 'lock']) fs.rmSync(join(path, name))
  const again = await open(path, disk)
  context.after(() => again.close())
  assert.deepEqual(again.storeId, log.storeId)
  assert.ok(!fs.existsSync(join(path, 'reserve')))
})
