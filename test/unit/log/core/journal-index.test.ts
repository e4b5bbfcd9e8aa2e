import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IN_MEMORY, JournalIndex } from '../../../../src/log/core/journal-index.ts'

function filled(count: number): JournalIndex {
  const index = new JournalIndex()
  for (let entry = 0; entry < count; entry++) index.push(BigInt(entry * 10), entry % 3, 4096 + entry * 56, 56)
  return index
}

test('an offset is found in the batch that holds it', () => {
  const index = filled(100)
  assert.deepEqual(
    [-1n, 0n, 9n, 10n, 995n, 5000n].map((offset) => index.find(offset)),
    [-1, 0, 0, 1, 99, 99],
  )
})

test('places of all files and positions read back', () => {
  const index = new JournalIndex()
  const largest = 64 * 1024 * 1024 - 8
  index.push(0n, 510, largest, 100)
  assert.deepEqual([index.fileNumber(0), index.position(0), index.size(0)], [510, largest, 100])
})

test('entries leave from the front while others come', () => {
  const index = filled(20)
  for (let entry = 20; entry < 2000; entry++) {
    index.dropFirst(1)
    index.push(BigInt(entry * 10), 0, 4096, 56)
  }
  assert.equal(index.count, 20)
  assert.equal(index.baseOffset(0), 19_800n)
  assert.equal(index.sizeBytes, 20 * 56)
  index.dropFirst(50)
  assert.deepEqual([index.count, index.sizeBytes, index.find(5n)], [0, 0, -1])
})

test('a batch that is written again has another place', () => {
  const index = filled(5)
  assert.ok(index.move(20n, IN_MEMORY, 64))
  assert.deepEqual([index.fileNumber(2), index.position(2)], [IN_MEMORY, 64])
  assert.equal(index.move(25n, 1, 64), false)
})
