import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OffsetRanges } from '../../../../src/sync/core/offset-ranges.ts'

test('the way back passes over what was given up', () => {
  const ranges = new OffsetRanges()
  ranges.add(3n, 5n)
  ranges.add(8n, 9n)
  assert.equal(ranges.back(12n, 3n), 9n)
  assert.equal(ranges.back(12n, 4n), 7n)
  assert.equal(ranges.back(12n, 7n), 2n)
  assert.equal(ranges.back(9n, 1n), 7n)
  assert.equal(ranges.back(4n, 1n), 2n)
  assert.equal(ranges.back(12n, 100n), 0n)
})
