import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DropRange as Drop } from '../../../../src/log/api.ts'
import { planDiskBudget } from '../../../../src/log/core/disk-budget.ts'
import { DropLedger } from '../../../../src/log/core/drop-ledger.ts'

const MIB = 1024 * 1024

function drop(key: number, fromOffset: bigint, endOffset: bigint, reason: Drop['reason'] = 'expired'): Drop {
  return { key, reason, fromOffset, endOffset, messageCount: Number(endOffset - fromOffset), sizeBytes: 10 }
}

test('sums are exact per reason, however many drops there were', () => {
  const ledger = new DropLedger()
  for (let at = 0n; at < 1000n; at++) ledger.record(drop(Number(at % 7n), at * 10n, at * 10n + 10n))
  ledger.record(drop(1, 0n, 5n, 'disk-budget-unread'))
  assert.deepEqual(
    [...ledger.report().byReason],
    [
      ['expired', { messageCount: 10_000, sizeBytes: 10_000 }],
      ['disk-budget-unread', { messageCount: 5, sizeBytes: 10 }],
    ],
  )
  assert.equal(ledger.totalMessages(), 10_005)
})

test('the list of ranges keeps the newest and joins neighbours', () => {
  const ledger = new DropLedger()
  ledger.record(drop(1, 0n, 10n))
  ledger.record(drop(1, 10n, 20n))
  ledger.record(drop(2, 0n, 10n))
  assert.deepEqual(
    ledger.report().recent.map(({ key, fromOffset, endOffset }) => [key, fromOffset, endOffset]),
    [
      [1, 0n, 20n],
      [2, 0n, 10n],
    ],
  )
  for (let at = 0n; at < 1000n; at++) ledger.record(drop(3, at * 100n, at * 100n + 1n))
  assert.equal(ledger.report().recent.length, 256)
  assert.equal(ledger.report().recent.at(-1)?.fromOffset, 99_900n)
})

test('messages that a full topic did not take are counted without an offset of their own', () => {
  const ledger = new DropLedger()
  for (let round = 0; round < 3; round++) {
    ledger.record({ key: 1, reason: 'drop-newest', fromOffset: 7n, endOffset: 7n, messageCount: 4, sizeBytes: 40 })
  }
  assert.deepEqual(
    ledger.report().recent.map(({ messageCount, endOffset }) => [messageCount, endOffset]),
    [[12, 7n]],
  )
  assert.equal(ledger.totalMessages(), 12)
})

test('only totals that changed are written, and loaded ones go on', () => {
  const ledger = new DropLedger()
  ledger.load(drop(1, 0n, 10n))
  assert.deepEqual(ledger.unsaved(), { changed: [], removedKeys: [] })
  ledger.record(drop(1, 10n, 15n))
  assert.deepEqual(ledger.unsaved().changed, [{ ...drop(1, 0n, 15n), sizeBytes: 20 }])
  ledger.saved()
  assert.deepEqual(ledger.unsaved().changed, [])
})

test('the sums do not fall when a partition is deleted, nor rise when it is asked for again', () => {
  const ledger = new DropLedger()
  ledger.record(drop(1, 0n, 10n))
  ledger.record(drop(2, 0n, 5n))
  ledger.saved()
  ledger.retain((key) => key !== 1)
  assert.equal(ledger.totalMessages(), 15)
  assert.deepEqual(ledger.unsaved(), { changed: [drop(0, 0n, 10n)], removedKeys: [1] })
  ledger.saved()
  ledger.retain(() => false)
  ledger.retain(() => false)
  assert.equal(ledger.totalMessages(), 15)
})

test('the automatic budget is a share of the volume less what is kept free', () => {
  const auto = { budget: 'auto', freeFloor: 'auto' } as const
  assert.deepEqual(planDiskBudget(auto, 8000 * MIB), { budgetBytes: 6000 * MIB, freeFloorBytes: 400 * MIB })
  assert.equal(planDiskBudget(auto, 1_000_000 * MIB).freeFloorBytes, 1024 * MIB)
  assert.deepEqual(planDiskBudget(auto, 40 * MIB), { budgetBytes: 32 * MIB, freeFloorBytes: 16 * MIB })
  assert.deepEqual(planDiskBudget({ budget: 50 * MIB, freeFloor: 0 }, 8000 * MIB), {
    budgetBytes: 50 * MIB,
    freeFloorBytes: 0,
  })
})
