import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Piece, SendBuffer } from '../../../../../src/quic-edge/engine/connection/send-buffer.ts'
import { Writer } from '../../../../../src/quic-edge/engine/wire/writer.ts'
import { SeededRandom } from '../../../../support/seeded-random.ts'

const bytes = (from: number, to: number): Uint8Array =>
  Uint8Array.from({ length: to - from }, (_, i) => (from + i) & 0xff)

function bytesOf(buffer: SendBuffer, piece: Piece): Uint8Array {
  const writer = new Writer(new Uint8Array(piece.size))
  buffer.write(piece, writer)
  return writer.writtenView
}

function mustTake(buffer: SendBuffer, maxSize: number, maxOffset = Number.POSITIVE_INFINITY): Piece {
  const piece = buffer.take(maxSize, maxOffset)
  assert.ok(piece !== null)
  return piece
}

test('pieces follow each other up to the limit, the last with the end', () => {
  const buffer = new SendBuffer()
  buffer.append(bytes(0, 10))
  buffer.append(bytes(10, 15))
  buffer.end()
  const first = mustTake(buffer, 8)
  assert.deepEqual(first, { offset: 0, size: 8, isEnd: false })
  assert.deepEqual(mustTake(buffer, 8, 12), { offset: 8, size: 4, isEnd: false })
  assert.equal(buffer.hasPiece(12), false)
  assert.equal(buffer.take(8, 12), null)
  const last = mustTake(buffer, 8, 20)
  assert.deepEqual(last, { offset: 12, size: 3, isEnd: true })
  assert.deepEqual(bytesOf(buffer, first), bytes(0, 8))
  assert.deepEqual(bytesOf(buffer, last), bytes(12, 15))
  assert.equal(buffer.take(8, 20), null)
})

test('an end without bytes is a piece of its own, once, and again when it is lost', () => {
  const buffer = new SendBuffer()
  buffer.end()
  const end = mustTake(buffer, 100)
  assert.deepEqual(end, { offset: 0, size: 0, isEnd: true })
  assert.equal(buffer.take(100, 100), null)
  buffer.lose(end)
  assert.ok(buffer.hasPiece(0))
  buffer.acknowledge(mustTake(buffer, 100))
  assert.ok(buffer.isDelivered)
})

test('lost pieces go first, unless they were acknowledged meanwhile', () => {
  const buffer = new SendBuffer()
  buffer.append(bytes(0, 30))
  const [a, b, c] = [mustTake(buffer, 10), mustTake(buffer, 10), mustTake(buffer, 5)]
  buffer.lose(a)
  buffer.lose(b)
  buffer.acknowledge(b)
  assert.deepEqual(mustTake(buffer, 100), { ...a })
  assert.deepEqual(mustTake(buffer, 100), { offset: 25, size: 5, isEnd: false })
  buffer.acknowledge(c)
  buffer.acknowledge(a)
  assert.equal(buffer.bufferedBytes, 5)
  buffer.lose(a)
  assert.equal(buffer.take(100, 100), null, 'what arrived is not sent again')
})

test('a lost piece is cut to what fits', () => {
  const buffer = new SendBuffer()
  buffer.append(bytes(0, 10))
  buffer.end()
  buffer.lose(mustTake(buffer, 100))
  assert.deepEqual(mustTake(buffer, 4), { offset: 0, size: 4, isEnd: false })
  assert.deepEqual(mustTake(buffer, 100), { offset: 4, size: 6, isEnd: true })
})

test('acknowledged pieces that overlap several others join them', () => {
  const buffer = new SendBuffer()
  buffer.append(bytes(0, 30))
  buffer.take(30, 30)
  const piece = (offset: number, size: number) => ({ offset, size, isEnd: false })
  buffer.acknowledge(piece(5, 5))
  buffer.acknowledge(piece(11, 10))
  buffer.acknowledge(piece(0, 15))
  assert.equal(buffer.bufferedBytes, 9)
  buffer.acknowledge(piece(21, 9))
  assert.equal(buffer.bufferedBytes, 0)
})

test('whatever is lost, repeated and acknowledged in whatever order, every byte goes out and is let go', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = new SeededRandom(seed)
    const buffer = new SendBuffer()
    const out: Piece[] = []
    const arrived = new Uint8Array(3000)
    let written = 0
    for (let step = 0; step < 100_000 && !buffer.isDelivered; step++) {
      if (written < arrived.length && random.chance(0.3)) {
        const size = Math.min(arrived.length - written, random.below(200))
        buffer.append(bytes(written, written + size))
        written += size
        if (written === arrived.length) buffer.end()
      }
      const piece = buffer.take(1 + random.below(100), written)
      if (piece !== null) {
        arrived.set(bytesOf(buffer, piece), piece.offset)
        out.push(piece)
      }
      if (out.length > 0 && random.chance(0.7)) {
        const [one] = out.splice(random.below(out.length), 1)
        if (one === undefined) continue
        if (random.chance(0.3)) {
          buffer.lose(one)
          // A probe carried it, and then the packet that seemed lost arrived after all.
          if (random.chance(0.3)) out.push(one)
        } else buffer.acknowledge(one)
      }
    }
    assert.ok(buffer.isDelivered, `seed ${seed}`)
    assert.deepEqual(arrived, bytes(0, arrived.length), `seed ${seed}`)
  }
})
