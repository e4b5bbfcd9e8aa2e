import assert from 'node:assert/strict'
import { test } from 'node:test'
import { messageId } from '../../../../src/sync/core/message-id.ts'
import { type TailPage, TailScan, type TailVerdict } from '../../../../src/sync/core/tail.ts'

const OURS = 11n
const NEWER = 12n
const foreign = (offset: number): bigint => messageId(99n, BigInt(offset))

/** An upstream partition: ids by offset, the oldest kept one, and how many messages an answer holds at most. */
function scan(
  ids: readonly bigint[],
  start = 0,
  answerCount = 1000,
  maxCount = 1_000_000,
): { verdict: TailVerdict; pages: number } {
  const tail = new TailScan({ prefixes: [OURS, NEWER], pageCount: 100, maxCount })
  for (let pages = 1; pages < 500; pages++) {
    const { request } = tail
    const from = request.kind === 'last' ? ids.length - request.count : Number(request.offset)
    const first = Math.max(start, from)
    const count = Math.min(request.count, answerCount)
    const messages = ids.slice(first, first + count).map((id, index) => ({ offset: BigInt(first + index), id }))
    const page: TailPage = { currentOffset: BigInt(Math.max(0, ids.length - 1)), messages }
    const verdict = tail.accept(page)
    if (verdict) return { verdict, pages }
  }
  throw new Error('the search does not end')
}

test('where we are the only writer one message tells', () => {
  const { verdict, pages } = scan([messageId(OURS, 0n), messageId(OURS, 1n)])
  assert.deepEqual(verdict, { kind: 'found', incarnation: 0, localOffset: 1n, upstreamOffset: 1n, upstreamEnd: 2n })
  assert.equal(pages, 1)
})

test('our newest record is found below thousands of others', () => {
  const ids = [messageId(OURS, 7n), messageId(OURS, 8n), ...Array.from({ length: 2500 }, (_, at) => foreign(at))]
  const { verdict } = scan(ids)
  assert.ok(verdict.kind === 'found' && verdict.localOffset === 8n && verdict.upstreamOffset === 1n)
})

test('answers that hold a part of the page are completed before older ones are read', () => {
  const ids = [
    messageId(OURS, 1n),
    ...Array.from({ length: 50 }, (_, at) => foreign(at)),
    messageId(OURS, 2n),
    ...Array.from({ length: 60 }, (_, at) => foreign(at)),
  ]
  for (const answerCount of [1, 2, 3, 7, 50]) {
    const { verdict } = scan(ids, 0, answerCount)
    assert.ok(verdict.kind === 'found' && verdict.localOffset === 2n, `answers of ${answerCount}`)
  }
})

test('an empty partition, and one of others alone, hold nothing of ours', () => {
  assert.deepEqual(scan([]).verdict, { kind: 'absent', upstreamStart: 0n, upstreamEnd: 0n, isLimited: false })
  const { verdict } = scan(Array.from({ length: 300 }, (_, at) => foreign(at)))
  assert.deepEqual(verdict, { kind: 'absent', upstreamStart: 0n, upstreamEnd: 300n, isLimited: false })
})

test('what retention took is told by the oldest message that is left', () => {
  const ids = Array.from({ length: 300 }, (_, at) => (at < 200 ? messageId(OURS, BigInt(at)) : foreign(at)))
  const { verdict } = scan(ids, 230)
  assert.deepEqual(verdict, { kind: 'absent', upstreamStart: 230n, upstreamEnd: 300n, isLimited: false })
  assert.deepEqual(scan(ids, 300).verdict, { kind: 'absent', upstreamStart: 300n, upstreamEnd: 300n, isLimited: false })
})

test('the newest incarnation counts', () => {
  const { verdict } = scan([messageId(OURS, 500n), messageId(NEWER, 20n), foreign(1)])
  assert.ok(verdict.kind === 'found' && verdict.incarnation === 1 && verdict.localOffset === 20n)
})

test('a search without a cursor ends at its limit', () => {
  const { verdict } = scan(
    Array.from({ length: 5000 }, (_, at) => foreign(at)),
    0,
    1000,
    700,
  )
  assert.ok(verdict.kind === 'absent' && verdict.isLimited)
})
