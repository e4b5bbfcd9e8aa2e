/** One partition's offsets, receipts and tags, with a journal that only keeps what it is given. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProducerTag } from '../../../src/log/api.ts'
import { BATCH_FLAG } from '../../../src/log/core/batch-header.ts'
import type { PendingBatch } from '../../../src/log/core/pending-batch.ts'
import { LogPartition, type PartitionServices } from '../../../src/log/partition.ts'
import { recordsOf } from '../../support/records.ts'
import { topicOptions } from '../../support/topic-options.ts'

const TAG: ProducerTag = { device: 1, epoch: 1, lane: 0, firstSequence: 5, sequenceCount: 1 }

function setUp(durability: 'durable' | 'buffered') {
  const given: PendingBatch[] = []
  const told: string[] = []
  const unused = (): never => assert.fail('not part of these tests')
  const services: PartitionServices = {
    submit: (batch) => void given.push(batch),
    isLarge: () => false,
    checkAppend() {},
    dropsNewest: () => false,
    read: unused,
    offsetAt: unused,
    closedInJournal: unused,
    purge: unused,
    deleteSegments: unused,
    tagSettled: ({ firstSequence }) => void told.push(`promised ${firstSequence}`),
    tagSynced: ({ firstSequence }) => void told.push(`synced ${firstSequence}`),
    damaged: unused,
    grown() {},
    moved() {},
    wallUs: () => 1n,
    isClockTrusted: true,
  }
  const spec = {
    key: 1,
    streamId: 0,
    topicId: 0,
    partitionId: 0,
    createdAtUs: 0n,
    idSeed: 1n,
    directory: '1',
    floorOffset: 0n,
    options: topicOptions(durability),
  }
  const partition = new LogPartition(spec, services)
  const append = (count: number, tag?: ProducerTag): PendingBatch => {
    const recordsView = recordsOf(Array.from({ length: count }, (_, index) => index))
    const { baseOffset } = partition.append(
      { count, baseOriginUs: 1n, recordsView },
      { settled: (error) => void told.push(`${baseOffset} ${error?.code ?? 'kept'}`) },
      tag,
    )
    const batch = given.at(-1)
    assert.ok(batch)
    return batch
  }
  return { partition, append, told }
}

test('offsets that could not be stored are given again', () => {
  const { partition, append } = setUp('durable')
  partition.takeBack(append(3).fields.baseOffset)
  assert.equal(append(1).fields.baseOffset, 0n)
})

test('below the end of a purge under way no offset is given again, and the next batch says that some are missing', () => {
  const { partition, append } = setUp('durable')
  const lost = append(3)
  assert.equal(partition.beginPurge(), 3n)
  partition.takeBack(lost.fields.baseOffset)
  const next = append(2)
  assert.equal(next.fields.baseOffset, 3n)
  assert.notEqual(next.fields.flags & BATCH_FLAG.hasGapBefore, 0)
  partition.dropBelow(3n)
  assert.deepEqual([partition.logStartOffset, partition.nextOffset], [3n, 5n])
})

test('behind a jump the next batch says that offsets are missing, also when the first one is taken back', () => {
  const { partition, append } = setUp('buffered')
  partition.recovered(10n)
  partition.watermark.jumpTo(100n)
  const isBehindGap = ({ fields }: PendingBatch): boolean => (fields.flags & BATCH_FLAG.hasGapBefore) !== 0
  const first = append(3)
  assert.equal(isBehindGap(first), true)
  const second = append(3)
  partition.takeBack(first.fields.baseOffset)
  const third = append(1)
  assert.deepEqual([third.fields.baseOffset, isBehindGap(third)], [100n, true])
  assert.equal(second.fields.baseOffset, 103n)
  const fourth = append(2)
  assert.equal(isBehindGap(fourth), false)
  partition.takeBack(fourth.fields.baseOffset)
  assert.equal(isBehindGap(append(1)), false)
  // 0 to 9 were there.
  partition.written(third, 0, 4096)
  assert.equal(partition.messageCount, 11)
  assert.deepEqual(partition.holes, [{ from: 10n, end: 100n, reason: 'jump' }])
})

test('a number counts with the promise of its reading, and is synced with it', () => {
  const { partition, append, told } = setUp('buffered')
  const batch = append(1, TAG)
  assert.equal(partition.written(batch, 0, 4096), true)
  assert.deepEqual(told, ['promised 5'])
  partition.synced(batch)
  assert.deepEqual(told, ['promised 5', 'synced 5'])
})

test('receipts come in the order of the appends', () => {
  const { append, told } = setUp('durable')
  const [first, second] = [append(1), append(1)]
  second.settle(null)
  assert.deepEqual(told, [])
  first.settle(null)
  assert.deepEqual(told, ['0 kept', '1 kept'])
})
