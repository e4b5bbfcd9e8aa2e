import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ReconcileInput, reconcile } from '../../../../src/sync/core/reconcile.ts'
import type { Cursor } from '../../../../src/sync/ports.ts'

const cursor = (confirmedOffset: bigint, upstreamOffset: bigint | null): Cursor => ({ confirmedOffset, upstreamOffset })

function input(change: Partial<ReconcileInput>): ReconcileInput {
  const verdict = { kind: 'absent', upstreamStart: 0n, upstreamEnd: 0n, isLimited: false } as const
  return {
    verdict,
    partsAt: null,
    cursor: undefined,
    isCursorFresh: true,
    isTopicNew: false,
    alignment: { end: 11n, missingCount: 0n },
    back: (end, count) => end - count,
    inDoubt: null,
    incarnation: 0,
    logStart: 0n,
    isGivenUp: () => false,
    ...change,
  }
}

function found(localOffset: bigint, upstreamOffset: bigint, incarnation = 0): ReconcileInput['verdict'] {
  return { kind: 'found', localOffset, upstreamOffset, incarnation, upstreamEnd: upstreamOffset + 1n, content: null }
}

test('a partition that is new there begins at the start of the log', () => {
  const resume = reconcile(input({ logStart: 5n }))
  assert.deepEqual([resume.nextOffset, resume.cursor, resume.finding.kind], [5n, null, 'agreed'])
})

test('a tail beyond the cursor tells what an earlier process had sent', () => {
  const resume = reconcile(input({ cursor: cursor(10n, 10n), verdict: found(14n, 14n) }))
  assert.equal(resume.nextOffset, 15n)
  assert.deepEqual(resume.finding, { kind: 'recovered', from: 11n, end: 15n })
})

test('a tail behind the cursor was forgotten, and is sent again', () => {
  const resume = reconcile(input({ cursor: cursor(10n, 10n), verdict: found(7n, 7n) }))
  assert.equal(resume.nextOffset, 8n)
  assert.deepEqual(resume.finding, { kind: 'forgotten', from: 8n, end: 11n })
})

test('an upstream that lost everything gets what the log still holds', () => {
  const resume = reconcile(input({ cursor: cursor(10n, 10n), logStart: 3n }))
  assert.equal(resume.nextOffset, 3n)
  assert.deepEqual(resume.finding, { kind: 'forgotten', from: 3n, end: 11n })
  assert.deepEqual(resume.cursor, cursor(2n, null))
})

test('what the upstream lost and the log holds no more is told, and what was never sent stays a gap', () => {
  const resume = reconcile(input({ cursor: cursor(10n, 10n), logStart: 14n }))
  assert.deepEqual([resume.nextOffset, resume.cursor], [11n, cursor(10n, null)])
  assert.deepEqual(resume.finding, { kind: 'forgotten', from: 0n, end: 11n })
  const later = reconcile(input({ cursor: resume.cursor ?? undefined, logStart: 14n }))
  assert.deepEqual([later.nextOffset, later.finding.kind], [11n, 'agreed'], 'it is told once')
  const nothingBetween = reconcile(input({ cursor: cursor(10n, 10n), logStart: 11n }))
  assert.deepEqual(nothingBetween.finding, { kind: 'forgotten', from: 0n, end: 11n })

  const verdict = { kind: 'absent', upstreamStart: 8n, upstreamEnd: 9n, isLimited: false } as const
  const lastThree = reconcile(input({ cursor: cursor(10n, 10n), logStart: 14n, verdict }))
  assert.deepEqual(lastThree.finding, { kind: 'forgotten', from: 8n, end: 11n })
})

test('offsets that went back in a topic that was made anew: it gets all that the log holds', () => {
  for (const [verdict, end] of [
    [found(10n, 3n), 11n],
    [found(14n, 9n), 15n],
    [found(14n, 10n), 15n],
  ] as const) {
    const upstreamOffset = verdict.kind === 'found' ? verdict.upstreamOffset : null
    const resume = reconcile(input({ cursor: cursor(10n, 10n), logStart: 2n, isTopicNew: true, verdict }))
    assert.deepEqual([resume.nextOffset, resume.incarnation], [2n, 1])
    assert.deepEqual(resume.cursor, { confirmedOffset: 1n, upstreamOffset, incarnation: 1 })
    assert.deepEqual(resume.finding, { kind: 'forgotten', from: 2n, end })
  }
  const stored = reconcile(input({ cursor: cursor(10n, 10n), isCursorFresh: false, verdict: found(14n, 9n) }))
  assert.deepEqual(stored.finding, { kind: 'recovered', from: 11n, end: 15n }, 'a stored cursor may be old')
})

