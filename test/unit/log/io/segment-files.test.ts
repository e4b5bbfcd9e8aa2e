/** The index of a segment that is not in memory, read while a repack is closing the file. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BlockFields } from '../../../../src/log/core/repack-plan.ts'
import { BLOCK_CODEC } from '../../../../src/log/core/segment-format.ts'
import type { Segment } from '../../../../src/log/io/segment.ts'
import type { SegmentWriter } from '../../../../src/log/io/segment-writer.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'
import { plainSegmentFiles, plainSegmentWriter } from '../../../support/segment-files.ts'
import { SimDisk } from '../../../support/sim-disk.ts'

const RECORDS_PER_BLOCK = 10

function blockAt(baseOffset: number): BlockFields {
  return {
    rawSize: 64,
    batchCount: 1,
    flags: 0,
    baseOffset: BigInt(baseOffset),
    endOffset: BigInt(baseOffset + RECORDS_PER_BLOCK),
    firstTimeUs: BigInt(baseOffset),
    lastTimeUs: BigInt(baseOffset),
    boot: 1,
    recordCount: RECORDS_PER_BLOCK,
  }
}

test('blocks of a run that is not committed yet are counted once, whoever reads the index meanwhile', async () => {
  const { fileSystem } = new SimDisk(new SeededRandom(1), 1 << 20).mount({ later: () => {} })
  const files = plainSegmentFiles(fileSystem)
  const writerBehind = (active: Segment | undefined): SegmentWriter =>
    plainSegmentWriter({ fileSystem, files, directory: 'p', nextRunNumber: () => 1 }, active)
  const body = { codec: BLOCK_CODEC.plain, bytes: new Uint8Array(64) }
  const first = writerBehind(undefined)
  first.append(blockAt(0), body)
  const [segment] = first.commit()
  assert.ok(segment)
  const second = writerBehind(segment)
  second.append(blockAt(10), body)
  second.append(blockAt(20), body)
  second.roll()
  // Others were used since: it has to be read again.
  segment.index = undefined
  assert.deepEqual([files.index(segment).count, segment.messageCount], [1, RECORDS_PER_BLOCK])
  second.commit()
  const index = files.index(segment)
  assert.deepEqual(
    Array.from({ length: index.count }, (_, number) => index.entry(number)?.baseOffset),
    [0n, 10n, 20n],
  )
  assert.equal(segment.messageCount, 3 * RECORDS_PER_BLOCK)
})
