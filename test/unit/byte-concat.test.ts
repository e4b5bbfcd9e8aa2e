import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concatBytes } from '../../src/byte-concat.ts'

test('parts come one after the other, and the whole does not share their memory', () => {
  const part = Uint8Array.of(1, 2)
  assert.deepEqual(concatBytes([part, new Uint8Array(0), Uint8Array.of(3)]), Uint8Array.of(1, 2, 3))
  const alone = concatBytes([part])
  part[0] = 9
  assert.deepEqual(alone, Uint8Array.of(1, 2))
  assert.equal(concatBytes([]).length, 0)
})
