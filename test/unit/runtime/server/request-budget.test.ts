import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RequestBudget } from '../../../../src/runtime/server/request-budget.ts'

test('shares are taken while there are any, and the others wait in their order', () => {
  const budget = new RequestBudget(100)
  const granted: string[] = []
  assert.equal(budget.take(60), true)
  assert.equal(budget.take(50), false)
  budget.wait(50, () => granted.push('first'))
  budget.wait(60, () => granted.push('second'))
  budget.give(60)
  assert.deepEqual(granted, ['first'])
  budget.give(50)
  assert.deepEqual(granted, ['first', 'second'])
  assert.equal(budget.inUseBytes, 60)
})

test('what fits goes past who waits for more, up to as much as that one asks for', () => {
  const budget = new RequestBudget(100)
  const granted: string[] = []
  budget.take(60)
  budget.wait(50, () => granted.push('large'))
  budget.wait(45, () => granted.push('other'))
  let passedBytes = 0
  for (let count = 0; count < 100 && budget.take(10); count++) {
    budget.give(10)
    passedBytes += 10
  }
  assert.equal(passedBytes, 50)
  budget.give(60)
  assert.deepEqual(granted, ['large', 'other'])
  budget.wait(10, () => granted.push('next'))
  assert.equal(budget.take(5), true, 'of the new first one nothing is used up')
})

test('who waits behind one that does not fit gets the share that is given back', () => {
  const budget = new RequestBudget(100)
  const granted: string[] = []
  budget.take(60)
  budget.take(40)
  budget.wait(90, () => granted.push('large'))
  budget.wait(30, () => granted.push('small'))
  budget.wait(70, () => granted.push('middle'))
  budget.give(40)
  assert.deepEqual(granted, ['small'])
  budget.give(60)
  assert.deepEqual(granted, ['small'], '70 more would be more than the first one asks for')
  budget.give(30)
  assert.deepEqual(granted, ['small', 'large'])
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
