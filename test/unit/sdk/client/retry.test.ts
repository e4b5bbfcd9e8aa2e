import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Backoff } from '../../../../src/sdk/client/retry.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'

const POLICY = { minDelayUs: 1000, maxDelayUs: 30_000 }

test('pauses double up to the maximum and stay there for ever', () => {
  const backoff = new Backoff(POLICY, () => 0.999999)
  const delays = Array.from({ length: 7 }, () => backoff.nextDelayUs())
  assert.deepEqual(delays, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  for (let attempt = 0; attempt < 10_000; attempt++) backoff.nextDelayUs()
  assert.equal(backoff.nextDelayUs(), 30_000)
})

test('jitter covers the range and never draws zero', () => {
  const { next } = new SeededRandom(1)
  const backoff = new Backoff(POLICY, next)
  const delays = Array.from({ length: 2000 }, () => backoff.nextDelayUs()).slice(10)
  assert.ok(Math.min(...delays) >= 3000 && Math.min(...delays) < 3500)
  assert.ok(Math.max(...delays) <= 30_000 && Math.max(...delays) > 29_500)
})

test('a reset begins anew', () => {
  const backoff = new Backoff(POLICY, () => 1)
  backoff.nextDelayUs()
  backoff.nextDelayUs()
  backoff.reset()
  assert.equal(backoff.nextDelayUs(), 1000)
  assert.equal(backoff.attempts, 1)
})
