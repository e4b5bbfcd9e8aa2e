/** What a start finds after others that changed nothing. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import {
  GROUP_ALIGNMENT,
  GROUP_HEADER_SIZE,
  GROUP_MAGIC_AT,
  GROUP_MAGIC_TEXT,
  PAGE_SIZE,
} from '../../../src/log/core/journal-format.ts'
import { LOG_SETTINGS, type Log, type LogSettings, openLog, type Partition } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { eventually } from '../../support/eventually.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { append, batchesOf, range, readAll } from '../../support/partition-steps.ts'
import { topicOptions } from '../../support/topic-options.ts'

const settings = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, flash_budget_per_day: 0 }
/** How far a buffered partition goes on above what is there: it may have been seen. */
const JUMP = 65_536n

const openAt = (path: string, bootId: string, changes: Partial<LogSettings> = {}): Promise<Log> =>
  openLog({ path, clock: systemClock, logger: silentLogger, settings: { ...settings, ...changes }, bootId })

function partitionOf(log: Log): Partition {
  const [partition] = log.catalog.topic(0, 't')?.partitions ?? []
  assert.ok(partition !== undefined)
  return partition
}

test('offsets go on above what may have been seen once, however often an idle edge is started', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-restarts-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const first = await openAt(join(folder, 'first'), 'boot-1')
  const stream = await first.catalog.createStream('s')
  await first.catalog.createTopic(stream, { name: 't', partitionCount: 1, options: topicOptions('buffered') })
  await append(first, partitionOf(first), batchesOf(0, 10))
  await first.flush()
  // As a power cut leaves it: without the mark of a clean stop.
  const cutPath = join(folder, 'cut')
  killedCopy(join(folder, 'first'), cutPath)
  await first.close()
  for (let start = 2; start < 8; start++) {
    const log = await openAt(cutPath, `boot-${start}`)
    assert.equal(partitionOf(log).nextOffset, 10n + JUMP, `start ${start}`)
    await log.close()
  }
  const last = await openAt(cutPath, 'boot-8')
  await append(last, partitionOf(last), batchesOf(10, 11))
  assert.equal(partitionOf(last).nextOffset, 11n + JUMP)
  await last.close()
})

/** As a power cut leaves what was written last and not synced. */
function tearLastGroup(path: string): void {
  const groups = readdirSync(join(path, 'journal')).flatMap((name) => {
    const file = join(path, 'journal', name)
    const bytes = readFileSync(file)
    const places = Array.from({ length: bytes.length / GROUP_ALIGNMENT }, (_, index) => index * GROUP_ALIGNMENT)
    return places
      .filter((at) => bytes.toString('latin1', at + GROUP_MAGIC_AT, at + 8) === GROUP_MAGIC_TEXT)
      .map((at) => ({ file, at, sequence: bytes.readBigUInt64LE(at + 40), ordinal: bytes.readUInt32LE(at + 64) }))
  })
  const [last] = groups.sort((a, b) => b.ordinal - a.ordinal || Number(b.sequence - a.sequence))
  assert.ok(last !== undefined)
  const bytes = readFileSync(last.file)
  bytes.fill(0, last.at + GROUP_HEADER_SIZE, last.at + GROUP_HEADER_SIZE + GROUP_ALIGNMENT)
  writeFileSync(last.file, bytes)
}

test('a clean stop counts no more after a start that was killed before it wrote anything', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-restarts-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const stoppedPath = join(folder, 'stopped')
  const first = await openAt(stoppedPath, 'boot-1')
  const stream = await first.catalog.createStream('s')
  await first.catalog.createTopic(stream, { name: 't', partitionCount: 1, options: topicOptions('buffered') })
  // The clean stop takes the file's last page: a start behind it is written into another one.
  const count = settings.journal_file_size / PAGE_SIZE - 2
  for (let number = 0; number < count; number++) {
    await append(first, partitionOf(first), batchesOf(number, number + 1))
    await first.flush()
  }
  await first.close()
  const idle = await openAt(stoppedPath, 'boot-1')
  const idlePath = killedCopy(stoppedPath, join(folder, 'idle'))
  await idle.close()

  const second = await openAt(idlePath, 'boot-1')
  assert.equal(partitionOf(second).nextOffset, BigInt(count), 'the machine ran on, so nothing is lost')
  await append(second, partitionOf(second), batchesOf(count, count + 5))
  const cutPath = killedCopy(idlePath, join(folder, 'cut'))
  await second.close()
  tearLastGroup(cutPath)

  await using third = await openAt(cutPath, 'boot-2')
  assert.equal(partitionOf(third).nextOffset, BigInt(count) + JUMP, 'five messages were acked behind the start')
})

