import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GapBudget, ReceiveBuffer } from '../../../../../src/quic-edge/engine/connection/receive-buffer.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { SeededRandom } from '../../../../support/seeded-random.ts'

const bytes = (from: number, to: number): Uint8Array =>
  Uint8Array.from({ length: to - from }, (_, i) => (from + i) & 0xff)

function createBuffer(maxGaps = 100): { buffer: ReceiveBuffer; budget: GapBudget } {
  const budget = new GapBudget(maxGaps, TRANSPORT_ERROR.internalError)
  return { buffer: new ReceiveBuffer(budget), budget }
}

function readAll(buffer: ReceiveBuffer): Uint8Array {
  const chunks: Uint8Array[] = []
  for (let chunk = buffer.read(); chunk !== null; chunk = buffer.read()) chunks.push(chunk)
  return new Uint8Array(Buffer.concat(chunks))
}

test('bytes beyond a gap wait until it is filled', () => {
  const { buffer, budget } = createBuffer()
  assert.equal(buffer.receive(5, bytes(5, 10), false), false)
  assert.equal(buffer.read(), null)
  assert.equal(budget.count, 1)
  assert.equal(buffer.receive(0, bytes(0, 7), false), true)
  assert.deepEqual(readAll(buffer), bytes(0, 10))
  assert.equal(budget.count, 0)
  assert.equal(buffer.readOffset, 10)
})

test('bytes that came before are not given twice', () => {
  const { buffer } = createBuffer()
  buffer.receive(0, bytes(0, 10), false)
  assert.equal(buffer.receive(0, bytes(0, 10), false), false)
  assert.equal(buffer.receive(5, bytes(5, 12), false), true)
  assert.deepEqual(readAll(buffer), bytes(0, 12))
})

test('the end is news, even without bytes', () => {
  const { buffer } = createBuffer()
  assert.equal(buffer.receive(0, bytes(0, 0), true), true)
  assert.ok(buffer.isComplete)
  assert.equal(buffer.receive(0, bytes(0, 0), true), false)
})

test('an end that contradicts another, or bytes beyond it, are refused', () => {
  const refused = { code: TRANSPORT_ERROR.finalSizeError }
  const { buffer } = createBuffer()
  buffer.receive(0, bytes(0, 10), false)
  assert.throws(() => buffer.receive(0, bytes(0, 5), true), refused)
  buffer.receive(10, bytes(10, 12), true)
  assert.throws(() => buffer.receive(12, bytes(12, 13), false), refused)
  assert.throws(() => buffer.receive(0, bytes(0, 11), true), refused)
})

test('a peer that leaves more gaps than it may is in breach', () => {
  const { buffer, budget } = createBuffer(3)
  for (const offset of [2, 4, 6]) buffer.receive(offset, bytes(offset, offset + 1), false)
  assert.throws(() => buffer.receive(8, bytes(8, 9), false), { code: TRANSPORT_ERROR.internalError })
  buffer.skip(9, false)
  assert.equal(budget.count, 0, 'what is dropped is given back to the budget')
})

test('pieces that overlap in every way are kept once', () => {
  const { buffer, budget } = createBuffer()
  buffer.receive(10, bytes(10, 20), false)
  buffer.receive(30, bytes(30, 40), false)
  buffer.receive(5, bytes(5, 45), false)
  buffer.receive(12, bytes(12, 18), false)
  assert.equal(budget.count, 5)
  buffer.receive(0, bytes(0, 6), false)
  assert.deepEqual(readAll(buffer), bytes(0, 45))
  assert.equal(budget.count, 0)
})

test('in whatever order, overlap and repetition pieces come, the sequence is whole', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = new SeededRandom(seed)
    const { buffer, budget } = createBuffer(1000)
    const size = 500
    const got: Uint8Array[] = []
    for (let step = 0; step < 5000 && buffer.readOffset < size; step++) {
      const from = random.below(size)
      const to = Math.min(size, from + random.below(40))
      buffer.receive(from, bytes(from, to), to === size)
      if (random.chance(0.5)) got.push(readAll(buffer))
    }
    got.push(readAll(buffer))
    assert.deepEqual(new Uint8Array(Buffer.concat(got)), bytes(0, size), `seed ${seed}`)
    assert.equal(budget.count, 0)
  }
})
