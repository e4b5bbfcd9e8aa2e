/** A disk that turns read-only under the log, as ext4 does when it finds an error. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import type { EdgeError } from '../../../src/errors.ts'
import { LOG_SETTINGS, type Log, openLog, type Partition } from '../../../src/log/index.ts'
import { createNodeFileSystem } from '../../../src/log/io/node-file-system.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { eventually } from '../../support/eventually.ts'
import { idsOf, recordsOf } from '../../support/records.ts'
import { TightFileSystem } from '../../support/tight-file-system.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SETTINGS = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, journal_files: 3, append_retry: 20 }
const ROOM = 256 * 1024 * 1024

function open(path: string, fileSystem: TightFileSystem): Promise<Log> {
  return openLog({ path, clock: systemClock, logger: silentLogger, settings: SETTINGS, fileSystem })
}

function append(partition: Partition, number: number): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const settled = (error: EdgeError | null) => (error === null ? resolve() : reject(error))
    partition.append({ count: 1, baseOriginUs: 1n, recordsView: recordsOf([number]) }, { settled })
  })
}

async function readAll(partition: Partition): Promise<number[]> {
  const { batches } = await partition.read({ fromOffset: 0n, maxCount: 100, maxBytes: 1 << 20 })
  return batches.flatMap(idsOf)
}

test('what was acknowledged reads on, appends are refused by name, and they are taken again when the disk is', async (context) => {
  const path = fs.mkdtempSync(join(tmpdir(), 'edge-read-only-'))
  context.after(() => fs.rmSync(path, { recursive: true, force: true }))
  const disk = new TightFileSystem(createNodeFileSystem(path), ROOM)
  await using log = await open(path, disk)
  const stream = await log.catalog.createStream('plant')
  const options = topicOptions('durable')
  const topic = await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 1, options })
  const partition = topic.partitions[0] ?? assert.fail('no partition')
  await append(partition, 0)
  disk.isReadOnly = true
  await assert.rejects(append(partition, 1), { code: 'EDGE_APPEND_FAILED', message: /EROFS/ })
  assert.equal(log.isWritable, false)
  await assert.rejects(log.catalog.createStream('other'), { code: 'EDGE_IO', message: /EROFS/ })
  assert.deepEqual(await readAll(partition), [0])
  disk.isReadOnly = false
  await eventually(() => log.isWritable, 'the disk takes appends again')
  await append(partition, 2)
  // The one that was refused was in doubt, as after a lost reply.
  assert.deepEqual(await readAll(partition), [0, 1, 2])
})

test('the log closes on a disk that is read-only, and the next start has everything', async (context) => {
  const path = fs.mkdtempSync(join(tmpdir(), 'edge-read-only-'))
  context.after(() => fs.rmSync(path, { recursive: true, force: true }))
  const disk = new TightFileSystem(createNodeFileSystem(path), ROOM)
  const log = await open(path, disk)
  const stream = await log.catalog.createStream('plant')
  const options = topicOptions('durable')
  const topic = await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 1, options })
  const partition = topic.partitions[0] ?? assert.fail('no partition')
  await append(partition, 0)
  disk.isReadOnly = true
  await log.close()
  disk.isReadOnly = false
  await using again = await open(path, disk)
  const [found] = again.catalog.topic(0, 0)?.partitions ?? []
  assert.ok(found)
  assert.deepEqual(await readAll(found), [0])
})
