import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BATCH_FLAG, type BatchHeader, MAX_GROUP_BATCHES } from '../../../../src/log/core/batch-header.ts'
import {
  BlockPlan,
  isSegmentFull,
  isWorthwhile,
  MAX_SEGMENT_BLOCKS,
  type RepackBatch,
} from '../../../../src/log/core/repack-plan.ts'
import { BLOCK_FLAG, BLOCK_RAW_SIZE } from '../../../../src/log/core/segment-format.ts'

const KIB = 1024
const SEGMENT_SIZE = 1024 * KIB

function batchAt(baseOffset: bigint, changes: Partial<BatchHeader & { size: number; boot: number }> = {}): RepackBatch {
  const { size = KIB, boot = 1, ...fields } = changes
  const header = {
    bodyCrc: 0,
    bodySize: size - 48,
    count: 10,
    baseOffset,
    appendTimeUs: baseOffset * 1000n,
    baseOriginUs: 0n,
    key: 1,
    kind: 0,
    flags: BATCH_FLAG.isClockTrusted,
    index: 0,
    ...fields,
  }
  return { header, size, boot }
}

function planOf(...batches: RepackBatch[]): BlockPlan {
  const plan = new BlockPlan(SEGMENT_SIZE)
  for (const batch of batches) {
    assert.ok(plan.takes(batch))
    plan.add(batch)
  }
  return plan
}

test('a block tells first and last of its batches, and then begins anew', () => {
  const plan = planOf(batchAt(0n), batchAt(10n), batchAt(20n, { count: 5, size: 500 }))
  assert.deepEqual(plan.take(), {
    rawSize: 2 * KIB + 500,
    batchCount: 3,
    recordCount: 25,
    flags: 0,
    baseOffset: 0n,
    endOffset: 25n,
    firstTimeUs: 0n,
    lastTimeUs: 20_000n,
    boot: 1,
  })
  assert.equal(plan.take(), undefined)
})

test('a block ends with the batch that makes it as large as a segment', () => {
  const plan = new BlockPlan(4 * KIB)
  plan.add(batchAt(0n, { size: 4 * KIB - 8 }))
  const large = batchAt(10n, { size: 6 * KIB })
  assert.ok(plan.takes(large))
  plan.add(large)
  assert.ok(!plan.takes(batchAt(20n)))
})

test('a block ends before a gap, marked or not, before another machine start, and where it would be too large', () => {
  const plan = planOf(batchAt(0n))
  assert.ok(plan.takes(batchAt(10n)))
  assert.ok(!plan.takes(batchAt(11n)))
  assert.ok(!plan.takes(batchAt(10n, { flags: BATCH_FLAG.hasGapBefore })))
  assert.ok(!plan.takes(batchAt(10n, { boot: 2 })))
  assert.ok(plan.takes(batchAt(10n, { size: BLOCK_RAW_SIZE - KIB })))
  assert.ok(!plan.takes(batchAt(10n, { size: BLOCK_RAW_SIZE - KIB + 8 })))
})

test('a batch that is larger than a block stands alone in one', () => {
  const plan = planOf(batchAt(0n, { size: 10 * BLOCK_RAW_SIZE }))
  assert.ok(!plan.takes(batchAt(10n, { size: 64 })))
  assert.equal(plan.take()?.rawSize, 10 * BLOCK_RAW_SIZE)
})

test('a block takes no more batches than its header can number', () => {
  const plan = new BlockPlan(SEGMENT_SIZE)
  for (let at = 0; at < MAX_GROUP_BATCHES; at++) plan.add(batchAt(BigInt(at), { count: 1, size: 0 }))
  assert.ok(!plan.takes(batchAt(BigInt(MAX_GROUP_BATCHES), { count: 1, size: 0 })))
})

test('a block of which the last batch has an untrusted time says so', () => {
  assert.equal(planOf(batchAt(0n), batchAt(10n, { flags: 0 })).take()?.flags, BLOCK_FLAG.isClockUntrusted)
  assert.equal(planOf(batchAt(0n, { flags: 0 }), batchAt(10n)).take()?.flags, 0)
})

test('compression must save a tenth, and a segment is full by size, by its blocks or by age', () => {
  assert.ok(isWorthwhile(1000, 900))
  assert.ok(!isWorthwhile(1000, 901))
  const limits = { sizeBytes: 1000, maxAgeUs: 50n }
  const segment = { sizeBytes: 999, blockCount: MAX_SEGMENT_BLOCKS - 1, firstAppendUs: 100n }
  assert.ok(!isSegmentFull(segment, limits, 149n))
  assert.ok(isSegmentFull({ ...segment, sizeBytes: 1000 }, limits, 149n))
  assert.ok(isSegmentFull({ ...segment, blockCount: MAX_SEGMENT_BLOCKS }, limits, 149n))
  assert.ok(isSegmentFull(segment, limits, 150n))
})
