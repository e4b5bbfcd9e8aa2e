import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readAckFrame, writeAckFrame } from '../../../../../src/quic-edge/engine/connection/ack-frame.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { RangeSet } from '../../../../../src/quic-edge/engine/wire/range-set.ts'
import { Reader } from '../../../../../src/quic-edge/engine/wire/reader.ts'
import { Writer } from '../../../../../src/quic-edge/engine/wire/writer.ts'

function setOf(...ranges: readonly (readonly [number, number])[]): RangeSet {
  const set = new RangeSet()
  for (const [first, last] of ranges) set.add(first, last)
  return set
}

test('ranges are read as they were written', () => {
  const writer = new Writer(new Uint8Array(100))
  assert.ok(writeAckFrame(writer, setOf([0, 3], [7, 7], [100, 20_000]), 77))
  const reader = new Reader(writer.writtenView)
  assert.equal(reader.varint(), 0x02)
  assert.deepEqual(readAckFrame(reader, false), {
    largest: 20_000,
    encodedDelay: 77,
    bounds: [100, 20_000, 7, 7, 0, 3],
  })
  assert.equal(reader.left, 0)
})

test('as many of the highest ranges are written as fit, none where not even one does', () => {
  const received = setOf([0, 0], [2, 2], [4, 4], [6, 6])
  const writer = new Writer(new Uint8Array(9))
  assert.ok(writeAckFrame(writer, received, 0))
  const reader = new Reader(writer.writtenView, 1)
  assert.deepEqual(readAckFrame(reader, false).bounds, [6, 6, 4, 4, 2, 2])
  assert.equal(writeAckFrame(new Writer(new Uint8Array(4)), received, 0), false)
})

test('at most 32 ranges are told', () => {
  const received = new RangeSet()
  for (let number = 0; number < 200; number += 2) received.add(number, number)
  const writer = new Writer(new Uint8Array(1000))
  writeAckFrame(writer, received, 0)
  assert.equal(readAckFrame(new Reader(writer.writtenView, 1), false).bounds.length, 64)
})

test('counts of congestion marks are passed over', () => {
  const reader = new Reader(Uint8Array.of(5, 0, 0, 5, 1, 2, 3, 0xaa))
  assert.deepEqual(readAckFrame(reader, true).bounds, [0, 5])
  assert.equal(reader.left, 1)
})

test('ranges below 0 are refused', () => {
  const refused = { code: TRANSPORT_ERROR.frameEncodingError }
  assert.throws(() => readAckFrame(new Reader(Uint8Array.of(5, 0, 0, 6)), false), refused)
  assert.throws(() => readAckFrame(new Reader(Uint8Array.of(5, 0, 1, 2, 2, 0)), false), refused)
})

test('a number of ranges that the frame does not have ends with the frame', () => {
  assert.throws(() => readAckFrame(new Reader(Uint8Array.of(5, 0, 0xbf, 0xff, 0xff, 0xff, 0)), false))
})
