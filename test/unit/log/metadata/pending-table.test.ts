import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PendingTable } from '../../../../src/log/metadata/pending-table.ts'

test('a row that changed many times is written once, with its last value', () => {
  const table = new PendingTable<string, bigint>()
  for (let value = 0n; value < 100n; value++) table.set(7, 'a', value)
  assert.equal(table.pendingCount, 1)
  assert.deepEqual(table.pending(10), [{ partitionKey: 7, column: 'a', value: 99n }])
})

test('rows stay pending until they are reported as written', () => {
  const table = new PendingTable<string, bigint>()
  table.set(7, 'a', 1n)
  table.set(8, 'b', 2n)
  const rows = table.pending(10)
  assert.equal(table.pendingCount, 2)
  table.written(rows)
  assert.equal(table.pendingCount, 0)
  assert.deepEqual(table.pending(10), [])
})

test('no more rows are handed out than asked for, and the rest comes next', () => {
  const table = new PendingTable<number, bigint>()
  for (let column = 0; column < 10; column++) table.set(1, column, 0n)
  const first = table.pending(6)
  table.written(first)
  assert.equal(first.length, 6)
  assert.equal(table.pending(6).length, 4)
})

test('a deleted row is handed out for deletion', () => {
  const table = new PendingTable<string, bigint>()
  table.load(7, 'a', 1n)
  assert.equal(table.delete(7, 'a'), true)
  assert.equal(table.delete(7, 'a'), false)
  assert.deepEqual(table.pending(10), [{ partitionKey: 7, column: 'a', value: undefined }])
})

test('a row loaded from the disk is not written back', () => {
  const table = new PendingTable<string, bigint>()
  table.load(7, 'a', 1n)
  assert.equal(table.pendingCount, 0)
  assert.equal(table.get(7, 'a'), 1n)
})

test('deleting a partition deletes each of its rows and leaves the others', () => {
  const table = new PendingTable<string, bigint>()
  table.load(7, 'a', 1n)
  table.load(7, 'b', 1n)
  table.load(8, 'a', 1n)
  assert.equal(table.deletePartition(7), 2)
  assert.equal(table.of(7).size, 0)
  assert.equal(table.get(8, 'a'), 1n)
  assert.equal(table.pendingCount, 2)
})

test('rows that come and go before they are written leave nothing behind', () => {
  const table = new PendingTable<number, bigint>()
  for (let column = 0; column < 1000; column++) {
    table.set(7, column, 1n)
    assert.equal(table.delete(7, column), true)
  }
  assert.equal(table.pendingCount, 0)
  assert.deepEqual(table.pending(10), [])
})

test('a row that the disk has is deleted there, however often it came back in between', () => {
  const table = new PendingTable<string, bigint>()
  table.load(7, 'a', 1n)
  table.set(7, 'b', 1n)
  table.written(table.pending(10))
  for (const column of ['a', 'b']) {
    table.set(7, column, 2n)
    table.delete(7, column)
    table.set(7, column, 3n)
    table.delete(7, column)
  }
  assert.deepEqual(
    table.pending(10).map(({ column, value }) => [column, value]),
    [
      ['a', undefined],
      ['b', undefined],
    ],
  )
})

test('rows that are gone count until the disk knows, or until they are back', () => {
  const table = new PendingTable<string, bigint>()
  for (const column of ['a', 'b', 'c']) table.load(7, column, 1n)
  for (const column of ['a', 'b', 'c']) table.delete(7, column)
  assert.equal(table.removedCount, 3)
  table.set(7, 'a', 2n)
  assert.equal(table.removedCount, 2)
  table.written(table.pending(10))
  assert.equal(table.removedCount, 0)
  table.set(7, 'b', 1n)
  table.delete(7, 'b')
  assert.equal(table.removedCount, 0, 'the disk never had it')
  table.delete(7, 'a')
  table.set(7, 'a', 2n)
  table.delete(7, 'a')
  assert.equal(table.removedCount, 1)
})
