/** What a start finds after others that changed nothing. */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, type Log, openLog, type Partition } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { append, batchesOf } from '../../support/partition-steps.ts'
import { topicOptions } from '../../support/topic-options.ts'

const settings = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, flash_budget_per_day: 0 }
/** How far a buffered partition goes on above what is there: it may have been seen. */
const JUMP = 65_536n

const openAt = (path: string, bootId: string): Promise<Log> =>
  openLog({ path, clock: systemClock, logger: silentLogger, settings, bootId })

function partitionOf(log: Log): Partition {
  const [partition] = log.catalog.topic(0, 't')?.partitions ?? []
  assert.ok(partition !== undefined)
  return partition
}

test('offsets go on above what may have been seen once, however often an idle edge is started', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-restarts-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const first = await openAt(join(folder, 'first'), 'boot-1')
  const { id } = await first.catalog.createStream('s')
  await first.catalog.createTopic(id, { name: 't', partitionCount: 1, options: topicOptions('buffered') })
  await append(first, partitionOf(first), batchesOf(0, 10))
  await first.flush()
  // As a power cut leaves it: without the mark of a clean stop.
  const cutPath = join(folder, 'cut')
  cpSync(join(folder, 'first'), cutPath, { recursive: true })
  rmSync(join(cutPath, 'lock'), { force: true })
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
