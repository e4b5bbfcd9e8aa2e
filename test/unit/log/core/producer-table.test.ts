/** Numbers of producers: seen when promised, written down when synced. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_EPOCHS, ProducerSequences } from '../../../../src/log/core/producer-table.ts'

const tag = (firstSequence: number, sequenceCount = 1) => ({
  device: 1,
  epoch: 7,
  lane: 0,
  firstSequence,
  sequenceCount,
})

/** Of a device that is known as number 1. */
function withPump(maxDevices = 4): ProducerSequences {
  const sequences = new ProducerSequences(maxDevices)
  sequences.addDevice(1, 'pump')
  return sequences
}

test('a number counts with the promise, and reaches the checkpoint only with the sync', () => {
  const sequences = withPump()
  sequences.settled(tag(1, 3), 10n)
  assert.equal(sequences.have(1, 7, 0), 3)
  assert.deepEqual(sequences.takeChanges().changed, [])
  assert.deepEqual(sequences.lanes(1, 7), [{ lane: 0, have: 3, durable: 0 }])
  sequences.synced(tag(1, 2), 20n)
  assert.equal(sequences.have(1, 7, 0), 3)
  assert.deepEqual(sequences.lanes(1, 7), [{ lane: 0, have: 3, durable: 2 }])
  assert.deepEqual(sequences.takeChanges().changed, [{ device: 1, epoch: 7, lane: 0, have: 2, seenAtUs: 20n }])
})

test('a number never falls, and what the checkpoint has is not written again', () => {
  const sequences = withPump()
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

test('a device that is forgotten makes room, its number is given to nobody else, and nothing of it is written down', () => {
  const sequences = new ProducerSequences(1)
  const device = sequences.newDevice('old')
  sequences.synced({ ...tag(1), device }, 10n)
  assert.deepEqual(sequences.all(), [{ name: 'old', lastSeenUs: 10n }])
  assert.throws(() => sequences.newDevice('new'), { code: 'EDGE_LIMIT_REACHED', message: /iggy-edge device forget/ })
  sequences.forget('old')
  assert.deepEqual(sequences.takeChanges(), { changed: [], removed: [] })
  assert.equal(sequences.have(device, 7, 0), undefined)
  assert.equal(sequences.newDevice('new'), device + 1)
  assert.deepEqual(sequences.all(), [{ name: 'new', lastSeenUs: null }])
})

test('of what a forgotten device had on its way, and of rows without a name, nothing is kept', () => {
  const sequences = new ProducerSequences(1)
  for (let round = 0; round < 1000; round++) {
    const device = sequences.newDevice('pump')
    sequences.settled({ ...tag(1), device }, 10n)
    sequences.forget('pump')
    sequences.synced({ ...tag(1), device }, 10n)
    assert.equal(sequences.have(device, 7, 0), undefined)
  }
  const row = { device: 5000, epoch: 7, lane: 0, have: 9, seenAtUs: 1n }
  sequences.load(row)
  // A checkpoint that has one loses it.
  assert.deepEqual(sequences.takeChanges(), { changed: [], removed: [row] })
  assert.equal(sequences.newDevice('next'), 5001)
})

test('an epoch that begins while the clock stands before the times of the others stays, and the oldest of them goes', () => {
  const sequences = withPump()
  for (let epoch = 1; epoch <= MAX_EPOCHS; epoch++) sequences.synced({ ...tag(5), epoch }, BigInt(1000 + epoch))
  for (const epoch of [50, 51]) {
    sequences.settled({ ...tag(1), epoch }, 3n)
    sequences.synced({ ...tag(1), epoch }, 3n)
    sequences.synced({ ...tag(2), epoch }, 4n)
  }
  const known = [1, 2, 3, MAX_EPOCHS, 50, 51].filter((epoch) => sequences.have(1, epoch, 0) !== undefined)
  assert.deepEqual(known, [3, MAX_EPOCHS, 50, 51])
  assert.equal(sequences.have(1, 50, 0), 2)
  // After a start the checkpoint tells the same order.
  const { changed } = sequences.takeChanges()
  const again = withPump()
  for (const row of changed) again.load(row)
  again.synced({ ...tag(1), epoch: 52 }, 5n)
  assert.deepEqual([again.have(1, 3, 0), again.have(1, 50, 0), again.have(1, 52, 0)], [undefined, 2, 1])
})

test('epochs that come and go between two checkpoints leave nothing for the next one', () => {
  const sequences = withPump()
  const cutEpochs = (from: number, end: number) => {
    for (let epoch = from; epoch < end; epoch++) sequences.synced({ ...tag(1), epoch }, BigInt(epoch))
  }
  cutEpochs(1, 1001)
  const first = sequences.takeChanges()
  assert.deepEqual(first.removed, [])
  assert.deepEqual(
    first.changed.map(({ epoch }) => epoch),
    [997, 998, 999, 1000],
  )
  sequences.stored(first.changed)
  cutEpochs(1001, 2001)
  const second = sequences.takeChanges()
  assert.equal(second.changed.length, MAX_EPOCHS)
  // What the checkpoint has and memory has not.
  assert.deepEqual(
    second.removed.map(({ epoch }) => epoch),
    [997, 998, 999, 1000],
  )
})

test('an epoch that goes while the checkpoint is written is removed from the next one', () => {
  const sequences = withPump()
  sequences.synced({ ...tag(1), epoch: 1 }, 1n)
  const { changed } = sequences.takeChanges()
  for (let epoch = 2; epoch <= 1 + MAX_EPOCHS; epoch++) sequences.synced({ ...tag(1), epoch }, BigInt(epoch))
  sequences.stored(changed)
  assert.deepEqual(
    sequences.takeChanges().removed.map(({ epoch }) => epoch),
    [1],
  )
})

test('what a checkpoint that failed would have had is removed from none', () => {
  const sequences = withPump()
  for (let epoch = 1; epoch <= 1000; epoch++) {
    sequences.synced({ ...tag(1), epoch }, BigInt(epoch))
    sequences.putBack(sequences.takeChanges())
  }
  const { changed, removed } = sequences.takeChanges()
  assert.equal(changed.length, MAX_EPOCHS)
  assert.deepEqual(removed, [])
})
