import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RequestBudget } from '../../../../src/runtime/server/request-budget.ts'

test('shares are taken while there are any, and the others wait in their order', () => {
  const budget = new RequestBudget(100)
  const granted: string[] = []
  assert.equal(budget.take(60), true)
  assert.equal(budget.take(50), false)
  budget.wait(50, () => granted.push('first'))
  budget.wait(10, () => granted.push('second'))
  assert.equal(budget.take(1), false, 'nobody overtakes who waits')
  budget.give(60)
  assert.deepEqual(granted, ['first', 'second'])
  assert.equal(budget.inUseBytes, 60)
})

test('a request larger than everything passes alone, so none waits for ever', () => {
  const budget = new RequestBudget(100)
  assert.equal(budget.take(500), true)
  let isGranted = false
  budget.wait(1, () => {
    isGranted = true
  })
  budget.give(500)
  assert.equal(isGranted, true)
})

test('who gives up waiting lets the next one through', () => {
  const budget = new RequestBudget(100)
  budget.take(60)
  const granted: string[] = []
  const cancel = budget.wait(90, () => granted.push('large'))
  budget.wait(40, () => granted.push('small'))
  cancel()
  assert.deepEqual(granted, ['small'])
})
