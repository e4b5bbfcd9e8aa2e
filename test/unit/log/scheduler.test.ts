import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemScheduler } from '../../../src/log/scheduler.ts'

test('what was due a moment ago runs next, and nothing is said about it', async (context) => {
  const warning = context.mock.method(process, 'emitWarning', () => {})
  await new Promise<void>((resolve) => void systemScheduler.after(-2, resolve))
  assert.equal(warning.mock.callCount(), 0)
})
