import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_TIMER_MS, setLongTimeout } from '../../src/long-timer.ts'

test('what is due in months comes then, and not at once; what was stopped on the way does not come', (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const came: string[] = []
  setLongTimeout(() => came.push('far'), 2 * MAX_TIMER_MS + 5)
  const stop = setLongTimeout(() => came.push('stopped'), 2 * MAX_TIMER_MS)
  setLongTimeout(() => came.push('near'), 5)
  context.mock.timers.tick(5)
  assert.deepEqual(came, ['near'])
  context.mock.timers.tick(MAX_TIMER_MS - 5)
  stop()
  context.mock.timers.tick(MAX_TIMER_MS)
  context.mock.timers.tick(4)
  assert.deepEqual(came, ['near'])
  context.mock.timers.tick(1)
  assert.deepEqual(came, ['near', 'far'])
})
