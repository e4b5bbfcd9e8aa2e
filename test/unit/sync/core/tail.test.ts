import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LookSize } from '../../../../src/sync/core/look-size.ts'
import { messageId } from '../../../../src/sync/core/message-id.ts'
import type { RecordContent } from '../../../../src/sync/core/record-content.ts'
import { type TailPage, TailScan, type TailScanOptions, type TailVerdict } from '../../../../src/sync/core/tail.ts'

const OURS = 11n
const NEWER = 12n
const foreign = (offset: number): bigint => messageId(99n, BigInt(offset))

/** Made from where it lies. */
const contentAt = (offset: bigint): RecordContent => ({ payloadBytes: 1, payloadSum: Number(offset), originUs: null })

/** An upstream partition: ids by offset, the oldest kept one, and how many messages an answer holds at most. */
function scan(
  ids: readonly bigint[],
  start = 0,
  answerCount = 1000,
  options: Partial<TailScanOptions> = {},
): { verdict: TailVerdict; pages: number } {
  const tail = new TailScan({ prefixes: [OURS, NEWER], lookSize: new LookSize(100), maxCount: 1_000_000, ...options })
  for (let pages = 1; pages < 500; pages++) {
    const { request } = tail
    const from = request.kind === 'last' ? ids.length - request.count : Number(request.offset)
    const first = Math.max(start, from)
    const count = Math.min(request.count, answerCount)
    const messages = ids.slice(first, first + count).map((id, index) => ({ offset: BigInt(first + index), id }))
    const page: TailPage = { currentOffset: BigInt(Math.max(0, ids.length - 1)), messages, sizeBytes: 0, contentAt }
    const verdict = tail.accept(page)
    if (verdict) return { verdict, pages }
  }
  throw new Error('the search does not end')
}

test('where we are the only writer one message tells', () => {
  const { verdict, pages } = scan([messageId(OURS, 0n), messageId(OURS, 1n)])
  assert.deepEqual(verdict, {
    kind: 'found',
    incarnation: 0,
    localOffset: 1n,
    upstreamOffset: 1n,
    upstreamEnd: 2n,
    content: contentAt(1n),
  })
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
    { maxCount: 700 },
  )
  assert.ok(verdict.kind === 'absent' && verdict.isLimited)
})

const others = (count: number): bigint[] => Array.from({ length: count }, (_, at) => foreign(at))
const anchorAt = (upstreamOffset: bigint, localOffset: bigint, isNewest: boolean) => ({
  anchor: { incarnation: 0, localOffset, upstreamOffset, isNewest },
})

test('a record that lies where the cursor has it is found in a few looks, whatever others wrote since', () => {
  const ids = [...others(500), messageId(OURS, 7n), ...others(3000)]
  const { verdict, pages } = scan(ids, 0, 1000, anchorAt(500n, 7n, true))
  const found = {
    kind: 'found',
    incarnation: 0,
    localOffset: 7n,
    upstreamOffset: 500n,
    upstreamEnd: 3501n,
    content: null,
  }
  assert.deepEqual(verdict, found)
  assert.equal(pages, 3)
})

test('what may have been sent since is searched for down to there, and no further', () => {
  const sent = [...others(5000), messageId(OURS, 7n), ...others(150), messageId(OURS, 8n), ...others(150)]
  const { verdict, pages } = scan(sent, 0, 1000, anchorAt(5000n, 7n, false))
  assert.ok(verdict.kind === 'found' && verdict.localOffset === 8n)
  assert.ok(pages < 7)
  const unsent = [...others(5000), messageId(OURS, 7n), ...others(300)]
  const looked = scan(unsent, 0, 1000, anchorAt(5000n, 7n, false))
  assert.ok(looked.verdict.kind === 'found' && looked.verdict.localOffset === 7n)
  assert.ok(looked.pages < 8)
})

test('when retention took our newest record, nothing is searched for that was never sent', () => {
  const { verdict, pages } = scan(others(3000), 800, 1000, anchorAt(500n, 7n, true))
  assert.deepEqual(verdict, { kind: 'absent', upstreamStart: 800n, upstreamEnd: 3000n, isLimited: false })
  assert.equal(pages, 3)
  const searched = scan(others(1000), 800, 1000, anchorAt(500n, 7n, false))
  assert.deepEqual(searched.verdict, { kind: 'absent', upstreamStart: 800n, upstreamEnd: 1000n, isLimited: false })
})

test('where another message lies in its place, so many below it are searched', () => {
  const forgot = [messageId(OURS, 6n), ...others(3000)]
  for (const isNewest of [true, false]) {
    const { verdict } = scan(forgot, 0, 1000, anchorAt(1000n, 7n, isNewest))
    assert.ok(verdict.kind === 'found' && verdict.localOffset === 6n)
    const limited = scan(forgot, 0, 1000, { ...anchorAt(1000n, 7n, isNewest), maxCount: 500 })
    assert.ok(limited.verdict.kind === 'absent' && limited.verdict.isLimited && limited.verdict.upstreamStart <= 500n)
  }
})

test('what was searched before is passed over, unless the upstream has less than then', () => {
  const ids = [messageId(OURS, 6n), ...others(3000)]
  const known = { searched: { from: 10n, end: 2990n } }
  const { verdict, pages } = scan(ids, 0, 1000, known)
  assert.ok(verdict.kind === 'found' && verdict.localOffset === 6n)
  assert.equal(pages, 3)
  const expired = scan(others(1000), 800, 1000, { ...anchorAt(500n, 7n, false), searched: { from: 600n, end: 990n } })
  assert.ok(expired.verdict.kind === 'absent' && expired.verdict.upstreamStart > 500n)
  const behind = [...others(20), messageId(OURS, 7n), ...others(20)]
  const other = scan(behind, 0, 1000, known)
  assert.ok(other.verdict.kind === 'found' && other.verdict.localOffset === 7n)
})
