/**
 * Compression of block bodies. Compressing runs on the pool: zstd level 1 costs 0.3 µs a message here and half a megabyte of
 * working memory each time it starts, so it never runs per append. A usual block is decompressed at once, into the place
 * where it is kept: that takes the event loop 40 µs, the way to the pool and back would take it 100.
 */
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { isWorthwhile } from '../core/repack-plan.ts'
import { BLOCK_CODEC } from '../core/segment-format.ts'
import { createZstdDecoder, outputOf } from './zstd-decoder.ts'
import { MAX_FRAME_SIZE, ZstdFrames } from './zstd-frames.ts'

export interface EncodedBlock {
  readonly codec: number
  readonly bytes: Uint8Array
}

export interface BlockCodec {
  /** Compressed, or the bytes themselves where that does not pay; they must not change until then. */
  encode(rawBytes: Uint8Array): Promise<EncodedBlock>
  /** On the pool. @throws any error when the bytes are not what `encode` made; never more than `rawSize` bytes are allocated. */
  decode(block: EncodedBlock, rawSize: number): Promise<Uint8Array>
  /** Fills `target` before it returns. @throws any error when the bytes are not what `encode` made of so many. */
  decodeInto(block: EncodedBlock, target: Uint8Array): void
}

/** A larger block is decompressed on the pool: it would hold the event loop up. */
export const MAX_SIZE_AT_ONCE = MAX_FRAME_SIZE
const LEVEL = 1
const frames = new ZstdFrames(LEVEL)
const decompressInto = createZstdDecoder()

export const zstdCodec: BlockCodec = {
  async encode(rawBytes) {
    const compressed = await (rawBytes.length <= MAX_FRAME_SIZE ? frames.compress(rawBytes) : compressAlone(rawBytes))
    if (!isWorthwhile(rawBytes.length, compressed.length)) return { codec: BLOCK_CODEC.plain, bytes: rawBytes }
    return { codec: BLOCK_CODEC.zstd, bytes: compressed }
  },
  async decode({ codec, bytes }, rawSize) {
    if (codec === BLOCK_CODEC.plain) return bytes
    return new Promise((resolve, reject) => {
      zstdDecompress(bytes, outputOf(rawSize), (error, raw) => (error === null ? resolve(raw) : reject(error)))
    })
  },
  decodeInto({ codec, bytes }, target) {
    if (codec === BLOCK_CODEC.plain) fillPlain(bytes, target)
    else decompressInto(bytes, target)
  },
}

function fillPlain(bytes: Uint8Array, target: Uint8Array): void {
  if (bytes.length !== target.length) throw new Error(`expected ${target.length} bytes, found ${bytes.length}`)
  target.set(bytes)
}

function compressAlone(rawBytes: Uint8Array): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const params = { [constants.ZSTD_c_compressionLevel]: LEVEL }
    zstdCompress(rawBytes, { params }, (error, compressed) => (error === null ? resolve(compressed) : reject(error)))
  })
}

/** Stores everything plain; deterministic, for simulations. */
export const plainCodec: BlockCodec = {
  encode: (rawBytes) => Promise.resolve({ codec: BLOCK_CODEC.plain, bytes: rawBytes }),
  decode: ({ bytes }) => Promise.resolve(bytes),
  decodeInto: ({ bytes }, target) => fillPlain(bytes, target),
}
