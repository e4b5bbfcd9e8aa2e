import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  bytes,
  duration,
  formatRow,
  formatRows,
  formatSpan,
  list,
  nested,
  time,
} from '../../../../src/runtime/cli/output.ts'

const ROWS = [
  { id: 0, name: 'orders', size: bytes(1536n), created_at: time(1_700_000_000_000_000n) },
  { id: 12, name: 'ö', size: bytes(0n), created_at: time(null) },
]

test('a table is aligned: names to the left, numbers to the right, by characters', () => {
  assert.deepEqual(formatRows(ROWS, 'table').split('\n'), [
    'ID  NAME    SIZE     CREATED AT',
    ' 0  orders  1.5 KiB  2023-11-14T22:13:20.000Z',
    '12  ö       0 B      -',
  ])
})

test('a list says one thing a line', () => {
  assert.equal(
    formatRows(ROWS, 'list').split('\n\n')[0],
    'Id:         0\nName:       orders\nSize:       1.5 KiB\nCreated at: 2023-11-14T22:13:20.000Z',
  )
})

test('JSON has values, not their texts, and every digit of large numbers', () => {
  const row = { offset: 2n ** 64n - 1n, size: bytes(1536n), groups: list(['a', 'b']), parts: nested([{ id: 1 }]) }
  assert.equal(
    formatRow(row, 'json'),
    '{"offset":18446744073709551615,"size":1536,"groups":["a","b"],"parts":[{"id":1}]}',
  )
})

test('no rows are said in a word, and are an empty list in JSON', () => {
  assert.equal(formatRows([], 'table'), 'none')
  assert.equal(formatRows([], 'json'), '[]')
})

test('what comes from a device breaks neither line nor terminal', () => {
  assert.equal(formatRow({ payload: 'a\n\u001b[31mb' }, 'table'), 'Payload: a [31mb')
})

test('amounts are said in the unit a person would take', () => {
  assert.deepEqual([5, 5000, 61_000_000, 90_061_000_000].map(formatSpan), ['5 us', '5 ms', '1 m 1 s', '1 d 1 h'])
  assert.equal(duration(2n ** 64n - 1n).text, 'never')
  assert.equal(bytes(2n ** 64n - 1n).text, 'unlimited')
})
