import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { EdgeError } from '../../../../src/errors.ts'
import { alignUp, createArea } from '../../../../src/log/core/byte-area.ts'
import { crc32 } from '../../../../src/log/core/checksum.ts'
import {
  BLOCK_ALIGNMENT,
  BLOCK_CODEC,
  BLOCK_HEADER_SIZE,
  encodeBlockHeader,
} from '../../../../src/log/core/segment-format.ts'
import { type BlockCodec, MAX_SIZE_AT_ONCE, plainCodec } from '../../../../src/log/io/block-codec.ts'
import { BlockLoader, type BlockRange, MAX_RUN_BLOCKS, MAX_RUN_SIZE } from '../../../../src/log/io/block-loader.ts'
import { bodyChecksum } from '../../../../src/log/io/checksum.ts'
import type { LogFile } from '../../../../src/log/io/file-system.ts'
import { Segment } from '../../../../src/log/io/segment.ts'
import { systemScheduler } from '../../../../src/log/scheduler.ts'

const SEED = 7
const KIB = 1024
/** What the kernel cannot read, or has at hand, by position. */
type Part = (position: number, end: number) => boolean

class BlockFile {
  readonly segment = new Segment({ directory: 'p', baseOffset: 0n, runNumber: 1, seed: SEED })
  readonly ranges: [BlockRange, ...BlockRange[]]
  readonly bytes: Uint8Array
  reads: [position: number, end: number][] = []
  unreadable: Part = () => false
  isAtHand: Part = () => false

  constructor(sizes: readonly number[]) {
    const lengthOf = (size: number): number => alignUp(BLOCK_HEADER_SIZE + size, BLOCK_ALIGNMENT)
    const area = createArea(sizes.reduce((sum, size) => sum + lengthOf(size), 0))
    this.bytes = area.bytes
    this.segment.sizeBytes = area.bytes.length
    let position = 0
    const ranges: BlockRange[] = []
    for (const [index, size] of sizes.entries()) {
      const bodyAt = position + BLOCK_HEADER_SIZE
      area.bytes.fill(index + 1, bodyAt, bodyAt + size)
      const header = {
        position,
        previousPosition: 0,
        runNumber: 1,
        codec: BLOCK_CODEC.plain,
        rawSize: size,
        storedSize: size,
        bodyCrc: crc32(area.bytes, bodyAt, bodyAt + size, 0),
        batchCount: 1,
        flags: 0,
        baseOffset: BigInt(index),
        endOffset: BigInt(index + 1),
        firstTimeUs: 0n,
        lastTimeUs: 0n,
        boot: 1,
        recordCount: 1,
      }
      encodeBlockHeader(area, position, header, SEED)
      const end = position + lengthOf(size)
      ranges.push({ position, end: index + 1 < sizes.length ? end : undefined })
      position = end
    }
    const [first, ...others] = ranges
    assert.ok(first !== undefined)
    this.ranges = [first, ...others]
  }

  loader(decodedBlocks: number, codec: BlockCodec = plainCodec): BlockLoader {
    const file = () => this.#handle()
    return new BlockLoader({
      file,
      scheduler: systemScheduler,
      checksum: bodyChecksum,
      codec,
      decodedBlocks,
    })
  }

  #handle(): LogFile {
    const read = (target: Uint8Array, position: number): number => {
      const part = this.bytes.subarray(position, position + target.length)
      target.set(part)
      return part.length
    }
    return {
      size: () => this.bytes.length,
      read,
      readAtHand: (target, position) =>
        this.isAtHand(position, position + target.length) && read(target, position) === target.length,
      readLater: async (target, position) => {
        this.reads.push([position, position + target.length])
        await null
        if (this.unreadable(position, position + target.length)) {
          throw new EdgeError('EDGE_IO', 'cannot be read', { details: { code: 'EIO' } })
        }
        return read(target, position)
      },
      write: () => assert.fail('nothing is written'),
      datasync: () => assert.fail('nothing is synced'),
      truncate: () => assert.fail('nothing is cut'),
      close: () => undefined,
    }
  }
}

