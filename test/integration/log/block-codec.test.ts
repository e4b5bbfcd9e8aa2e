import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import { BLOCK_CODEC } from '../../../src/log/core/segment-format.ts'
import { zstdCodec } from '../../../src/log/io/block-codec.ts'
import { createNativeDecoder, decompressByZlib } from '../../../src/log/io/zstd-decoder.ts'
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

const native = createNativeDecoder() ?? assert.fail('the zstd of this Node cannot be called')

for (const [name, decompress] of [
  ['called by ffi', native],
  ['by zlib', decompressByZlib],
] as const) {
  test(`${name}: a block goes where it is kept, and nothing beside it is touched`, async () => {
    for (const size of [1, 63, 65_536, MAX_FRAME_SIZE]) {
      const raw = readings(size, 5)
      const memory = new Uint8Array(size + 32).fill(0xee)
      decompress(await new ZstdFrames(1).compress(raw), memory.subarray(16, 16 + size))
      assert.deepEqual(memory.subarray(16, 16 + size), raw)
      for (const side of [memory.subarray(0, 16), memory.subarray(16 + size)])
        assert.deepEqual(side, new Uint8Array(16).fill(0xee))
    }
  })

  test(`${name}: what is damaged, cut, longer or shorter than its place is refused, and the next block comes`, async () => {
    const raw = readings(65_536, 3)
    const compressed = await new ZstdFrames(1).compress(raw)
    const memory = new Uint8Array(raw.length + 100).fill(0xee)
    const into = (size: number) => memory.subarray(50, 50 + size)
    assert.throws(() => decompress(compressed, into(raw.length - 1)), /zstd|larger|Larger|buffer/i)
    assert.throws(() => decompress(compressed, into(raw.length + 1)), /zstd: expected 65537 bytes, found 65536/)
    assert.throws(() => decompress(compressed.subarray(0, compressed.length - 5), into(raw.length)))
    for (let at = 0; at < compressed.length; at += 7) {
      const damaged = new Uint8Array(compressed)
      damaged[at] = (damaged[at] ?? 0) ^ 0x55
      try {
        decompress(damaged, into(raw.length))
      } catch (error) {
        assert.ok(error instanceof Error)
      }
    }
    assert.deepEqual(memory.subarray(0, 50), new Uint8Array(50).fill(0xee))
    assert.deepEqual(memory.subarray(51 + raw.length), new Uint8Array(49).fill(0xee))
    decompress(compressed, into(raw.length))
    assert.deepEqual(into(raw.length), raw)
  })
}
