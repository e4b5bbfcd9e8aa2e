/** Reads of what was repacked: in small steps through the segments, whole and unchanged. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, type Log, openLog, type Partition, type ReadResult } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { decodeRecords, encodeRecords } from '../../../src/sdk/wire/messages.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { eventually } from '../../support/eventually.ts'
import { topicOptions } from '../../support/topic-options.ts'

const KIB = 1024
const RECORDS = 4000
const RECORDS_PER_BATCH = 10
const RECORDS_PER_READ = 37

async function packedLog(path: string, changes: { decoded_blocks?: number } = {}): Promise<Log> {
  const settings = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * KIB, flash_budget_per_day: 0, ...changes }
  const log = await openLog({ path, clock: systemClock, logger: silentLogger, settings })
  const stream = await log.catalog.createStream('s')
  await log.catalog.createTopic(stream, { name: 't', partitionCount: 1, options: topicOptions('buffered') })
  const partition = partitionOf(log)
  for (let first = 0; first < RECORDS; first += RECORDS_PER_BATCH) {
    const batch = encodeRecords(Array.from({ length: RECORDS_PER_BATCH }, (_, i) => messageAt(first + i)))
    while (!log.hasRoom(batch.recordsView.length)) await new Promise<void>((resolve) => log.onceRoom(resolve))
    await new Promise<void>((resolve, reject) => {
      partition.append(batch, { settled: (error) => (error === null ? resolve() : reject(error)) })
    })
  }
  await eventually(() => partition.segmentCount > 0, 'a journal file is repacked', 5000)
  return log
}

function partitionOf(log: Log): Partition {
  const [partition] = log.catalog.topic(0, 't')?.partitions ?? []
  assert.ok(partition)
  return partition
}

const messageAt = (index: number) => ({ originUs: BigInt(index), payload: Buffer.from(`${index} `.padEnd(200, 'x')) })

function indexesOf({ batches }: ReadResult): number[] {
  return batches.flatMap((batch) =>
    decodeRecords(batch).map(({ payloadView }) => Number.parseInt(Buffer.from(payloadView).toString(), 10)),
  )
}

test('a reader in small steps gets every record once, and seldom waits', async (context) => {
  const path = mkdtempSync(join(tmpdir(), 'edge-cold-'))
  context.after(() => rmSync(path, { recursive: true, force: true }))
  await using log = await packedLog(join(path, 'data'))
  const partition = partitionOf(log)
  const found: number[] = []
  let laterCount = 0
  for (let fromOffset = 0n; fromOffset < partition.visibleEnd; ) {
    const read = partition.read({ fromOffset, maxCount: RECORDS_PER_READ, maxBytes: 64 * KIB })
    if (read instanceof Promise) laterCount++
    const result = await read
    found.push(...indexesOf(result))
    fromOffset = result.nextOffset
  }
  assert.deepEqual(
    found,
    Array.from({ length: RECORDS }, (_, index) => index),
  )
  // About 14 blocks of 64 KiB, and each waits once at most.
  const readCount = RECORDS / RECORDS_PER_READ
  assert.ok(laterCount > 0 && laterCount < readCount / 4, `${laterCount} of ${readCount} reads had to wait`)
})

test('what a read promised stays as it is, whatever is read after it', async (context) => {
  const path = mkdtempSync(join(tmpdir(), 'edge-cold-'))
  context.after(() => rmSync(path, { recursive: true, force: true }))
  await using log = await packedLog(join(path, 'data'))
  const partition = partitionOf(log)
  const promised = partition.read({ fromOffset: 0n, maxCount: 500, maxBytes: 256 * KIB })
  assert.ok(promised instanceof Promise)
  const first = await promised
  for (let fromOffset = 0n; fromOffset < partition.visibleEnd; ) {
    fromOffset = (await partition.read({ fromOffset, maxCount: 1000, maxBytes: 256 * KIB })).nextOffset
  }
  assert.deepEqual(
    indexesOf(first),
    Array.from({ length: 500 }, (_, index) => index),
  )
})

test('one read goes on from segments into the journal and through a large batch, and its bytes stay', async (context) => {
  const path = mkdtempSync(join(tmpdir(), 'edge-cold-'))
  context.after(() => rmSync(path, { recursive: true, force: true }))
  await using log = await packedLog(join(path, 'data'))
  const partition = partitionOf(log)
  const large = { originUs: 0n, payload: Buffer.from(`${RECORDS} `.padEnd(300 * KIB, 'y')) }
  for (const message of [large, messageAt(RECORDS + 1), messageAt(RECORDS + 2)]) {
    await new Promise<void>((resolve, reject) => {
      partition.append(encodeRecords([message]), { settled: (error) => (error === null ? resolve() : reject(error)) })
    })
  }
  const wanted = Array.from({ length: RECORDS + 3 }, (_, index) => index)
  const whole = { fromOffset: 0n, maxCount: 100_000, maxBytes: 8 * KIB * KIB }
  const result = await partition.read(whole)
  await partition.read({ ...whole, fromOffset: BigInt(RECORDS) })
  partition.read({ fromOffset: BigInt(RECORDS - 200), maxCount: 100, maxBytes: 64 * KIB })
  assert.deepEqual(indexesOf(result), wanted)
  assert.equal(result.nextOffset, partition.visibleEnd)

  const bounded = await partition.read({ ...whole, maxBytes: 200 * KIB, fromOffset: BigInt(RECORDS - 10) })
  assert.deepEqual(
    indexesOf(bounded),
    wanted.slice(RECORDS - 10, RECORDS),
    'the large batch would pass the bytes asked for',
  )
})

test('readers that wait for the same blocks at the same time all get them, with the fewest blocks kept', async (context) => {
  const path = mkdtempSync(join(tmpdir(), 'edge-cold-'))
  context.after(() => rmSync(path, { recursive: true, force: true }))
  await using log = await packedLog(join(path, 'data'), { decoded_blocks: 4 })
  const partition = partitionOf(log)
  const readers = Array.from({ length: 8 }, async (_, reader) => {
    const found: number[] = []
    // Some side by side, some behind one another.
    for (let fromOffset = BigInt(Math.floor(reader / 2) * 700); fromOffset < partition.visibleEnd; ) {
      const reading = partition.read({ fromOffset, maxCount: 300 + reader * 10, maxBytes: 256 * KIB })
      const result = reading instanceof Promise ? await reading : reading
      found.push(...indexesOf(result))
      fromOffset = result.nextOffset
      // The others have their turn.
      await null
    }
    return found
  })
  for (const [reader, found] of (await Promise.all(readers)).entries()) {
    const first = Math.floor(reader / 2) * 700
    const wanted = Array.from({ length: RECORDS - first }, (_, index) => first + index)
    assert.deepEqual(found, wanted, `reader ${reader}`)
  }
})
