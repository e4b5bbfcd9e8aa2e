/** Segments that are smaller than what waits in the journal: they end there, and go, before a file was written for them. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import type { EdgeError } from '../../../src/errors.ts'
import type { Log, Partition, TopicOptions } from '../../../src/log/api.ts'
import { RECOVERED_OPTIONS } from '../../../src/log/catalog/scan.ts'
import { LOG_SETTINGS, openLog, RETENTION_SETTINGS } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { eventually } from '../../support/eventually.ts'
import { SeededRandom } from '../../support/seeded-random.ts'

const KIB = 1024
const SEGMENT_SIZE = 10 * KIB
/** Ten of them and their headers make a segment. */
const RECORD_BYTES = KIB
const MESSAGES_PER_SEGMENT = 10
const ONCE_A_YEAR = '0 0 1 1 *'

let folder: string
let log: Log
let random: SeededRandom

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'edge-small-segments-'))
  random = new SeededRandom(1)
  await open()
})

afterEach(async () => {
  await log.close()
  rmSync(folder, { recursive: true, force: true })
})

async function open(schedule = '* * * * * *'): Promise<void> {
  log = await openLog({
    path: folder,
    clock: systemClock,
    logger: silentLogger,
    settings: {
      ...defaultsOf(LOG_SETTINGS),
      journal_file_size: 256 * KIB,
      segment_size: SEGMENT_SIZE,
      flash_budget_per_day: 0,
    },
    retention: { ...defaultsOf(RETENTION_SETTINGS), schedule, free_space_floor: 0 },
  })
}

async function reopen(partition: Partition): Promise<Partition> {
  await log.close()
  await open()
  return log.partition(partition.key) ?? assert.fail('the partition is there')
}

async function createTopic(options: Partial<TopicOptions> = {}): Promise<Partition> {
  const stream = await log.catalog.createStream('s')
  const spec = { name: 't', partitionCount: 1, options: { ...RECOVERED_OPTIONS, ...options } }
  const [partition] = (await log.catalog.createTopic(stream, spec)).partitions
  return partition ?? assert.fail('it has one partition')
}

/** Appends messages one by one; compression must not spare their bytes. */
async function append(partition: Partition, count: number): Promise<void> {
  for (let number = 0; number < count; number++) {
    const payload = Uint8Array.from({ length: RECORD_BYTES }, () => random.below(256))
    const recordsView = Buffer.concat([Uint8Array.of(0x80, 0x20, 0), payload])
    await new Promise<void>((resolve, reject) => {
      const settled = (error: EdgeError | null) => (error === null ? resolve() : reject(error))
      partition.append({ count: 1, baseOriginUs: 1n, recordsView }, { settled })
    })
  }
}

/** Offsets of all that a reader from the beginning gets. */
async function offsetsOf(partition: Partition): Promise<readonly number[]> {
  const { batches } = await partition.read({ fromOffset: 0n, maxCount: 10_000, maxBytes: 64 * KIB * KIB })
  return batches.flatMap(({ baseOffset, count }) => Array.from({ length: count }, (_, at) => Number(baseOffset) + at))
}

const range = (from: number, end: number): number[] => Array.from({ length: end - from }, (_, at) => from + at)

test('closed segments are dropped from the journal one by one, never the one that grows, and stay dropped', async () => {
  let partition = await createTopic()
  await append(partition, 25)
  assert.deepEqual([partition.segmentCount, partition.closedInJournalCount], [0, 2], 'no file was written')
  assert.equal(await partition.deleteSegments(1, null), 1)
  assert.deepEqual(await offsetsOf(partition), range(MESSAGES_PER_SEGMENT, 25))
  partition = await reopen(partition)
  assert.deepEqual(await offsetsOf(partition), range(MESSAGES_PER_SEGMENT, 25))
  assert.equal(await partition.deleteSegments(100, null), 1)
  assert.equal(await partition.deleteSegments(1, null), 0)
  assert.deepEqual(await offsetsOf(partition), range(20, 25))
  await append(partition, 1)
  assert.deepEqual(await offsetsOf(await reopen(partition)), range(20, 26), 'offsets go on')
})

test('a segment in the journal is kept until its last message was read', async () => {
  const partition = await createTopic()
  await append(partition, 25)
  assert.equal(await partition.deleteSegments(100, 8n), 0)
  assert.equal(await partition.deleteSegments(100, 9n), 1)
  assert.equal(await partition.deleteSegments(100, 18n), 0)
  assert.deepEqual(await offsetsOf(partition), range(10, 25))
})

test('messages in the journal expire with their segment, those in the one that grows do not', async () => {
  const partition = await createTopic({ messageExpiryUs: 1000n })
  log.metadata.setOffset(partition.key, 'consumer', 1, 12n)
  await append(partition, 25)
  await eventually(() => partition.logStartOffset === 10n, 'the first segment is gone')
  assert.deepEqual(await offsetsOf(partition), range(10, 25), 'the second one has a reader')
  log.metadata.setOffset(partition.key, 'consumer', 1, 24n)
  await eventually(() => partition.logStartOffset === 20n, 'the second segment is gone')
  assert.deepEqual(await offsetsOf(partition), range(20, 25))
  assert.equal(log.drops().byReason.get('expired')?.messageCount, 20)
})

test('a topic stays about its size though nothing has left the journal, without waiting for the schedule', async () => {
  await log.close()
  await open(ONCE_A_YEAR)
  const partition = await createTopic({ maxSizeBytes: BigInt(30 * KIB) })
  await append(partition, 60)
  await eventually(() => partition.sizeBytes <= 30 * KIB, 'it is small enough')
  assert.deepEqual(await offsetsOf(partition), range(Number(partition.logStartOffset), 60))
  assert.ok(partition.messageCount >= 15)
})

test('files are closed at that size too, and one that grows goes with what follows it in the journal', async () => {
  let partition = await createTopic()
  await append(partition, 300)
  await eventually(() => partition.segmentCount > 15, 'a journal file was gathered')
  const all = range(0, 300)
  assert.deepEqual(await offsetsOf(partition), all)
  for (let dropped = 0; dropped < 300 - 2 * MESSAGES_PER_SEGMENT; dropped = Number(partition.logStartOffset)) {
    assert.equal(await partition.deleteSegments(1, null), 1)
    const { logStartOffset } = partition
    assert.ok(Number(logStartOffset) - dropped <= 2 * MESSAGES_PER_SEGMENT, `one segment went: ${logStartOffset}`)
    assert.deepEqual(await offsetsOf(partition), range(Number(logStartOffset), 300))
  }
  const left = await offsetsOf(partition)
  partition = await reopen(partition)
  assert.deepEqual(await offsetsOf(partition), left)
  const segmentFiles = readdirSync(folder, { recursive: true }).filter((name) => /\.seg$/.test(String(name)))
  assert.ok(segmentFiles.length <= 1, `files of what was dropped are gone: ${segmentFiles}`)
})
