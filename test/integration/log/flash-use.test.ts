/** What is written beside the messages is counted, paid from the flash budget, and waits while that is in debt. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, openLog } from '../../../src/log/index.ts'
import { openMetadata } from '../../../src/log/metadata/metadata-store.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { eventually } from '../../support/eventually.ts'
import { topicOptions } from '../../support/topic-options.ts'

const PARTITIONS = 50
const SECONDS = 600
/** A frame of its log. */
const FRAME_SIZE = 4096 + 24
const GIB = 1024 ** 3

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edge-flash-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** Handed to the system by this process, as the kernel counts it. */
const writtenBytes = (): number => Number(/^wchar: (\d+)/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

function openTimed(delayFactor: () => number, written: (sizeBytes: number, syncCount: number) => void) {
  const timers: { delayMs: number; task: () => void }[] = []
  const scheduler = {
    nextTurn: (task: () => void) => task(),
    after(delayMs: number, task: () => void) {
      timers.push({ delayMs, task })
      return () => {}
    },
  }
  const path = join(folder, 'metadata.sqlite')
  const store = openMetadata({ path, scheduler, report() {}, setAside() {}, flash: { delayFactor, written } })
  return { store, timers }
}

test('what SQLite writes is counted: its log, and the pages copied from there', () => {
  let [sizeBytes, syncCount] = [0, 0]
  const { store, timers } = openTimed(
    () => 1,
    (size, syncs) => {
      sizeBytes += size
      syncCount += syncs
    },
  )
  const before = writtenBytes()
  for (let second = 0; second < SECONDS; second++) {
    for (let key = 1; key <= PARTITIONS; key++) {
      store.setCursor('central', key * 100, { confirmedOffset: BigInt(second), upstreamOffset: null })
    }
    for (const { task } of timers.splice(0)) task()
  }
  const truth = writtenBytes() - before
  store.close()
  assert.ok(truth > SECONDS * FRAME_SIZE, `${truth} bytes were written`)
  assert.ok(Math.abs(sizeBytes - truth) < truth * 0.05, `${sizeBytes} bytes were counted of ${truth}`)
  assert.ok(syncCount > 0)
})

test('offsets and cursors are written less often while the budget is in debt', () => {
  let factor = 10
  const { store, timers } = openTimed(
    () => factor,
    () => {},
  )
  store.setOffset(1, 'consumer', 1, 3n)
  assert.deepEqual(
    timers.map(({ delayMs }) => delayMs),
    [10_000],
  )
  factor = 1
  timers.shift()?.task()
  store.setOffset(1, 'consumer', 1, 4n)
  assert.deepEqual(
    timers.map(({ delayMs }) => delayMs),
    [1000],
  )
  store.close()
})

test('the files of a journal, reserves and names come out of the budget', async () => {
  const settings = { ...defaultsOf(LOG_SETTINGS), flash_budget_per_day: 24 * GIB }
  const before = writtenBytes()
  await using log = await openLog({ path: join(folder, 'store'), clock: systemClock, logger: silentLogger, settings })
  const stream = await log.catalog.createStream('s')
  await log.catalog.createTopic(stream, { name: 't', partitionCount: 1000, options: topicOptions('durable') })
  const isCounted = (): boolean => {
    const truth = writtenBytes() - before
    return Math.abs(log.stats().writtenBytes - truth) < truth * 0.05
  }
  // The last files are made in the background, and counted when they are.
  await eventually(() => log.stats().journalFileCount === settings.journal_files && isCounted())
  const { writtenBytes: counted, flashBudgetLeftBytes } = log.stats()
  assert.ok(GIB - flashBudgetLeftBytes > counted * 0.9, `${flashBudgetLeftBytes} of an hour's share are left`)
})
