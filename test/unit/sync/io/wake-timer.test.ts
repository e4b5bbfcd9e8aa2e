import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WakeTimer } from '../../../../src/sync/io/wake-timer.ts'

function started(context: { mock: { timers: { enable(options: { apis: ['setTimeout'] }): void } } }) {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const state = { nowUs: 0, wokenCount: 0 }
  const timer = new WakeTimer({ wallUs: () => 0n, monotonicUs: () => state.nowUs })
  const wake = () => void state.wokenCount++
  return { state, timer, wake }
}

test('a wake-up comes when it is due and not before', (context) => {
  const { state, timer, wake } = started(context)
  state.nowUs = 4_000_000
  timer.set(4_002_500, wake)
  context.mock.timers.tick(3)
  assert.equal(state.wokenCount, 0)
  context.mock.timers.tick(1)
  assert.equal(state.wokenCount, 1)
})

test('a wake-up that is set anew, or cleared, does not come twice', (context) => {
  const { state, timer, wake } = started(context)
  timer.set(1000, wake)
  timer.set(5000, wake)
  context.mock.timers.tick(100)
  assert.equal(state.wokenCount, 1)
  timer.set(1000, wake)
  timer.clear()
  context.mock.timers.tick(100)
  assert.equal(state.wokenCount, 1)
})

test('a wake-up in a month comes when it is due, though no timer waits that long', (context) => {
  const { state, timer, wake } = started(context)
  const monthMs = 31 * 86_400_000
  timer.set(monthMs * 1000, wake)
  for (const waitedMs of [2 ** 31 - 1, monthMs - 2 ** 31 + 1]) {
    assert.equal(state.wokenCount, 0)
    state.nowUs += waitedMs * 1000
    context.mock.timers.tick(waitedMs)
  }
  context.mock.timers.tick(1)
  assert.equal(state.wokenCount, 1)
})
