import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FlashBudget, MAX_WAIT_US } from '../../../../src/log/core/flash-budget.ts'

const MIB = 1024 * 1024
const HOUR_US = 3_600_000_000

test('a lone reading never waits', () => {
  const budget = new FlashBudget(24 * MIB, 0)
  for (let minute = 0; minute < 600; minute++) {
    assert.equal(budget.waitUs(minute * 60_000_000), 0)
    budget.spend(8192, minute * 60_000_000)
  }
})

test('sustained load spends the hour and then waits, a second at most', () => {
  const budget = new FlashBudget(24 * MIB, 0)
  budget.spend(MIB, 0)
  assert.equal(budget.waitUs(0), MAX_WAIT_US)
  budget.spend(100 * MIB, 0)
  assert.equal(budget.waitUs(0), MAX_WAIT_US)
  assert.equal(budget.waitUs(2 * HOUR_US + 1_000_000_000), 0)
})

test('a budget of zero never waits', () => {
  const budget = new FlashBudget(0, 0)
  budget.spend(1000 * MIB, 0)
  assert.equal(budget.waitUs(0), 0)
})

test('what nobody waits for is put off while the budget is in debt', () => {
  const budget = new FlashBudget(24 * MIB, 0)
  assert.equal(budget.delayFactor(0), 1)
  budget.spend(MIB, 0)
  assert.equal(budget.delayFactor(0), 10)
  assert.equal(budget.delayFactor(HOUR_US), 1)
})
