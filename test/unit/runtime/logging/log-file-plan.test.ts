import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLogFileFull, type LogFileLimits, planLogSweep } from '../../../../src/runtime/logging/log-file-plan.ts'

const LIMITS: LogFileLimits = { maxFileBytes: 100, maxTotalBytes: 400, retentionMs: 1000 }
const NOW_MS = 1_800_000_000_000

const file = (number: number, sizeBytes = 100, ageMs = 0) => ({ number, sizeBytes, writtenMs: NOW_MS - ageMs })

test('a line goes into a new file when the old one would become too large, unless it has nothing yet', () => {
  assert.ok(!isLogFileFull(60, 40, LIMITS))
  assert.ok(isLogFileFull(60, 41, LIMITS))
  assert.ok(!isLogFileFull(0, 500, LIMITS))
  assert.ok(!isLogFileFull(60, 41, { ...LIMITS, maxFileBytes: 0 }))
})

test('the oldest files go when all of them and a full one would be too large together', () => {
  assert.deepEqual(planLogSweep([file(7), file(8), file(9)], LIMITS, NOW_MS), [])
  assert.deepEqual(planLogSweep([file(8), file(10), file(9), file(6), file(7)], LIMITS, NOW_MS), [6, 7])
  assert.deepEqual(planLogSweep([file(1), file(2), file(3), file(4)], { ...LIMITS, maxTotalBytes: 0 }, NOW_MS), [])
})

test('files go by age whatever their size, and a clock that was set back keeps them', () => {
  assert.deepEqual(planLogSweep([file(1, 1, 1001), file(2, 1, 1000), file(3, 1, -5000)], LIMITS, NOW_MS), [1])
})

test('files that were written while the clock was not set go for their size alone', () => {
  const old = (number: number) => ({ number, sizeBytes: 100, writtenMs: 5000 })
  assert.deepEqual(planLogSweep([old(1), file(2)], LIMITS, NOW_MS), [])
  assert.deepEqual(planLogSweep([old(1), file(2), file(3), file(4)], LIMITS, NOW_MS), [1])
})
