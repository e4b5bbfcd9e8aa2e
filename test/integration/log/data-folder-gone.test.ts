/** The data folder, or a part of it, is deleted or moved away under a running log. */
import assert from 'node:assert/strict'
import { existsSync, globSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, type Log, openLog } from '../../../src/log/index.ts'
import { type Scheduler, systemScheduler } from '../../../src/log/scheduler.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { eventually } from '../../support/eventually.ts'
import { append, batchesOf, onlyPartition, range, readAll } from '../../support/partition-steps.ts'
import { topicOptions } from '../../support/topic-options.ts'

const SETTINGS = {
  ...defaultsOf(LOG_SETTINGS),
  journal_file_size: 256 * 1024,
  journal_files: 3,
  segment_size: 8 * 1024,
  append_retry: 100,
}
/** Whatever would be looked at in a second or two is looked at soon. */
const HASTY: Scheduler = {
  ...systemScheduler,
  after: (milliseconds, task) => systemScheduler.after(Math.min(milliseconds, 50), task),
}

/** Names are looked at now and then; between two steps of a test time enough has passed. */
let aheadUs = 0
const clock = { ...systemClock, monotonicUs: () => systemClock.monotonicUs() + aheadUs }

const open = (path: string, scheduler = HASTY): Promise<Log> =>
  openLog({ path, clock, logger: silentLogger, settings: SETTINGS, scheduler })

/** A log with a topic and ten acknowledged messages. */
async function opened(context: TestContext, scheduler?: Scheduler): Promise<{ log: Log; path: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'edge-gone-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'data')
  const log = await open(path, scheduler)
  context.after(() => log.close())
  const stream = await log.catalog.createStream('plant')
  await log.catalog.createTopic(stream, { name: 'pumps', partitionCount: 1, options: topicOptions('durable') })
  await append(log, onlyPartition(log), batchesOf(0, 10))
  return { log, path }
}

const eventsOf = (log: Log): string[] => log.findings().map(({ event }) => event)
const isGoneTold = (log: Log): boolean => eventsOf(log).at(-1) === 'log.folder.gone'

for (const [what, remove] of [
  ['deleted', (path: string) => rmSync(path, { recursive: true })],
  ['moved away', (path: string) => renameSync(path, `${path}.moved`)],
  ['emptied', (path: string) => readdirSync(path).map((name) => rmSync(join(path, name), { recursive: true }))],
] as const) {
  test(`a log whose folder was ${what} acknowledges nothing more, from the next message on`, async (context) => {
    // Nothing but the append itself finds out.
    const { log, path } = await opened(context, systemScheduler)
    const before = log.stats().syncCount
    aheadUs += 100_000
    remove(path)
    const refused = { code: 'EDGE_APPEND_FAILED', message: /journal\/\d was deleted or moved away/ }
    await assert.rejects(append(log, onlyPartition(log), batchesOf(10, 11)), refused)
    assert.equal(log.isWritable, false)
    assert.equal(log.stats().syncCount, before)
    await log.close()
  })

  test(`a log whose folder was ${what} says so without being asked, refuses every change, and makes no other folder`, async (context) => {
    const { log, path } = await opened(context)
    remove(path)
    await eventually(() => isGoneTold(log))
    assert.equal(log.isWritable, false)
    const text = new RegExp(`data folder ${path} was deleted or moved away`)
    assert.match(log.findings().at(-1)?.text ?? '', text)
    assert.throws(
      () => onlyPartition(log).append({ count: 1, baseOriginUs: 1n, recordsView: new Uint8Array(1) }, { settled() {} }),
      { code: 'EDGE_APPEND_FAILED', message: text },
    )
    await assert.rejects(log.catalog.createStream('other'), { code: 'EDGE_IO' })
    await assert.rejects(log.metadata.setSetting('name', 'value'), {
      code: 'EDGE_IO',
      message: /metadata\.sqlite was deleted/,
    })
    assert.equal(log.stats().diskUsedBytes > 0, true)
    await log.close()
    assert.equal(existsSync(join(path, 'streams')), false)
  })
}

test('a folder that is moved back is gone on with, and nothing that was acknowledged is missing', async (context) => {
  const { log, path } = await opened(context)
  aheadUs += 100_000
  renameSync(path, `${path}.moved`)
  await assert.rejects(append(log, onlyPartition(log), batchesOf(10, 11)), { code: 'EDGE_APPEND_FAILED' })
  await eventually(() => eventsOf(log).includes('log.folder.gone'))
  renameSync(`${path}.moved`, path)
  await eventually(() => log.isWritable && eventsOf(log).includes('log.folder.back'))
  await append(log, onlyPartition(log), batchesOf(11, 20))
  await log.close()
  await using again = await open(path)
  assert.deepEqual(await readAll(onlyPartition(again)), range(0, 20))
})

test('the oldest segment deleted under a running log is told before anybody reads it', async (context) => {
  const { log, path } = await opened(context)
  const partition = onlyPartition(log)
  for (let from = 10; from < 2500; from += 100) await append(log, partition, batchesOf(from, from + 100, 250))
  await eventually(() => globSync('streams/**/*.seg', { cwd: path }).length > 2)
  const [oldest = '', next = ''] = globSync('streams/**/*.seg', { cwd: path }).sort()
  rmSync(join(path, oldest))
  await eventually(() => eventsOf(log).includes('log.hole.found'))
  const end = Number(/(\d+)\.\d+\.seg$/.exec(next)?.[1])
  const told = log.findings().filter(({ event }) => event === 'log.hole.found')
  assert.equal(told.length, 1)
  assert.match(told[0]?.text ?? '', new RegExp(`^offsets 0 to ${end - 1} of .* ${oldest} was deleted while`))
  await append(log, partition, batchesOf(3000, 3001))
})
