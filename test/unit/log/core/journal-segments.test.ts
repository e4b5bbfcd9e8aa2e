import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JournalIndex } from '../../../../src/log/core/journal-index.ts'
import { closedInJournal, type JournalTail } from '../../../../src/log/core/journal-segments.ts'

/** Batches of 10 messages with these sizes, from offset 100 on. */
function tailOf(sizes: readonly number[], changes: Partial<JournalTail> = {}): JournalTail {
  const index = new JournalIndex()
  for (const [entry, size] of sizes.entries()) index.push(BigInt(100 + entry * 10), 0, 4096 + entry * 8, size)
  const end = BigInt(100 + sizes.length * 10)
  return { growing: undefined, index, externals: new Map(), writtenEnd: end, durableEnd: end, ...changes }
}

const ranges = (tail: JournalTail, limitBytes: number): unknown[] =>
  closedInJournal(tail, limitBytes).map(({ baseOffset, endOffset, sizeBytes, fileBytes }) => [
    Number(baseOffset),
    Number(endOffset),
    sizeBytes,
    fileBytes,
  ])

test('the batch that makes a segment large enough is its last one, and what follows is not closed', () => {
  assert.deepEqual(ranges(tailOf([60, 60, 60, 60, 60]), 100), [
    [100, 120, 120, 0],
    [120, 140, 120, 0],
  ])
  assert.deepEqual(ranges(tailOf([100]), 100), [[100, 110, 100, 0]], 'also when nothing follows')
  assert.deepEqual(ranges(tailOf([99]), 100), [])
  assert.deepEqual(ranges(tailOf([]), 100), [])
})

test('the first begins with the file that still grows, which may be large enough by itself', () => {
  const growing = { baseOffset: 50n, sizeBytes: 70 }
  assert.deepEqual(ranges(tailOf([60, 60, 60], { growing }), 100), [
    [50, 110, 130, 70],
    [110, 130, 120, 0],
  ])
  assert.deepEqual(ranges(tailOf([60], { growing: { baseOffset: 50n, sizeBytes: 100 } }), 100), [[50, 100, 100, 100]])
})

test('a large batch counts as large as its file, and frees it', () => {
  const externals = new Map([[110n, { sizeBytes: 500 }]])
  assert.deepEqual(ranges(tailOf([60, 8, 60], { externals }), 100), [[100, 120, 568, 500]])
})

test('nothing is closed that is not durable', () => {
  const tail = tailOf([100, 100, 100], { durableEnd: 120n })
  assert.deepEqual(ranges(tail, 100), [
    [100, 110, 100, 0],
    [110, 120, 100, 0],
  ])
})
