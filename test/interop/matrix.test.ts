/** The matrix of clients in docs/protocol/iggy.md is whole and of this suite. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLIENT_RUNS } from './client-catalog.ts'
import { IS_WRITING_MATRIX, readMatrix } from './support/matrix.ts'

test('the documented matrix has every client of the catalog, each with all of its scenarios', (t) => {
  if (IS_WRITING_MATRIX) {
    t.skip('the matrix is being written by the tests beside this one')
    return
  }
  const expected = CLIENT_RUNS.map(({ client, version, transport, scenarios: { length } }) => {
    return { client, version, transport, passed: length, total: length }
  })
  assert.deepEqual(readMatrix(), expected)
})
