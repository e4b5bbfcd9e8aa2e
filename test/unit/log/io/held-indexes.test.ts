import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SegmentIndex } from '../../../../src/log/core/segment-index.ts'
import { HeldIndexes } from '../../../../src/log/io/held-indexes.ts'
import { Segment } from '../../../../src/log/io/segment.ts'

const ENTRIES_BYTES = 24 * 1000
const MAX_BYTES = 4 * ENTRIES_BYTES

function segmentWithIndex(number: number): Segment {
  const segment = new Segment({ directory: 'p', baseOffset: BigInt(number), runNumber: number, seed: 7 })
  segment.index = new SegmentIndex(new Uint8Array(ENTRIES_BYTES))
  return segment
}

test('however many segments are read, those used last keep their index, up to the bound', () => {
  const held = new HeldIndexes(MAX_BYTES)
  const segments = Array.from({ length: 100 }, (_, number) => segmentWithIndex(number))
  for (const segment of segments) {
    held.use(segment)
    assert.ok(held.sizeBytes <= MAX_BYTES)
  }
  assert.deepEqual(
    segments.filter(({ index }) => index !== undefined),
    segments.slice(-3),
  )
})

test('what is used again stays, and what grows is counted as it is', () => {
  const held = new HeldIndexes(MAX_BYTES)
  const [first, second, third] = [segmentWithIndex(1), segmentWithIndex(2), segmentWithIndex(3)]
  for (const segment of [first, second, first, third]) held.use(segment)
  first.index?.push({ baseOffset: 1n, firstTimeUs: 1n, position: 64, recordCount: 1 })
  held.use(first)
  // It has doubled its room: the one used longest ago goes.
  assert.ok(held.sizeBytes <= MAX_BYTES)
  assert.deepEqual(
    [first, second, third].map(({ index }) => index === undefined),
    [false, true, false],
  )
})

test('one index that is larger than the bound stays while it is in use', () => {
  const held = new HeldIndexes(100)
  const [first, second] = [segmentWithIndex(1), segmentWithIndex(2)]
  held.use(first)
  assert.ok(first.index !== undefined)
  held.use(second)
  assert.equal(first.index, undefined)
})

test('a segment that still grows keeps its index while a closed one has one to give', () => {
  const held = new HeldIndexes(MAX_BYTES)
  const growing = [segmentWithIndex(1), segmentWithIndex(2)]
  for (const segment of growing) held.use(segment)
  for (let number = 3; number < 20; number++) {
    const closed = segmentWithIndex(number)
    closed.isClosed = true
    held.use(closed)
    assert.ok(held.sizeBytes <= MAX_BYTES)
  }
  assert.ok(growing.every(({ index }) => index !== undefined))
  // Of those alone the bound holds as well.
  for (let number = 20; number < 40; number++) {
    held.use(segmentWithIndex(number))
    assert.ok(held.sizeBytes <= MAX_BYTES)
  }
  assert.ok(growing.every(({ index }) => index === undefined))
})

test('segments that are removed as others come take nothing', () => {
  const held = new HeldIndexes(MAX_BYTES)
  const kept = segmentWithIndex(0)
  held.use(kept)
  const { sizeBytes } = held
  for (let number = 1; number <= 100; number++) {
    const segment = segmentWithIndex(number)
    held.use(segment)
    held.forget(segment)
    assert.equal(held.sizeBytes, sizeBytes)
  }
  assert.ok(kept.index !== undefined)
  // A reader may still be at it.
  const late = segmentWithIndex(101)
  held.use(late)
  held.forget(late)
  held.use(late)
  assert.equal(held.sizeBytes, 2 * sizeBytes)
})