/** What a load hands out, copied; or the code that it fails with. */
async function loaded(loader: BlockLoader, file: BlockFile, from: number, count = 1): Promise<Uint8Array | string> {
  const [first, ...others] = file.ranges.slice(from, from + count)
  assert.ok(first !== undefined)
  let found: Uint8Array | undefined
  try {
    await loader.load(file.segment, [first, ...others], (rawView) => {
      found = rawView.slice()
    })
  } catch (error) {
    return error instanceof EdgeError ? error.code : String(error)
  }
  return found ?? 'nothing'
}

/** A run begins in the next turn and decodes a block in each. */
async function settled(): Promise<void> {
  for (let turn = 0; turn <= MAX_RUN_BLOCKS; turn++) await setImmediate()
}

const isThere = (loader: BlockLoader, file: BlockFile): boolean[] =>
  file.ranges.map(({ position }) => loader.decoded(file.segment, position) !== undefined)

test('blocks that lie one behind the other come with one read', async () => {
  const file = new BlockFile([100, 200, 300, 400])
  const loader = file.loader(16)
  assert.deepEqual(await loaded(loader, file, 0, 3), new Uint8Array(100).fill(1))
  await settled()
  assert.deepEqual(file.reads, [[0, file.ranges[3]?.position]])
  assert.deepEqual(isThere(loader, file), [true, true, true, false])
  assert.deepEqual(loader.decoded(file.segment, file.ranges[2]?.position ?? 0), new Uint8Array(300).fill(3))
})

test('what is at hand is not read on the pool, unless it takes long to copy', async () => {
  const file = new BlockFile([100, 200, 300, MAX_RUN_SIZE])
  file.isAtHand = () => true
  const loader = file.loader(16)
  assert.deepEqual(await loaded(loader, file, 0, 2), new Uint8Array(100).fill(1))
  await settled()
  assert.deepEqual(file.reads, [])
  assert.deepEqual(isThere(loader, file), [true, true, false, false])
  const last = file.ranges[3]?.position
  assert.deepEqual(await loaded(loader, file, 3), new Uint8Array(MAX_RUN_SIZE).fill(4))
  assert.deepEqual(file.reads, [[last, file.bytes.length]])
})

test('the first of a run is there a turn before the others', async () => {
  const file = new BlockFile([100, 200, 300, 400])
  const loader = file.loader(16)
  await loaded(loader, file, 0, 3)
  assert.deepEqual(isThere(loader, file), [true, false, false, false])
  // Who comes for one of them meanwhile gets it, and nothing is read twice.
  assert.deepEqual(await loaded(loader, file, 1, 2), new Uint8Array(200).fill(2))
  assert.equal(file.reads.length, 1)
})

test('what one cannot read costs its own block alone', async () => {
  const file = new BlockFile([100, 200, 300, 400])
  const loader = file.loader(16)
  const bad = file.ranges[1]?.position ?? 0
  file.unreadable = (position, end) => position <= bad && bad < end
  assert.deepEqual(await loaded(loader, file, 0, 3), new Uint8Array(100).fill(1))
  await settled()
  assert.deepEqual(isThere(loader, file), [true, false, true, false])
  assert.equal(await loaded(loader, file, 1), 'EDGE_IO')
})

test('a damaged block costs itself alone, also while others wait for it', async () => {
  const file = new BlockFile([100, 200, 300, 400])
  const loader = file.loader(16)
  file.bytes[(file.ranges[1]?.position ?? 0) + BLOCK_HEADER_SIZE] = 99
  const results = await Promise.all([0, 1, 2].map((from) => loaded(loader, file, from, 3)))
  assert.deepEqual(results, [new Uint8Array(100).fill(1), 'EDGE_BATCH_CORRUPT', new Uint8Array(300).fill(3)])
  assert.equal(file.reads.length, 1)
})

