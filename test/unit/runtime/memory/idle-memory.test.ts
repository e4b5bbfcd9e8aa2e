import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  COLLECTION_INTERVAL_MS,
  IDLE_SHARE_MAX,
  IdleCollection,
  WORK_SHARE_MIN,
} from '../../../../src/runtime/memory/idle-memory.ts'

function collection() {
  const state = { nowMs: 1_000_000, collected: 0 }
  const subject = new IdleCollection({
    collect: () => {
      state.collected++
    },
    nowMs: () => state.nowMs,
  })
  return {
    after(workedShare: number, passedMs = 5000): number {
      state.nowMs += passedMs
      subject.onInterval(workedShare)
      return state.collected
    },
  }
}

test('what a start left is collected at the first idle interval, once', () => {
  const { after } = collection()
  assert.equal(after(0.5), 0)
  assert.equal(after(IDLE_SHARE_MAX + 0.01), 0)
  assert.equal(after(IDLE_SHARE_MAX), 1)
  assert.equal(after(0, 10 * COLLECTION_INTERVAL_MS), 1)
})

test('what work left is collected when it is over', () => {
  const { after } = collection()
  assert.equal(after(0), 1)
  assert.equal(after(WORK_SHARE_MIN, COLLECTION_INTERVAL_MS), 1)
  assert.equal(after(0), 2)
})

test('little work now and then is no reason to collect', () => {
  const { after } = collection()
  assert.equal(after(0), 1)
  assert.equal(after(WORK_SHARE_MIN - 0.01, COLLECTION_INTERVAL_MS), 1)
  assert.equal(after(0), 1)
})

test('work that comes and goes is not collected after again and again, but it is not forgotten', () => {
  const { after } = collection()
  assert.equal(after(0), 1)
  assert.equal(after(1), 1)
  assert.equal(after(0), 1)
  assert.equal(after(0, COLLECTION_INTERVAL_MS), 2)
})
