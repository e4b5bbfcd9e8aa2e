/** How many messages a partition has, where offsets were left out after a power cut. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, type Log, openLog } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { eventually } from '../../support/eventually.ts'
import { killedCopy } from '../../support/killed-copy.ts'
import { append, batchesOf, onlyPartition, readAll } from '../../support/partition-steps.ts'
import { topicOptions } from '../../support/topic-options.ts'

const settings = {
  ...defaultsOf(LOG_SETTINGS),
  journal_file_size: 256 * 1024,
  repack_after: 1000,
  flash_budget_per_day: 0,
}

const openAt = (path: string, bootId: string): Promise<Log> =>
  openLog({ path, clock: systemClock, logger: silentLogger, settings, bootId })

test('offsets left out after a power cut are no messages, at once, once repacked, and after kills and stops', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-message-count-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const at = (name: string): string => join(folder, name)
  const first = await openAt(at('first'), 'boot-1')
  const stream = await first.catalog.createStream('s')
  await first.catalog.createTopic(stream, { name: 't', partitionCount: 1, options: topicOptions('buffered') })
  await append(first, onlyPartition(first), batchesOf(0, 10))
  await first.flush()
  killedCopy(at('first'), at('cut'))
  await first.close()

  const log = await openAt(at('cut'), 'boot-2')
  assert.equal(onlyPartition(log).messageCount, 10)
  await append(log, onlyPartition(log), batchesOf(10, 11))
  assert.equal(onlyPartition(log).messageCount, 11)
  await log.flush()
  const inJournal = await openAt(killedCopy(at('cut'), at('journal')), 'boot-2')
  assert.equal(onlyPartition(inJournal).messageCount, 11)
  await inJournal.close()
  await eventually(() => log.stats().segmentCount > 0 && log.stats().journalUsedBytes === 0, 'repacked', 5000)
  assert.equal(onlyPartition(log).messageCount, 11)
  killedCopy(at('cut'), at('killed'))
  await log.close()

  for (const name of ['cut', 'killed']) {
    const last = await openAt(at(name), 'boot-2')
    const partition = onlyPartition(last)
    assert.equal(partition.messageCount, 11, name)
    assert.equal((await readAll(partition)).length, 11)
    await partition.purge()
    assert.equal(partition.messageCount, 0)
    await last.close()
  }
})
