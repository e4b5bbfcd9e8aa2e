import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type BlockPlace, runFrom } from '../../../../src/log/io/block-place.ts'
import { Segment } from '../../../../src/log/io/segment.ts'
import { indexOf } from '../../../support/segment-index.ts'

/** The first of blocks of one record each, at these positions. */
function placeOf(positions: readonly number[], sizeBytes: number): BlockPlace {
  const segment = new Segment({ directory: 'p', baseOffset: 0n, runNumber: 1, seed: 7 })
  segment.sizeBytes = sizeBytes
  segment.endOffset = BigInt(positions.length)
  const index = indexOf(
    positions.map((position, number) => ({
      baseOffset: BigInt(number),
      firstTimeUs: 0n,
      position,
      recordCount: 1,
    })),
  )
  const entry = index.entry(0)
  assert.ok(entry !== undefined)
  return { segment, entry, index, number: 0, end: 1n, isFirst: true }
}

const endsOf = (place: BlockPlace): unknown => runFrom(place, 10, 10).map(({ end }) => end)

test('a block ends where the next one begins, and the last one with its segment', () => {
  assert.deepEqual(endsOf(placeOf([64, 1000, 2000], 2500)), [1000, 2000, 2500])
})

test('where blocks in between are missing, a block ends where its own header says', () => {
  assert.deepEqual(endsOf(placeOf([64, 9_000_000], 9_000_500)), [undefined, 9_000_500])
  assert.deepEqual(endsOf(placeOf([64, 1000], 9_000_000)), [1000, undefined])
})
