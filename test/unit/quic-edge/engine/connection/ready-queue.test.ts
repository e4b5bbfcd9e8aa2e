import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReadyQueue } from '../../../../../src/quic-edge/engine/connection/ready-queue.ts'

/** Bytes that lie in a packet of their own. */
function inPacket(packetSize: number, size: number, value: number): Uint8Array {
  return new Uint8Array(packetSize).fill(value).subarray(10, 10 + size)
}

test('pieces are given as they came to who reads at once; small ones behind others do not hold their packets', () => {
  const queue = new ReadyQueue()
  const small = inPacket(1200, 5, 1)
  queue.append(small)
  assert.equal(queue.take(), small)
  const large = inPacket(1200, 1100, 1)
  queue.append(large)
  queue.append(inPacket(1200, 5, 2))
  assert.equal(queue.size, 1105)
  assert.equal(queue.take(), large)
  const packed = queue.take()
  assert.deepEqual(packed, new Uint8Array(5).fill(2))
  assert.equal(packed?.buffer.byteLength, 2048)
  assert.equal(queue.take(), null)
  assert.equal(queue.size, 0)
})

test('a backlog of one-byte pieces is held in little more than its bytes, in few objects', () => {
  const queue = new ReadyQueue()
  const count = 10_000
  for (let index = 0; index < count; index++) queue.append(inPacket(1200, 1, index & 0xff))
  const held = new Set<ArrayBufferLike>()
  const got: number[] = []
  let pieces = 0
  for (let piece = queue.take(); piece !== null; piece = queue.take()) {
    held.add(piece.buffer)
    got.push(...piece)
    pieces++
  }
  const heldBytes = [...held].reduce((sum, buffer) => sum + buffer.byteLength, 0)
  assert.deepEqual(
    got,
    Array.from({ length: count }, (_, index) => index & 0xff),
  )
  assert.ok(pieces < 20, `${pieces} pieces`)
  assert.ok(heldBytes < count * 1.3, `${heldBytes} bytes held`)
})

test('large and small pieces in turn hold three times their bytes at most', () => {
  const queue = new ReadyQueue()
  for (let index = 0; index < 500; index++) queue.append(inPacket(1200, index % 2 === 0 ? 1024 : 1, index & 0xff))
  const size = queue.size
  const held = new Set<ArrayBufferLike>()
  for (let piece = queue.take(); piece !== null; piece = queue.take()) held.add(piece.buffer)
  const heldBytes = [...held].reduce((sum, buffer) => sum + buffer.byteLength, 0)
  assert.ok(heldBytes <= size * 3.2, `${heldBytes} for ${size}`)
})

test('what was read is not changed by what comes later', () => {
  const queue = new ReadyQueue()
  for (let index = 0; index < 12; index++) queue.append(inPacket(1200, 1, 1))
  const first: Uint8Array[] = []
  for (let piece = queue.take(); piece !== null; piece = queue.take()) first.push(piece)
  for (let index = 0; index < 12; index++) queue.append(inPacket(1200, 1, 2))
  assert.ok(first.every((piece) => piece.every((byte) => byte === 1)))
})
