import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../../src/clock.ts'
import { createMachineStats } from '../../../../src/runtime/broker/machine-stats.ts'

test('what the system does not tell is 0, and the other figures are there', (context) => {
  const stats = createMachineStats(systemClock)
  assert.ok(stats.read().memoryUsage > 0)
  context.mock.method(process.memoryUsage, 'rss', () => {
    throw new Error('EMFILE: too many open files, uv_resident_set_memory')
  })
  const { memoryUsage, processId, totalMemory } = stats.read()
  assert.deepEqual([memoryUsage, processId], [0, process.pid])
  assert.ok(totalMemory > 0)
})
