/** How far blocks count that begin where the journal is damaged. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createArea } from '../../../../src/log/core/byte-area.ts'
import { crc32 } from '../../../../src/log/core/checksum.ts'
import {
  BLOCK_CODEC,
  BLOCK_HEADER_SIZE,
  encodeBlockHeader,
  SEGMENT_HEADER_SIZE,
} from '../../../../src/log/core/segment-format.ts'
import type { LogFile } from '../../../../src/log/io/file-system.ts'
import { type FoundBlocks, intactEnd } from '../../../../src/log/io/segment-extent.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'
import { SimDisk } from '../../../support/sim-disk.ts'

const SEED = 5
const BODY_SIZE = 40

interface Block {
  readonly from: bigint
  readonly end: bigint
  readonly isTorn?: boolean
}

function fileOf(blocks: readonly Block[]): LogFile {
  const { fileSystem } = new SimDisk(new SeededRandom(1), 1 << 20).mount({ later: () => {} })
  const file = fileSystem.open('segment', 'create')
  let position = SEGMENT_HEADER_SIZE
  for (const { from, end, isTorn = false } of blocks) {
    const area = createArea(BLOCK_HEADER_SIZE + BODY_SIZE)
    area.bytes.fill(Number(from), BLOCK_HEADER_SIZE)
    const bodyCrc = crc32(area.bytes, BLOCK_HEADER_SIZE, area.bytes.length, 0) ^ (isTorn ? 1 : 0)
    const sizes = { storedSize: BODY_SIZE, rawSize: BODY_SIZE, codec: BLOCK_CODEC.plain, flags: 0, bodyCrc }
    const range = { baseOffset: from, endOffset: end, recordCount: Number(end - from), batchCount: 1 }
    const times = { firstTimeUs: 1n, lastTimeUs: 1n, boot: 1, runNumber: 1, previousPosition: 0 }
    encodeBlockHeader(area, 0, { ...sizes, ...range, ...times, position }, SEED)
    file.write(area.bytes, position)
    position += area.bytes.length
  }
  return file
}

const block = (from: bigint, end: bigint, isTorn = false): Block => ({ from, end, isTorn })

interface Question {
  readonly first: bigint
  readonly wholeFrom?: bigint
  /** First offsets of what the journal holds. */
  readonly journal?: readonly bigint[]
}

function endOf({ first, wholeFrom, journal = [] }: Question, ...files: readonly (readonly Block[])[]): bigint {
  const found = files.map(
    (blocks, index): FoundBlocks => ({ handle: fileOf(blocks), seed: SEED, endOffset: files[index + 1]?.[0]?.from }),
  )
  const holds = (from: bigint, end: bigint): boolean => journal.some((offset) => from <= offset && offset < end)
  return intactEnd(found, first, { wholeFrom, holds }, crc32)
}

test('blocks count as far as they follow each other, over files, and from the middle of one on', () => {
  const [first, second] = [[block(0n, 10n), block(10n, 20n)], [block(20n, 30n)]]
  assert.equal(endOf({ first: 0n }, first, second), 30n)
  assert.equal(endOf({ first: 14n }, first, second), 30n)
  assert.equal(endOf({ first: 30n }, first, second), 30n)
  assert.equal(endOf({ first: 0n }), 0n)
})

test('they count no further than the journal needs them', () => {
  const blocks = [block(0n, 10n), block(10n, 20n), block(20n, 30n)]
  assert.equal(endOf({ first: 0n, wholeFrom: 15n }, blocks), 15n)
  assert.equal(endOf({ first: 0n, wholeFrom: 20n }, blocks), 20n)
  assert.equal(endOf({ first: 5n, wholeFrom: 5n }, blocks), 5n)
})

test('one whose body is not whole ends them', () => {
  assert.equal(endOf({ first: 0n }, [block(0n, 10n), block(10n, 20n, true), block(20n, 30n)]), 10n)
})

test('a gap ends them where the journal has something in it, and nowhere else', () => {
  const blocks = [block(0n, 10n), block(50n, 60n)]
  assert.equal(endOf({ first: 0n, journal: [0n, 9n, 60n] }, blocks), 60n)
  assert.equal(endOf({ first: 0n, journal: [10n] }, blocks), 10n)
  assert.equal(endOf({ first: 0n, journal: [49n] }, blocks), 10n)
})

test('what lies behind the name of the next file does not count', () => {
  assert.equal(endOf({ first: 0n }, [block(0n, 10n), block(10n, 20n)], [block(10n, 14n)]), 14n)
})

test('one that was packed twice is passed over', () => {
  assert.equal(endOf({ first: 0n }, [block(0n, 10n), block(0n, 10n), block(10n, 12n)]), 12n)
})
