/** Numbers of producers: seen when promised, written down when synced. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ProducerSequences } from '../../../../src/log/core/producer-table.ts'

const tag = (firstSequence: number, sequenceCount = 1) => ({
  device: 1,
  epoch: 7,
  lane: 0,
  firstSequence,
  sequenceCount,
})

test('a number counts with the promise, and reaches the checkpoint only with the sync', () => {
  const sequences = new ProducerSequences(4)
  sequences.settled(tag(1, 3), 10n)
  assert.equal(sequences.have(1, 7, 0), 3)
  assert.deepEqual(sequences.takeChanges().changed, [])
  sequences.synced(tag(1, 2), 20n)
  assert.equal(sequences.have(1, 7, 0), 3)
  assert.deepEqual(sequences.takeChanges().changed, [{ device: 1, epoch: 7, lane: 0, have: 2, seenAtUs: 20n }])
})

test('a number never falls, and what the checkpoint has is not written again', () => {
  const sequences = new ProducerSequences(4)
  sequences.load({ device: 1, epoch: 7, lane: 0, have: 9, seenAtUs: 1n })
  sequences.synced(tag(5), 30n)
  assert.equal(sequences.have(1, 7, 0), 9)
  assert.deepEqual(sequences.takeChanges(), { changed: [], removed: [] })
})

test('a number that only the journal or the checkpoint knows is never given to another device', () => {
  const sequences = new ProducerSequences(4)
  sequences.settled({ ...tag(1), device: 6 }, 10n)
  assert.equal(sequences.newDevice('new'), 7)
})