test('a large block is decoded on the pool, and kept where it fits', async () => {
  const large = MAX_SIZE_AT_ONCE + 1
  const file = new BlockFile([MAX_SIZE_AT_ONCE, large, 3 * large])
  const onPool: number[] = []
  const codec: BlockCodec = {
    ...plainCodec,
    decode: (block, rawSize) => {
      onPool.push(rawSize)
      return plainCodec.decode(block, rawSize)
    },
  }
  const loader = file.loader(32, codec)
  for (const [index, size] of [MAX_SIZE_AT_ONCE, large, 3 * large].entries())
    assert.deepEqual(await loaded(loader, file, index), new Uint8Array(size).fill(index + 1))
  assert.deepEqual(onPool, [large, 3 * large])
  assert.deepEqual(isThere(loader, file), [true, true, true])
  const small = file.loader(16, codec)
  assert.deepEqual(await loaded(small, file, 2), new Uint8Array(3 * large).fill(3))
  assert.deepEqual(isThere(small, file), [false, false, false], 'more than half of what is kept')
})

test('a block whose end only its header says is read alone', async () => {
  const file = new BlockFile([100, 200])
  const loader = file.loader(16)
  await loaded(loader, file, 0, 2)
  assert.deepEqual(isThere(loader, file), [true, false])
  assert.deepEqual(await loaded(loader, file, 1), new Uint8Array(200).fill(2))
})

test('one read takes no more than a quarter of the decoded blocks, and no more than 256 KiB', async () => {
  const few = new BlockFile(Array.from({ length: 8 }, () => 100))
  const fewBlocks = few.loader(8)
  await loaded(fewBlocks, few, 0, 8)
  await settled()
  assert.equal(isThere(fewBlocks, few).filter(Boolean).length, 2)

  const large = new BlockFile(Array.from({ length: 8 }, () => 60 * KIB))
  const manyBlocks = large.loader(64)
  await loaded(manyBlocks, large, 0, 8)
  await settled()
  assert.equal(isThere(manyBlocks, large).filter(Boolean).length, 4)
})

test('reading ahead begins behind what is there, and ends before what is there', async () => {
  const file = new BlockFile(Array.from({ length: 8 }, () => 100))
  const loader = file.loader(32)
  await loaded(loader, file, 0, 2)
  await loaded(loader, file, 4)
  await settled()
  file.reads = []
  loader.readAhead(file.segment, file.ranges)
  await settled()
  assert.deepEqual(file.reads, [[file.ranges[2]?.position, file.ranges[4]?.position]])
  assert.deepEqual(isThere(loader, file).slice(0, 5), [true, true, true, true, true])
})

test('no more than two reads ahead run at once', async () => {
  const file = new BlockFile(Array.from({ length: 8 }, () => 100))
  const loader = file.loader(16)
  for (const range of file.ranges.slice(0, 7)) loader.readAhead(file.segment, [range])
  assert.equal(file.reads.length, 0, 'the reader is answered first')
  await settled()
  assert.equal(file.reads.length, 2)
  loader.readAhead(file.segment, file.ranges.slice(3, 4))
  await settled()
  assert.equal(file.reads.length, 3)
})

test('what was to be read ahead is not, when the reader had to load it meanwhile or the store is closed', async () => {
  const file = new BlockFile([100, 200, 300, 400])
  const loader = file.loader(16)
  loader.readAhead(file.segment, file.ranges.slice(0, 1))
  await loaded(loader, file, 0)
  await settled()
  assert.equal(file.reads.length, 1)
  loader.readAhead(file.segment, file.ranges.slice(1, 2))
  loader.close()
  await settled()
  assert.equal(file.reads.length, 1)
})

test('where readers are too many for what is read ahead, it becomes less', async () => {
  const size = 64 * KIB
  const file = new BlockFile(Array.from({ length: 14 }, () => size))
  // Room for eight, and a read takes two.
  const loader = file.loader(8)
  loader.readAhead(file.segment, file.ranges.slice(0, 2))
  await settled()
  assert.equal(file.reads.length, 1)
  // Nobody comes for them, and others take their place.
  for (let from = 4; from < 12; from++) await loaded(loader, file, from)
  file.reads = []
  loader.readAhead(file.segment, file.ranges.slice(0, 2))
  await settled()
  assert.deepEqual(file.reads, [[0, file.ranges[1]?.position]])
  // It is used this time.
  assert.notEqual(loader.decoded(file.segment, 0), undefined)
  loader.readAhead(file.segment, file.ranges.slice(1, 3))
  await settled()
  assert.deepEqual(file.reads[1], [file.ranges[1]?.position, file.ranges[3]?.position])
})
