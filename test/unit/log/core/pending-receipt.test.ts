/** Receipts of one partition: told once, in the order of the appends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { PendingReceipt } from '../../../../src/log/core/pending-receipt.ts'

const FAILURE = new EdgeError('EDGE_IO', 'no')

function chainOf(count: number, told: string[]): PendingReceipt[] {
  const receipts = Array.from(
    { length: count },
    (_, index) =>
      new PendingReceipt({ settled: (error) => void told.push(`${index} ${error === null ? 'kept' : error.code}`) }),
  )
  for (const [index, receipt] of receipts.entries()) {
    const before = receipts[index - 1]
    if (before !== undefined) receipt.follow(before)
  }
  return receipts
}

test('an outcome that is known early is told behind those before it', () => {
  const told: string[] = []
  const [first, second, third] = chainOf(3, told)
  third?.settle(null)
  second?.settle(FAILURE)
  assert.deepEqual(told, [])
  first?.settle(null)
  assert.deepEqual(told, ['0 kept', '1 EDGE_IO', '2 kept'])
})

test('each is told once, with its first outcome', () => {
  const told: string[] = []
  const [first, second] = chainOf(2, told)
  second?.settle(null)
  second?.settle(FAILURE)
  first?.settle(null)
  first?.settle(FAILURE)
  assert.deepEqual(told, ['0 kept', '1 kept'])
})

test('one that appends again while it is told does not disturb the order', () => {
  const told: string[] = []
  const first = new PendingReceipt({
    settled: () => {
      told.push('first')
      second.settle(null)
    },
  })
  const second = new PendingReceipt({ settled: () => void told.push('second') })
  second.follow(first)
  first.settle(null)
  assert.deepEqual(told, ['first', 'second'])
})

test('behind one that was told already nothing waits', () => {
  const told: string[] = []
  const first = new PendingReceipt(null)
  const second = new PendingReceipt({ settled: () => void told.push('second') })
  second.follow(first)
  second.settle(null)
  assert.deepEqual(told, ['second'])
})
