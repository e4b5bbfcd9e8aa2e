import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BATCH_FLAG, type BatchHeader } from '../../../src/log/core/batch-header.ts'
import { planRetention } from '../../../src/log/core/retention.ts'
import { journalViews } from '../../../src/log/segment-views.ts'

const header = (appendTimeUs: bigint): BatchHeader => ({
  bodySize: 0,
  bodyCrc: 0,
  count: 10,
  baseOffset: 0n,
  appendTimeUs,
  baseOriginUs: 0n,
  key: 1,
  kind: 0,
  index: 0,
  flags: BATCH_FLAG.isClockTrusted,
})

/** How many of two closed segments go by age, 100 µs after the time of the last batch of each; undefined cannot be read. */
function expiredOf(...times: (bigint | undefined)[]): number {
  const closed = times.map((_, at) => ({
    baseOffset: BigInt(at * 10),
    endOffset: BigInt(at * 10 + 10),
    sizeBytes: 100,
    fileBytes: 0,
  }))
  const headerAt = (offset: bigint): BatchHeader | undefined => {
    const timeUs = times[Number(offset / 10n)]
    return timeUs === undefined ? undefined : header(timeUs)
  }
  const inJournal = journalViews(closed, { holes: { countFrom: () => 0 }, headerAt })
  const { evictions } = planRetention({
    nowUs: 1000n,
    isClockTrusted: true,
    topics: [
      {
        overflow: 'drop-oldest',
        messageExpiryUs: 100n,
        maxSizeBytes: null,
        partitions: [
          { key: 1, sizeBytes: 200, sealed: [], inJournal, active: null, barrierOffset: null, journalHead: null },
        ],
      },
    ],
    disk: { usedBytes: 0, budgetBytes: 1e9, freeBytes: 1e9, freeFloorBytes: 0 },
  })
  return evictions.reduce((sum, { segments }) => sum + segments.length, 0)
}

test('what cannot be read of the time of a segment makes it expire with the one behind it, and not before', () => {
  assert.equal(expiredOf(undefined, 950n), 0)
  assert.equal(expiredOf(undefined, 900n), 2)
  assert.equal(expiredOf(800n, undefined), 1)
})
