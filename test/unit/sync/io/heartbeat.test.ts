import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../../../src/clock.ts'
import { Heartbeat } from '../../../../src/sync/io/heartbeat.ts'
import { Turns } from '../../../../src/sync/io/turns.ts'

const INTERVAL_MS = 5000

/** A heartbeat on mocked time, and how often it pinged. */
function beating(context: TestContext) {
  context.mock.timers.enable({ apis: ['setInterval', 'Date'] })
  const clock: Clock = { monotonicUs: () => Date.now() * 1000, wallUs: () => BigInt(Date.now()) * 1000n }
  const turns = new Turns()
  const ping = context.mock.fn(async () => {})
  const heartbeat = new Heartbeat({ intervalMs: INTERVAL_MS, clock, turns, ping })
  context.after(() => heartbeat.close())
  const pass = async (ms: number) => {
    context.mock.timers.tick(ms)
    await setImmediate()
  }
  return { heartbeat, turns, pass, pingCount: () => ping.mock.callCount() }
}

test('a link that carries nothing is pinged, and one that does is not', async (context) => {
  const { heartbeat, pass, pingCount } = beating(context)
  await pass(INTERVAL_MS)
  assert.equal(pingCount(), 1)
  await pass(INTERVAL_MS - 1)
  heartbeat.sent()
  await pass(1)
  assert.equal(pingCount(), 1)
  heartbeat.close()
  await pass(10 * INTERVAL_MS)
  assert.equal(pingCount(), 1)
})

test('a record that has the link for itself is not blamed for a ping: it waits, as one', async (context) => {
  const { turns, pass, pingCount } = beating(context)
  turns.take(3, () => {})
  for (let beats = 0; beats < 5; beats++) await pass(INTERVAL_MS)
  assert.equal(pingCount(), 0)
  turns.end()
  await setImmediate()
  assert.equal(pingCount(), 1)
})