test('offsets that went back in the same topic tell how much is missing: that and what follows it goes there again', () => {
  const resume = reconcile(input({ cursor: cursor(14n, 14n), verdict: found(14n, 10n) }))
  assert.deepEqual([resume.nextOffset, resume.incarnation], [7n, 1])
  assert.deepEqual(resume.cursor, { confirmedOffset: 6n, upstreamOffset: 10n, incarnation: 1 })
  assert.deepEqual(resume.finding, { kind: 'forgotten', from: 7n, end: 15n })
  const gone = reconcile(input({ cursor: cursor(14n, 14n), logStart: 20n, verdict: found(14n, 10n) }))
  assert.deepEqual([gone.nextOffset, gone.finding], [15n, { kind: 'forgotten', from: 7n, end: 15n }])
})

test('a send in doubt that lies less than its count behind what was confirmed went to another topic', () => {
  const inDoubt = { end: 26n, count: 20 }
  const other = reconcile(input({ cursor: cursor(5n, 5n), inDoubt, isTopicNew: true, verdict: found(25n, 24n) }))
  assert.deepEqual([other.nextOffset, other.incarnation, other.finding.kind], [0n, 1, 'forgotten'])
  const same = reconcile(input({ cursor: cursor(5n, 5n), inDoubt, verdict: found(25n, 25n) }))
  assert.deepEqual([same.nextOffset, same.incarnation, same.finding.kind], [26n, 0, 'recovered'])
  const copy = reconcile(input({ cursor: cursor(5n, 5n), inDoubt, verdict: found(6n, 6n) }))
  assert.deepEqual([copy.nextOffset, copy.incarnation, copy.finding.kind], [7n, 0, 'recovered'])
})

test('what the retention of both sides took is not news', () => {
  const verdict = { kind: 'absent', upstreamStart: 40n, upstreamEnd: 40n, isLimited: false } as const
  const resume = reconcile(input({ cursor: cursor(10n, 39n), logStart: 14n, verdict }))
  assert.deepEqual([resume.nextOffset, resume.cursor, resume.finding.kind], [11n, null, 'agreed'])
})

test('retention of the upstream is not taken for forgetting', () => {
  const verdict = { kind: 'absent', upstreamStart: 40n, upstreamEnd: 40n, isLimited: false } as const
  const resume = reconcile(input({ cursor: cursor(10n, 39n), verdict }))
  assert.deepEqual([resume.nextOffset, resume.finding.kind], [11n, 'expired'])
})

test('records given up in this run are not offered again', () => {
  const isGivenUp = (from: bigint, end: bigint): boolean => from === 8n && end === 11n
  const resume = reconcile(input({ cursor: cursor(10n, 7n), verdict: found(7n, 7n), isGivenUp }))
  assert.deepEqual([resume.nextOffset, resume.finding.kind], [11n, 'agreed'])
})

test('an upstream ahead of the log gets new ids from the end of the log on', () => {
  const resume = reconcile(input({ cursor: cursor(80n, 80n), verdict: found(120n, 120n), partsAt: 90n }))
  assert.deepEqual([resume.nextOffset, resume.incarnation], [90n, 1])
  assert.deepEqual(resume.finding, { kind: 'ahead', from: 90n, end: 121n })
  assert.equal(resume.cursor?.incarnation, 1)

  const next = reconcile(input({ cursor: resume.cursor ?? undefined, incarnation: 1, verdict: found(120n, 120n) }))
  assert.deepEqual([next.nextOffset, next.incarnation, next.finding.kind], [90n, 1, 'agreed'])
})

test('a lost cursor takes the incarnation from the tail', () => {
  const resume = reconcile(input({ verdict: found(95n, 130n, 1) }))
  assert.deepEqual([resume.nextOffset, resume.incarnation, resume.cursor?.incarnation], [96n, 1, 1])
})

test('a search that ended at its limit is named', () => {
  const verdict = { kind: 'absent', upstreamStart: 0n, upstreamEnd: 9n, isLimited: true } as const
  assert.equal(reconcile(input({ verdict })).finding.kind, 'limited')
})