test('a purged partition goes on at its end after a kill, and behind a jump nothing counts as damaged', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-restarts-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const firstPath = join(folder, 'first')
  await using first = await openAt(firstPath, 'boot-1')
  const stream = await first.catalog.createStream('s')
  await first.catalog.createTopic(stream, { name: 't', partitionCount: 1, options: topicOptions('buffered') })
  await append(first, partitionOf(first), batchesOf(0, 10))
  await first.flush()
  await partitionOf(first).purge()

  await using second = await openAt(killedCopy(firstPath, join(folder, 'second')), 'boot-1')
  assert.equal(partitionOf(second).nextOffset, 10n, 'the machine ran on, so nothing is lost')
  await using third = await openAt(killedCopy(join(folder, 'second'), join(folder, 'third')), 'boot-2')
  assert.equal(partitionOf(third).nextOffset, 10n + JUMP)
  await append(third, partitionOf(third), batchesOf(10, 11))
  await third.flush()
  await using fourth = await openAt(killedCopy(join(folder, 'third'), join(folder, 'fourth')), 'boot-2')
  assert.deepEqual(fourth.findings(), [])
  assert.equal(partitionOf(fourth).nextOffset, 11n + JUMP)
})

const LARGE_FILES = { journal_file_size: 4 * 1024 * 1024 }

test('what lies in larger journal files than are configured now is read, and packed as it is', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-restarts-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const first = await openAt(folder, 'boot-1', LARGE_FILES)
  const stream = await first.catalog.createStream('s')
  await first.catalog.createTopic(stream, { name: 't', partitionCount: 1, options: topicOptions('durable') })
  await append(first, partitionOf(first), batchesOf(0, 4, 400_000))
  await first.close()

  await using second = await openAt(folder, 'boot-2')
  assert.deepEqual(await readAll(partitionOf(second)), range(0, 4))
  await append(second, partitionOf(second), batchesOf(4, 500, 12_000))
  await eventually(() => readdirSync(join(folder, 'journal')).every((name) => sizeOf(folder, name) === 256 * 1024))
  assert.deepEqual(await readAll(partitionOf(second)), range(0, 500))
  assert.deepEqual(second.findings(), [])
})

test('an unproven group that is longer than a journal file is now is written again, and the next start makes smaller files', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-restarts-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'first')
  const first = await openAt(path, 'boot-1', LARGE_FILES)
  const stream = await first.catalog.createStream('s')
  await first.catalog.createTopic(stream, { name: 't', partitionCount: 1, options: topicOptions('durable') })
  await append(first, partitionOf(first), batchesOf(0, 9, 100_000))
  const killedPath = killedCopy(path, join(folder, 'killed'))
  await first.close()

  const second = await openAt(killedPath, 'boot-1')
  assert.deepEqual(await readAll(partitionOf(second)), range(0, 9))
  await append(second, partitionOf(second), batchesOf(9, 12))
  await second.close()
  await using third = await openAt(killedPath, 'boot-1')
  await append(third, partitionOf(third), batchesOf(12, 500, 12_000))
  await eventually(() =>
    readdirSync(join(killedPath, 'journal')).every((name) => sizeOf(killedPath, name) === 256 * 1024),
  )
  assert.deepEqual(await readAll(partitionOf(third)), range(0, 500))
})

const sizeOf = (path: string, name: string): number =>
  statSync(join(path, 'journal', name), { throwIfNoEntry: false })?.size ?? 0
