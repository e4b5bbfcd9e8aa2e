/** Single calls of the disk that fail: what they leave half done must not be taken for what was there before. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { EdgeError } from '../../../src/errors.ts'
import { LOG_SETTINGS, type Log, openLog, type Partition } from '../../../src/log/index.ts'
import type { FileSystem, LogFile } from '../../../src/log/io/file-system.ts'
import { headerCopyAt } from '../../../src/log/io/journal-header.ts'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { streamAt } from '../../support/by-number.ts'
import { eventually } from '../../support/eventually.ts'
import { append, range, readAll } from '../../support/partition-steps.ts'
import { idsOf, recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SETTINGS = {
  ...defaultsOf(LOG_SETTINGS),
  journal_file_size: 256 * 1024,
  journal_files: 2,
  append_retry: 20,
  open_segments: 4,
}

/** What fails next, once. */
interface Faults {
  isReadFailing: boolean
  isRenameFailing: boolean
  isOpenFailing: boolean
  /** Until it is taken back: no segment is begun. */
  isBeginFailing: boolean
  /** The next sync of the journal behind a group. */
  isGroupSyncFailing: boolean
  /** Syncs of the journal that are to wait, when there is a list for them. */
  heldSyncs: (() => void)[] | undefined
}

const failure = (path: string, code = 'EIO'): EdgeError =>
  new EdgeError('EDGE_IO', `${code} on ${path}`, { details: { code, path } })

function faulty(inner: FileSystem, faults: Faults): FileSystem {
  return {
    ...inner,
    open(path, mode) {
      if (faults.isOpenFailing && path.endsWith('.seg')) {
        faults.isOpenFailing = false
        throw failure(path, 'EMFILE')
      }
      if (faults.isBeginFailing && mode === 'create' && path.endsWith('.seg')) throw failure(path)
      return faultyFile(path, inner.open(path, mode), faults)
    },
    rename(from, to) {
      if (faults.isRenameFailing && from.endsWith('.external')) {
        faults.isRenameFailing = false
        throw failure(from)
      }
      inner.rename(from, to)
    },
  }
}

function faultyFile(path: string, inner: LogFile, faults: Faults): LogFile {
  let isGroupWritten = false
  return {
    size: () => inner.size(),
    read(targetView, position) {
      if (!faults.isReadFailing || !path.startsWith('journal/')) return inner.read(targetView, position)
      faults.isReadFailing = false
      // For want of memory: what lies before it was read already.
      inner.read(targetView.subarray(0, targetView.length / 2), position)
      throw failure(path, 'ENOMEM')
    },
    readAtHand: () => false,
    readLater: (target, position) => inner.readLater(target, position),
    write(bytesView, position) {
      inner.write(bytesView, position)
      isGroupWritten = position > 0 && position < headerCopyAt(inner.size())
    },
    datasync(done) {
      const isOfJournal = path.startsWith('journal/')
      if (isOfJournal && isGroupWritten && faults.isGroupSyncFailing) {
        faults.isGroupSyncFailing = false
        setImmediate(done, failure(path))
      } else if (isOfJournal && faults.heldSyncs !== undefined) faults.heldSyncs.push(() => inner.datasync(done))
      else inner.datasync(done)
    },
    truncate: (size) => inner.truncate(size),
    close: () => inner.close(),
  }
}

async function start(
  context: TestContext,
  partitionCount: number,
): Promise<{
  path: string
  log: Log
  faults: Faults
  partitions: readonly Partition[]
  reopen: () => Promise<readonly Partition[]>
  /** @param whenStopped called in between. */
  reopenLog: (whenStopped?: () => void) => Promise<Log>
}> {
  const path = fs.mkdtempSync(join(tmpdir(), 'edge-failed-calls-'))
  context.after(() => fs.rmSync(path, { recursive: true, force: true }))
  const faults: Faults = {
    isReadFailing: false,
    isRenameFailing: false,
    isOpenFailing: false,
    isBeginFailing: false,
    isGroupSyncFailing: false,
    heldSyncs: undefined,
  }
  const fileSystem = faulty(createNodeFileSystem(path), faults)
  const options = { path, clock: systemClock, logger: silentLogger, settings: SETTINGS, fileSystem }
  const log = await openLog(options)
  context.after(() => log.close())
  const stream = await log.catalog.createStream('plant')
  const topic = { name: 'pumps', partitionCount, options: topicOptions('durable', { segmentSizeBytes: 64 * 1024 }) }
  const { partitions } = await log.catalog.createTopic(stream, topic)
  const reopenLog = async (whenStopped?: () => void): Promise<Log> => {
    await log.close()
    whenStopped?.()
    const again = await openLog(options)
    context.after(() => again.close())
    return again
  }
  const reopen = async (): Promise<readonly Partition[]> =>
    (await reopenLog()).catalog.topic(stream.id, 'pumps')?.partitions ?? []
  return { path, log, faults, partitions, reopen, reopenLog }
}

/** One bit of the records, wherever they lie. */
function rotInJournal(path: string, recordsBytes: Uint8Array): void {
  for (const name of fs.readdirSync(join(path, 'journal'))) {
    const file = join(path, 'journal', name)
    const bytes = fs.readFileSync(file)
    const at = bytes.indexOf(recordsBytes)
    if (at === -1) continue
    bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)
    fs.writeFileSync(file, bytes, { flag: 'r+' })
  }
}

