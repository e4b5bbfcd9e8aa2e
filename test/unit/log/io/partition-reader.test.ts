/** Looking for a time among the segments of a partition: few of them are looked into, also where some cannot be read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JournalIndex } from '../../../../src/log/core/journal-index.ts'
import { SegmentIndex } from '../../../../src/log/core/segment-index.ts'
import { PartitionReader } from '../../../../src/log/io/partition-reader.ts'
import { Segment } from '../../../../src/log/io/segment.ts'
import { indexOf } from '../../../support/segment-index.ts'

const COUNT = 1000

interface World {
  /** @returns the base offset of the segment in which the answer is looked for. */
  readonly lookFor: (timeUs: number) => Promise<bigint | undefined>
  lookCount: number
}

/** Segments of one block each: number n begins with offset n, at n times 10 µs. */
function partitionOf(count: number, isReadable: (number: number) => boolean = () => true): World {
  const segments = Array.from({ length: count }, (_, number) => {
    const segment = new Segment({ directory: 'p', baseOffset: BigInt(number), runNumber: number, seed: 7 })
    segment.endOffset = BigInt(number + 1)
    return segment
  })
  let found: bigint | undefined
  const files = {
    index({ baseOffset }: Segment): SegmentIndex {
      world.lookCount++
      if (!isReadable(Number(baseOffset))) return new SegmentIndex()
      return indexOf([{ baseOffset, firstTimeUs: baseOffset * 10n, position: 64, recordCount: 1 }])
    },
    blocks: {
      decoded: () => undefined,
      load: async ({ baseOffset }: Segment) => {
        found = baseOffset
      },
    },
  }
  const reader = new PartitionReader({} as never, files as never)
  const world: World = {
    lookCount: 0,
    lookFor: async (timeUs) => {
      found = undefined
      const end = BigInt(count)
      const rest = { idSeed: 0n, index: new JournalIndex(), externals: new Map(), damaged: () => {} }
      await reader.offsetAt({ ...rest, segments, segmentEnd: end }, BigInt(timeUs), 0n, end)
      return found
    },
  }
  return world
}

test('a time is found without a look into every segment', async () => {
  const world = partitionOf(COUNT)
  for (const number of [0, 1, 17, 500, COUNT - 1]) {
    world.lookCount = 0
    assert.equal(await world.lookFor(number * 10 + 5), BigInt(number))
    assert.ok(world.lookCount <= 12, `${world.lookCount} segments were looked into`)
  }
  assert.equal(await world.lookFor(0), undefined)
})

test('segments that cannot be read are passed over', async () => {
  const isReadable = (number: number): boolean => number % 3 === 0 && (number < 6 || number > 12)
  const world = partitionOf(20, isReadable)
  for (let timeUs = 1; timeUs < 200; timeUs++) {
    const last = Array.from({ length: 20 }, (_, number) => number).findLast(
      (each) => isReadable(each) && each * 10 < timeUs,
    )
    assert.equal(await world.lookFor(timeUs), last === undefined ? undefined : BigInt(last), `at ${timeUs}`)
  }
})
