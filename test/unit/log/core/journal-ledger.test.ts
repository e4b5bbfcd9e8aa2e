/** Which generations of journal files are missing, from a note that may be old. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { missingFiles } from '../../../../src/log/core/journal-ledger.ts'

const missing = (noted: number[], found: number[]): readonly number[] => missingFiles(noted, found).generations

test('all that was noted is there, and so is nothing missing', () => {
  assert.deepEqual(missing([4, 5, 6], [6, 4, 5]), [])
  assert.deepEqual(missing([4, 5, 6], [4, 5, 6, 7]), [])
})

test('without a note nothing is known to be missing', () => {
  assert.deepEqual(missing([], [4]), [])
})

test('files that were recycled after the note are found under newer generations', () => {
  assert.deepEqual(missing([4, 5, 6], [5, 6, 7]), [])
  assert.deepEqual(missing([4, 5, 6], [9, 10, 11]), [])
})

test('a file that is gone is missing, also when older ones were recycled since the note', () => {
  assert.deepEqual(missing([4, 5, 6], [5, 6]), [4])
  assert.deepEqual(missing([4, 5, 6], [4, 6]), [5])
  assert.deepEqual(missing([4, 5, 6], []), [4, 5, 6])
  assert.deepEqual(missing([4, 5, 6], [6, 7]), [5])
})
