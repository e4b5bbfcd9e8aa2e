import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatBytes } from '../../src/byte-text.ts'

test('sizes are said in the unit a person would take', () => {
  assert.deepEqual([0, 1023, 1024, 5 * 1024 ** 3].map(formatBytes), ['0 B', '1023 B', '1.0 KiB', '5.0 GiB'])
})
