import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BATCH_KIND } from '../../../../src/log/core/batch-header.ts'
import { createArea } from '../../../../src/log/core/byte-area.ts'
import { GROUP_HEADER_SIZE } from '../../../../src/log/core/journal-format.ts'
import { PendingBatch } from '../../../../src/log/core/pending-batch.ts'
import { bodyChecksum } from '../../../../src/log/io/checksum.ts'
import { GroupBuilder } from '../../../../src/log/io/group-buffer.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'

const owner = { written: () => true, keptInMemory: () => {}, writtenBefore: () => true, synced: () => {} }

const batchAt = (baseOffset: bigint): PendingBatch => {
  const times = { appendTimeUs: 1n, baseOriginUs: 1n }
  const fields = { ...times, count: 1, baseOffset, key: 1, kind: BATCH_KIND.data, flags: 0 }
  return new PendingBatch(owner, fields, baseOffset + 1n, null)
}

test('the CRC of a group is that of its bytes, whatever the sizes of its batches', () => {
  const random = new SeededRandom(5)
  for (let round = 0; round < 100; round++) {
    const builder = new GroupBuilder(createArea(200_000), random.below(64) * 8, 1)
    const count = 1 + random.below(6)
    for (let index = 0; index < count; index++) {
      const records = Uint8Array.from(
        { length: random.below(2) === 0 ? random.below(300) : random.below(30_000) },
        () => random.below(256),
      )
      builder.add(batchAt(BigInt(index)), records, undefined, bodyChecksum)
    }
    builder.sealBatches(random.below(2 ** 32))
    const expected = bodyChecksum(builder.area.bytes, builder.start + GROUP_HEADER_SIZE, builder.end, 0)
    assert.equal(builder.bodyCrc(bodyChecksum), expected, `round ${round}: ${builder.batches.map(({ size }) => size)}`)
  }
})
