import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AssertionFailure } from '../../src/assert.ts'
import { EdgeError, toEdgeError } from '../../src/errors.ts'

test('what is thrown becomes an error of ours, with its cause', () => {
  const ours = new EdgeError('EDGE_IO', 'the disk')
  assert.equal(toEdgeError(ours), ours)
  const other = new Error('other')
  const { code, message, cause } = toEdgeError(other)
  assert.deepEqual([code, message, cause], ['EDGE_INTERNAL', 'other', other])
  assert.equal(toEdgeError('text').message, 'text')
})

test('a broken invariant is no error to answer with: it goes on to the top level', () => {
  const broken = new AssertionFailure('offsets are contiguous')
  assert.throws(() => toEdgeError(broken), broken)
})
