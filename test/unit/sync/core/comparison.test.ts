import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Comparison, type ComparisonInput } from '../../../../src/sync/core/comparison.ts'
import { messageId } from '../../../../src/sync/core/message-id.ts'
import type { TailVerdict } from '../../../../src/sync/core/tail.ts'

const OURS = 7n
const NEWER = 8n
const OTHERS = 99n

/** A record upstream: whose, its local offset, and in which life of the edge's data it was made. */
type Kept = readonly [prefix: bigint, offset: number, life: number]

const INPUT: ComparisonInput = {
  prefixes: [OURS, NEWER],
  incarnation: 0,
  cursor: undefined,
  logStart: 0n,
  sendableEnd: 100n,
}

const contentOf = (life: number) => ({ payloadBytes: 1, payloadSum: life, originUs: null })
const records = (prefix: bigint, from: number, end: number, life: number): Kept[] =>
  Array.from({ length: end - from }, (_, index) => [prefix, from + index, life])

/** @param upstream ends with the record that was found. @param lives of the local records, by offset. */
function compare(
  upstream: readonly Kept[],
  lives: readonly number[],
  change: Partial<ComparisonInput> = {},
): { partsAt: bigint | null; looks: number; compared: number } {
  const [prefix, offset, life] = upstream.at(-1) ?? [0n, 0, 0]
  const upstreamEnd = BigInt(upstream.length)
  const verdict: TailVerdict = {
    kind: 'found',
    localOffset: BigInt(offset),
    incarnation: INPUT.prefixes.indexOf(prefix),
    upstreamOffset: upstreamEnd - 1n,
    upstreamEnd,
    content: contentOf(life),
  }
  const comparison = new Comparison(verdict, { ...INPUT, sendableEnd: BigInt(lives.length), ...change })
  let [looks, compared] = [0, 0]
  for (let question = comparison.question; question !== null; question = comparison.question) {
    assert.ok(looks + compared < 200, 'it ends')
    if ('content' in question) {
      compared++
      comparison.compared(question.content.payloadSum === lives[Number(question.offset)])
      continue
    }
    looks++
    const from = Number(question.upstreamOffset)
    const messages = upstream.slice(from, from + 4).map(([prefix, offset], index) => ({
      offset: BigInt(from + index),
      id: messageId(prefix, BigInt(offset)),
    }))
    const contentAt = (at: bigint) => contentOf(upstream[Number(at)]?.[2] ?? 0)
    comparison.looked({ currentOffset: upstreamEnd - 1n, messages, sizeBytes: 0, contentAt })
  }
  return { partsAt: comparison.partsAt, looks, compared }
}

const lives = (...counts: readonly number[]): number[] => counts.flatMap((count, life) => Array(count).fill(life))

test('what the log has too was sent by us, and one comparison tells', () => {
  assert.deepEqual(compare(records(OURS, 0, 50, 0), lives(60)), { partsAt: null, looks: 0, compared: 1 })
})

test('what the cursor knows, what the log has lost, and what is of an older incarnation, is not compared', () => {
  const upstream = records(OURS, 0, 50, 1)
  for (const change of [
    { cursor: { confirmedOffset: 49n, upstreamOffset: null } },
    { logStart: 50n },
    { incarnation: 1 },
  ])
    assert.deepEqual(compare(upstream, lives(60), change), { partsAt: null, looks: 0, compared: 0 })
})

test('where both have the same at first, the first record that is not the same is found in few looks', () => {
  const upstream = records(OURS, 0, 5000, 0)
  for (const end of [0, 1, 2, 1777, 4998, 4999]) {
    const found = compare(upstream, lives(end, 6000))
    assert.equal(found.partsAt, BigInt(end))
    assert.ok(found.looks <= 13, `${found.looks} looks`)
  }
})

test('an upstream that is ahead of the log has all of it, or parts from it before its end', () => {
  const upstream = records(OURS, 0, 500, 0)
  assert.equal(compare(upstream, lives(300)).partsAt, 300n)
  assert.equal(compare(upstream, lives(290, 10)).partsAt, 290n)
})

test('what is confirmed is not searched, and where nothing behind it is the same, what follows it is new', () => {
  const upstream = records(OURS, 0, 500, 0)
  const change = { cursor: { confirmedOffset: 99n, upstreamOffset: 99n } }
  assert.equal(compare(upstream, lives(100, 500), change).partsAt, 100n)
  const { partsAt, looks } = compare(upstream, lives(101, 500), change)
  assert.equal(partsAt, 101n)
  assert.ok(looks <= 10)
})

test('what an earlier restored copy sent under newer ids is told from what is here', () => {
  const upstream = [...records(OURS, 0, 64, 0), ...records(NEWER, 45, 80, 1)]
  assert.equal(
    compare(upstream, [...lives(45, 25), 2, 2, 2, 2, 2, 2, 2, 2, 2, 2], {
      cursor: { confirmedOffset: 44n, upstreamOffset: 63n },
    }).partsAt,
    70n,
  )
})

test('records of others between ours may make some come twice, and none is left out', () => {
  const upstream = records(OURS, 0, 40, 0).flatMap((record): Kept[] => [
    record,
    ...Array.from({ length: record[1] % 9 }, (): Kept => [OTHERS, 0, 5]),
  ])
  upstream.push([OURS, 40, 0])
  for (let end = 0; end < 40; end++) {
    const { partsAt } = compare(upstream, lives(end, 60))
    assert.ok(partsAt !== null && partsAt <= BigInt(end), `parts at ${end}, found ${partsAt}`)
  }
})