test('a read of the journal that fails half-way leaves what others read before it as it was', async (context) => {
  const { log, faults, partitions } = await start(context, 2)
  const [first, second] = partitions
  assert.ok(first && second)
  await append(log, first, [recordsOf(range(0, 10), 500)], 10)
  await append(log, second, [recordsOf(range(100, 110), 500)], 10)
  const idsAt = async (partition: Partition, offset: bigint): Promise<number[]> =>
    (await partition.read({ fromOffset: offset, maxCount: 1, maxBytes: 1 << 20 })).batches.flatMap(idsOf)
  assert.deepEqual(await idsAt(first, 0n), [0])
  faults.isReadFailing = true
  await assert.rejects(async () => idsAt(second, 0n), { code: 'EDGE_IO' })
  assert.deepEqual(await idsAt(first, 1n), [1])
  assert.deepEqual(await idsAt(second, 1n), [101])
})

test('a large batch whose file could not be renamed stays readable, and is there after the next start', async (context) => {
  const { log, faults, partitions, reopen } = await start(context, 1)
  const [partition] = partitions
  assert.ok(partition)
  await append(log, partition, [recordsOf([0], 100), recordsOf([1], 600_000), recordsOf([2], 100)])
  faults.isRenameFailing = true
  let next = 3
  const fill = async (): Promise<void> => append(log, partition, [recordsOf([next++], 8000)])
  while (faults.isRenameFailing) await fill()
  assert.deepEqual(await readAll(partition), range(0, next))
  await eventually(() => partition.segmentCount > 1, 'the next try moves the large batch', 5000)
  assert.deepEqual(await readAll(partition), range(0, next))
  const [again] = await reopen()
  assert.ok(again)
  assert.deepEqual(await readAll(again), range(0, next))
})

test('a large batch behind a damaged one stays readable when both have become segments', async (context) => {
  const { path, log, faults, partitions, reopen, reopenLog } = await start(context, 2)
  const [partition, other] = partitions
  assert.ok(partition && other)
  const damaged = recordsOf([0], 100)
  await append(log, partition, [damaged])
  rotInJournal(path, damaged)
  faults.isBeginFailing = true
  // Enough for the next journal file, in which the large batch is: its file is older than what the first one is packed into.
  const fill = (): Promise<void> => append(log, other, [recordsOf([0], 8000)])
  for (let size = 0; size <= SETTINGS.journal_file_size; size += 8000) await fill()
  await append(log, partition, [recordsOf([1], 600_000)])
  faults.isBeginFailing = false
  await eventually(() => partition.segmentCount === 1, 'the first journal file is packed', 5000)
  assert.deepEqual(await readAll(partition), [1])
  const second = await reopenLog()
  const [again, otherAgain] = second.catalog.topic(0, 'pumps')?.partitions ?? []
  assert.ok(again && otherAgain)
  assert.deepEqual(await readAll(again), [1])
  while (again.segmentCount < 2) await append(second, otherAgain, [recordsOf([0], 8000)])
  assert.deepEqual(await readAll(again), [1])
  await second.close()
  const [last] = await reopen()
  assert.ok(last)
  assert.deepEqual([await readAll(last), last.nextOffset], [[1], 2n])
})

test('while no file can be opened reads fail, and nothing is passed over', async (context) => {
  const { log, faults, partitions, reopen } = await start(context, 1)
  const [partition] = partitions
  assert.ok(partition)
  let next = 0
  while (partition.segmentCount <= SETTINGS.open_segments) await append(log, partition, [recordsOf([next++], 8000)])
  const [again] = await reopen()
  assert.ok(again)
  const first = { fromOffset: 0n, maxCount: 1, maxBytes: 1 << 20 }
  faults.isOpenFailing = true
  await assert.rejects(async () => again.read(first), { code: 'EDGE_IO' })
  faults.isOpenFailing = true
  await assert.rejects(async () => again.offsetAt(1n), { code: 'EDGE_IO' })
  assert.deepEqual(await readAll(again), range(0, next))
})

test('after a start that could not be recorded, a new buffered partition acks nothing before it is synced', async (context) => {
  const { faults, reopenLog } = await start(context, 1)
  const log = await reopenLog(() => {
    faults.isGroupSyncFailing = true
  })
  assert.equal(faults.isGroupSyncFailing, false, 'the group that ends the clean stop was not synced')
  const topic = { name: 'valves', partitionCount: 1, options: topicOptions('buffered') }
  const [partition] = (await log.catalog.createTopic(streamAt(log.catalog, 0), topic)).partitions
  assert.ok(partition)
  const held: (() => void)[] = []
  faults.heldSyncs = held
  let isAcked = false
  const appended = append(log, partition, [recordsOf([0], 100)]).then(() => {
    isAcked = true
  })
  await eventually(() => held.length > 0, 'the sync behind the batch begins', 5000)
  assert.equal(isAcked, false, 'a power cut would bring the clean stop back, and with it the offset')
  faults.heldSyncs = undefined
  for (const sync of held) sync()
  await appended
})
