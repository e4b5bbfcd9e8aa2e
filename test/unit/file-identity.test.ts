import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInPlace, UNKNOWN_IDENTITY } from '../../src/file-identity.ts'

test('what is gone, or another one, is not in its place; a disk that cannot be asked says nothing', () => {
  assert.deepEqual(
    [isInPlace('1 7', '1 7'), isInPlace('1 7', '1 8'), isInPlace('1 7', undefined)],
    [true, false, false],
  )
  assert.deepEqual([isInPlace('1 7', UNKNOWN_IDENTITY), isInPlace(UNKNOWN_IDENTITY, '1 7')], [true, true])
})
