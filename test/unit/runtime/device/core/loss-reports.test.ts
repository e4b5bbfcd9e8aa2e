import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Loss, LossReports } from '../../../../../src/runtime/device/core/loss-reports.ts'

const loss = (first: number, count = 1): Loss => ({ device: 'dev-1', reason: 'refused', lane: 1, first, count })

test('the first loss is told at once, what follows once a minute with its sum, and a quiet minute ends it', () => {
  const reports = new LossReports()
  assert.deepEqual(reports.add(loss(1), 0), [loss(1)])
  for (let first = 2; first <= 9; first++) assert.deepEqual(reports.add(loss(first, 3), 1000), [])
  assert.deepEqual(reports.due(59_999), [])
  assert.deepEqual(reports.due(60_000), [loss(2, 24)])
  assert.deepEqual(reports.add(loss(30), 61_000), [])
  assert.deepEqual(reports.due(120_000), [loss(30)])
  assert.deepEqual(reports.due(180_000), [])
  assert.deepEqual(reports.add(loss(40), 180_000), [loss(40)])
})

test('devices and reasons are told apart, and nothing is kept back at the end', () => {
  const reports = new LossReports()
  for (const device of ['dev-1', 'dev-2']) {
    for (const reason of ['refused', 'skipped-expired'] as const) {
      assert.equal(reports.add({ ...loss(1), device, reason }, 0).length, 1)
    }
  }
  reports.add(loss(2), 1)
  assert.deepEqual(reports.takeAll(), [loss(2)])
  assert.deepEqual(reports.takeAll(), [])
})
