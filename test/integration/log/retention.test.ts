/** Retention with the real engine: journal, repacking, segments, descriptors and SQLite on real files. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import type { EdgeError } from '../../../src/errors.ts'
import type { Log, Partition, TopicOptions } from '../../../src/log/api.ts'
import { RECOVERED_OPTIONS } from '../../../src/log/catalog/scan.ts'
import { LOG_SETTINGS, openLog, RETENTION_SETTINGS } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf, type ValuesOf } from '../../../src/setting.ts'
import { eventually } from '../../support/eventually.ts'

const KIB = 1024
/** Random bytes: compression must not spare the segments that a test wants to fill. */
const RECORD_BYTES = 8 * KIB

let folder: string
let log: Log

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'edge-retention-'))
})

afterEach(async () => {
  await log.close()
  rmSync(folder, { recursive: true, force: true })
})

async function open(retention: Partial<ValuesOf<typeof RETENTION_SETTINGS>> = {}): Promise<void> {
  log = await openLog({
    path: folder,
    clock: systemClock,
    logger: silentLogger,
    settings: {
      ...defaultsOf(LOG_SETTINGS),
      journal_file_size: 256 * KIB,
      segment_size: 64 * KIB,
      flash_budget_per_day: 0,
    },
    retention: { ...defaultsOf(RETENTION_SETTINGS), free_space_floor: 0, ...retention },
  })
}

async function createTopic(options: Partial<TopicOptions>): Promise<Partition> {
  const stream = log.catalog.stream('s') ?? (await log.catalog.createStream('s'))
  const spec = { name: 't', partitionCount: 1, options: { ...RECOVERED_OPTIONS, ...options } }
  const [partition] = (await log.catalog.createTopic(stream, spec)).partitions
  assert.ok(partition)
  return partition
}

/** One record a batch. @returns when all are acked. */
async function append(partition: Partition, count: number, recordBytes = RECORD_BYTES): Promise<void> {
  for (let index = 0; index < count; index++) {
    const payload = randomBytes(recordBytes)
    const recordsView = Buffer.concat([varint(recordBytes * 4), varint(0), payload])
    if (!log.hasRoom(recordsView.length)) await new Promise<void>((resolve) => log.onceRoom(resolve))
    await new Promise<void>((resolve, reject) => {
      const settled = (error: EdgeError | null) => (error === null ? resolve() : reject(error))
      partition.append({ count: 1, baseOriginUs: 1n, recordsView }, { settled })
    })
  }
}

function varint(value: number): Uint8Array {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Uint8Array.from([...bytes, rest])
    bytes.push((rest % 128) + 128)
  }
}

test('a topic stays about its size while it is written, and its offsets go on after a restart', async () => {
  await open()
  let partition = await createTopic({ maxSizeBytes: BigInt(512 * KIB) })
  await append(partition, 400)
  await eventually(() => partition.logStartOffset > 200n, 'old segments are dropped')
  assert.equal(partition.nextOffset, 400n)
  const { logStartOffset } = partition
  await log.close()
  await open()
  partition = log.partition(partition.key) ?? assert.fail('the partition is there')
  assert.ok(partition.logStartOffset >= logStartOffset)
  assert.equal(partition.nextOffset, 400n)
  // The run at the start may be between the two.
  const kept = partition
  await eventually(() => {
    return BigInt(log.stats().droppedMessages) === kept.logStartOffset
  }, 'stored and dropped are all that was accepted')
})

test('what a consumer has not read stays, and goes when it has', async () => {
  await open()
  const partition = await createTopic({ maxSizeBytes: BigInt(128 * KIB) })
  log.metadata.setOffset(partition.key, 'consumer', 1, 0n)
  await append(partition, 200)
  await eventually(() => partition.segmentCount > 4, 'segments are written')
  assert.equal(partition.logStartOffset, 0n)
  log.metadata.setOffset(partition.key, 'consumer', 1, 199n)
  await append(partition, 40)
  await eventually(() => partition.logStartOffset > 0n, 'read segments are dropped')
})

test('large batches, which leave the journal nearly empty, stay within the disk budget as well', async () => {
  const budgetBytes = 4 * KIB * KIB
  await open({ disk_budget: budgetBytes })
  const partition = await createTopic({})
  log.metadata.setOffset(partition.key, 'consumer', 1, 0n)
  await append(partition, 60, 200 * KIB)
  await eventually(() => log.stats().diskUsedBytes <= budgetBytes + 400 * KIB, 'the oldest are dropped')
  const { logStartOffset } = partition
  assert.ok(logStartOffset > 20n && logStartOffset < 60n)
  assert.equal(BigInt(log.stats().droppedMessages), logStartOffset)
  assert.equal(
    log.findings().find(({ event }) => event === 'log.disk.over_budget'),
    undefined,
  )
})

test('the disk used counts SQLite and what was set aside, not only messages', async () => {
  await open()
  await createTopic({})
  const before = log.stats().diskUsedBytes
  writeFileSync(join(folder, 'quarantine', 'x'), new Uint8Array(KIB * KIB))
  await eventually(() => log.stats().diskUsedBytes >= before + KIB * KIB, 'it is measured again')
  const { size } = statSync(join(folder, 'metadata.sqlite-wal'))
  assert.ok(size > 0)
  const journalBytes = readdirSync(join(folder, 'journal')).length * 256 * KIB
  assert.ok(log.stats().diskUsedBytes >= journalBytes + KIB * KIB + size)
})
