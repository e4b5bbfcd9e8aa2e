/** Who is told what, and when: senders of a full topic that drops the newest, and of a batch that no log takes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppendPath, type AppendPathOptions, MAX_BATCH_SIZE } from '../../../src/log/append-path.ts'
import { PendingReceipt } from '../../../src/log/core/pending-receipt.ts'
import type { LogPartition } from '../../../src/log/partition.ts'
import { recordsOf } from '../../support/records.ts'

test('the receipt of a dropped message waits for those before it', () => {
  const told: string[] = []
  const turns: (() => void)[] = []
  const earlier = new PendingReceipt({ settled: () => void told.push('stored') })
  let last = earlier
  const partition = {
    key: 1,
    nextOffset: 7n,
    inOrder: (receipt: PendingReceipt) => {
      receipt.follow(last)
      last = receipt
    },
  } as unknown as LogPartition
  const scheduler = { nextTurn: (task: () => void) => void turns.push(task), after: () => () => {} }
  const path = new AppendPath({ scheduler } as unknown as AppendPathOptions)
  const dropped: unknown[] = []
  path.gate = {
    refusal: () => 'drop-newest',
    droppedNewest: (...facts) => void dropped.push(facts),
    segmentsChanged() {},
  }
  const batch = { count: 2, baseOriginUs: 1n, recordsView: recordsOf([1, 2]) }
  assert.equal(path.dropsNewest(partition, batch, { settled: () => void told.push('dropped') }, undefined), true)
  for (const task of turns.splice(0)) task()
  assert.deepEqual(told, [], 'the message before is not stored yet')
  earlier.settle(null)
  assert.deepEqual(told, ['stored', 'dropped'])
  assert.deepEqual(dropped, [[1, 7n, 2, batch.recordsView.length]])
})

test('what is above the limit does not wait for room that never comes: it is refused by name', () => {
  let waitingBytes = 0
  const path = new AppendPath({
    journal: { maxBodySize: 1024, hasRoom: () => true, refusal: undefined },
    large: { hasRoom: (sizeBytes: number) => waitingBytes + sizeBytes <= MAX_BATCH_SIZE, holds: () => false },
  } as unknown as AppendPathOptions)
  assert.equal(path.hasRoom(MAX_BATCH_SIZE + 1), true)
  const batch = { count: 1, baseOriginUs: 1n, recordsView: new Uint8Array(MAX_BATCH_SIZE + 1) }
  assert.throws(() => path.check({} as LogPartition, batch, undefined), { code: 'EDGE_MESSAGE_TOO_LARGE' })
  // In its turn: memory holds one of them at a time.
  waitingBytes = 1
  assert.equal(path.hasRoom(MAX_BATCH_SIZE + 1), false)
})
