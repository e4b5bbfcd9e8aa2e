/** Reads from the journal while its files are recycled: what lay at a place before says nothing about what lies there now. */
import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, openLog, type Partition } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { append, range } from '../../support/partition-steps.ts'
import { idsOf, recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

/** Seven batches fill a file, each synced alone: few enough places that a reader remembers all of them. */
const SETTINGS = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 64 * 1024, journal_files: 2 }
const RECORD_SIZE = 7000
const COUNT = 60

async function idsFrom(partition: Partition, fromOffset: bigint): Promise<number[]> {
  const { batches } = await partition.read({ fromOffset, maxCount: 1, maxBytes: 1 << 20 })
  return batches.flatMap(idsOf)
}

test('every message is polled right after its append, however often the journal goes round', async (context) => {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-hot-reads-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'data')
  await using log = await openLog({ path, clock: systemClock, logger: silentLogger, settings: SETTINGS })
  const stream = await log.catalog.createStream('plant')
  const options = topicOptions('durable')
  const topic = await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 1, options })
  const [partition] = topic.partitions
  assert.ok(partition)
  for (let number = 0; number < COUNT; number++) {
    await append(log, partition, [recordsOf([number], RECORD_SIZE)])
    assert.deepEqual(await idsFrom(partition, BigInt(number)), [number])
  }
  assert.deepEqual(log.findings(), [])
})

test('batches of two partitions that are polled in parts, in turn, stay apart', async (context) => {
  const folder = fs.mkdtempSync(join(tmpdir(), 'edge-hot-reads-'))
  context.after(() => fs.rmSync(folder, { recursive: true, force: true }))
  await using log = await openLog({
    path: join(folder, 'data'),
    clock: systemClock,
    logger: silentLogger,
    settings: SETTINGS,
  })
  const stream = await log.catalog.createStream('plant')
  const options = topicOptions('durable')
  const topic = await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 2, options })
  for (const [which, partition] of topic.partitions.entries()) {
    await append(log, partition, [recordsOf(range(which * 100, which * 100 + 10), 500)], 10)
  }
  for (let offset = 0; offset < 10; offset++) {
    for (const [which, partition] of topic.partitions.entries()) {
      const read = await partition.read({ fromOffset: BigInt(offset), maxCount: 1, maxBytes: 1 << 20 })
      assert.deepEqual(read.batches.flatMap(idsOf), [which * 100 + offset])
    }
  }
})
