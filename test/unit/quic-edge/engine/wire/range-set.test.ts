import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RangeSet } from '../../../../../src/quic-edge/engine/wire/range-set.ts'
import { SeededRandom } from '../../../../support/seeded-random.ts'

function rangesOf(set: RangeSet): number[][] {
  return Array.from({ length: set.count }, (_, index) => [set.firstOf(index), set.lastOf(index)])
}

test('ranges that touch or overlap become one', () => {
  const set = new RangeSet()
  set.add(5, 5)
  set.add(6, 7)
  set.add(1, 2)
  assert.deepEqual(rangesOf(set), [
    [1, 2],
    [5, 7],
  ])
  set.add(9, 12)
  set.add(2, 4)
  assert.deepEqual(rangesOf(set), [
    [1, 7],
    [9, 12],
  ])
  set.add(0, 20)
  assert.deepEqual(rangesOf(set), [[0, 20]])
  set.add(3, 4)
  assert.deepEqual(rangesOf(set), [[0, 20]])
})

test('the highest ranges can be kept, and everything below a number dropped', () => {
  const set = new RangeSet()
  for (const value of [1, 3, 5, 7]) set.add(value, value)
  set.keepHighest(3)
  assert.deepEqual(rangesOf(set), [
    [3, 3],
    [5, 5],
    [7, 7],
  ])
  set.add(8, 12)
  set.dropBelow(9)
  assert.deepEqual(rangesOf(set), [[9, 12]])
  set.dropBelow(13)
  assert.ok(set.isEmpty)
})

test('a set does what the simplest possible one does', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = new SeededRandom(seed)
    const set = new RangeSet()
    const model = new Set<number>()
    for (let step = 0; step < 200; step++) {
      const first = random.below(100)
      const last = first + random.below(random.chance(0.8) ? 2 : 20)
      if (random.chance(0.95)) {
        set.add(first, last)
        for (let value = first; value <= last; value++) model.add(value)
      } else {
        set.dropBelow(first)
        for (const value of model) if (value < first) model.delete(value)
      }
      const ranges = rangesOf(set)
      const members = ranges.flatMap(([from = 0, to = -1]) => Array.from({ length: to - from + 1 }, (_, i) => from + i))
      assert.deepEqual(
        members,
        [...model].sort((a, b) => a - b),
        `seed ${seed}, step ${step}`,
      )
      assert.ok(ranges.every(([from = 0], index) => index === 0 || from > (ranges[index - 1]?.[1] ?? 0) + 1))
      const low = random.below(100)
      const high = low + random.below(3)
      const isCovered = Array.from({ length: high - low + 1 }, (_, i) => low + i).every((value) => model.has(value))
      assert.equal(set.covers(low, high), isCovered)
      assert.equal(set.has(low), model.has(low))
    }
  }
})
