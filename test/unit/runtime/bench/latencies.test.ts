import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Latencies } from '../../../../src/runtime/bench/latencies.ts'

function latenciesOf(samples: Iterable<number>): Latencies {
  const latencies = new Latencies()
  for (const us of samples) latencies.add(us)
  return latencies
}

test('a percentile is the smallest sample that so many are not above', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index)
  assert.deepEqual(latenciesOf(hundred).percentilesUs([0, 0.5, 0.99, 1]), [1, 50, 99, 100])
  assert.deepEqual(latenciesOf([7.4]).percentilesUs([0.5, 0.99]), [7, 7])
})

test('without a sample a percentile is zero', () => {
  assert.deepEqual(latenciesOf([]).percentilesUs([0.5]), [0])
})

test('what was measured while warming up is forgotten', () => {
  const latencies = latenciesOf([9000, 9000, 9000])
  latencies.clear()
  latencies.add(10)
  assert.equal(latencies.count, 1)
  assert.deepEqual(latencies.percentilesUs([0.99]), [10])
})

test('of a long measurement the newest samples are kept, and all are counted', () => {
  const latencies = latenciesOf(Array.from({ length: 400_000 }, (_, index) => (index < 200_000 ? 1 : 2)))
  assert.equal(latencies.count, 400_000)
  assert.deepEqual(latencies.percentilesUs([0]), [2])
})
