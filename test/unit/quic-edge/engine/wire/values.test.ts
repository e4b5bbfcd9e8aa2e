import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QuicError, TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { Reader } from '../../../../../src/quic-edge/engine/wire/reader.ts'
import { VARINT_MAX, varintSize } from '../../../../../src/quic-edge/engine/wire/varint.ts'
import { Writer } from '../../../../../src/quic-edge/engine/wire/writer.ts'

const bytes = (hex: string) => Uint8Array.fromHex(hex)

/** RFC 9000 appendix A.1. */
const SAMPLES = [
  ['c2197c5eff14e88c', Number(151_288_809_941_952_652n)],
  ['9d7f3e7d', 494_878_333],
  ['7bbd', 15_293],
  ['25', 37],
] as const

test('variable-length integers read as in the samples of RFC 9000, and near the value past 2^53', () => {
  for (const [hex, value] of SAMPLES) {
    const reader = new Reader(bytes(hex))
    assert.equal(reader.varint(), value)
    assert.equal(reader.left, 0)
  }
  assert.equal(new Reader(bytes('4025')).varint(), 37, 'a longer form than needed')
  assert.equal(new Reader(bytes('c01fffffffffffff')).varint(), Number.MAX_SAFE_INTEGER)
  assert.equal(new Reader(bytes('d000000000000000')).varint(), 2 ** 60)
  assert.equal(new Reader(bytes('ffffffffffffffff')).varint(), VARINT_MAX)
})

test('variable-length integers are written in their shortest form and read again', () => {
  const edges = [0, 63, 64, 16_383, 16_384, 2 ** 30 - 1, 2 ** 30, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 5, 2 ** 53 - 1]
  for (const value of edges) {
    const writer = new Writer(new Uint8Array(8))
    writer.varint(value)
    assert.equal(writer.writtenView.length, varintSize(value))
    assert.equal(new Reader(writer.writtenView).varint(), value)
  }
  assert.deepEqual(edges.map(varintSize), [1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 8])
})

test('numbers, bytes and vectors of every size read as they were written', () => {
  const writer = new Writer(new Uint8Array(64), 3)
  writer.u8(0xfe)
  writer.u16(0xfedc)
  writer.u24(0xfedcba)
  writer.u32(0xfedcba98)
  writer.varint2(5)
  writer.bytes(bytes('02aabb0002aabb000002aabb'))
  writer.zeros(2)
  const reader = new Reader(writer.writtenView)
  assert.deepEqual([reader.u8(), reader.u16(), reader.u24(), reader.u32()], [0xfe, 0xfedc, 0xfedcba, 0xfedcba98])
  assert.equal(reader.varint(), 5)
  for (const part of [reader.vector8(), reader.vector16(), reader.vector24()]) {
    assert.deepEqual(part.rest(), bytes('aabb'))
    assert.equal(part.left, 0)
  }
  assert.deepEqual(reader.rest(), bytes('0000'))
})

test('nothing is read past the end, of the bytes or of a part', () => {
  const isTruncated = (error: unknown) =>
    error instanceof QuicError && error.code === TRANSPORT_ERROR.frameEncodingError
  const reads: ((reader: Reader) => unknown)[] = [
    (reader) => reader.u8(),
    (reader) => reader.u16(),
    (reader) => reader.u24(),
    (reader) => reader.u32(),
    (reader) => reader.take(1),
    (reader) => reader.part(1),
    (reader) => reader.varint(),
    (reader) => reader.vector8(),
  ]
  for (const read of reads) {
    assert.throws(() => read(new Reader(bytes(''))), isTruncated)
    // What follows a part must not complete it.
    assert.throws(() => read(new Reader(bytes('00ffff'), 1, 1)), isTruncated)
  }
  for (const hex of ['40', '80ffff', 'c0ffffffffffff']) {
    assert.throws(() => new Reader(bytes(hex)).varint(), isTruncated)
    assert.throws(() => new Reader(bytes(`${hex}ff`), 0, hex.length / 2).varint(), isTruncated)
  }
  assert.throws(() => new Reader(bytes('02aa')).vector8(), isTruncated)
  assert.throws(() => new Reader(bytes('000200')).vector16(), isTruncated)
  assert.throws(() => new Reader(bytes('00000200')).vector24(), isTruncated)
})

test('a writer that ran over its end says so before its bytes are used', () => {
  const writer = new Writer(new Uint8Array(8), 0, 3)
  writer.u32(1)
  assert.throws(() => writer.writtenView, /within its buffer/)
  writer.position = 2
  assert.equal(writer.writtenView.length, 2)
  assert.equal(writer.left, 1)
})
