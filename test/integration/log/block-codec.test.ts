import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import { BLOCK_CODEC } from '../../../src/log/core/segment-format.ts'
import { zstdCodec } from '../../../src/log/io/block-codec.ts'
import { MAX_FRAME_SIZE, ZstdFrames } from '../../../src/log/io/zstd-frames.ts'

const readings = (size: number, seed: number): Uint8Array =>
  new Uint8Array(Buffer.alloc(size, `{"sensor":${seed},"value":21.5}`)).map((byte, at) =>
    at % 97 === 0 ? seed + at : byte,
  )

test('pieces that are given at the same time become a frame each, in their own promise', async () => {
  const frames = new ZstdFrames(1)
  const pieces = Array.from({ length: 20 }, (_, seed) => readings(1 + seed * 7000, seed))
  const compressed = await Promise.all(pieces.map((piece) => frames.compress(piece)))
  for (const [at, bytes] of compressed.entries())
    assert.deepEqual(new Uint8Array(zstdDecompressSync(bytes)), pieces[at])
})

test('the largest piece that does not compress is still one whole frame', async () => {
  const frames = new ZstdFrames(1)
  const piece = new Uint8Array(randomBytes(MAX_FRAME_SIZE))
  for (let round = 0; round < 3; round++) {
    assert.deepEqual(new Uint8Array(zstdDecompressSync(await frames.compress(piece))), piece)
  }
})

test('blocks of any size come back as they were, compressed where it pays', async () => {
  for (const size of [1, 100, 65_536, MAX_FRAME_SIZE, MAX_FRAME_SIZE + 1, 3_000_000]) {
    const raw = readings(size, 7)
    const block = await zstdCodec.encode(raw)
    assert.equal(block.codec, size > 1 ? BLOCK_CODEC.zstd : BLOCK_CODEC.plain)
    assert.deepEqual(new Uint8Array(await zstdCodec.decode(block, size)), raw)
  }
  const noise = new Uint8Array(randomBytes(10_000))
  assert.deepEqual(await zstdCodec.encode(noise), { codec: BLOCK_CODEC.plain, bytes: noise })
})

test('a block that is larger than it says, or cut, is refused', async () => {
  const block = await zstdCodec.encode(readings(65_536, 3))
  await assert.rejects(zstdCodec.decode(block, 65_535))
  await assert.rejects(zstdCodec.decode({ ...block, bytes: block.bytes.subarray(0, block.bytes.length - 5) }, 65_536))
})
