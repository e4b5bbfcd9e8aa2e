/**
 * Compression of block bodies. Compressing runs on the pool: zstd level 1 costs 0.3 µs a message here and half a megabyte of
 * working memory each time it starts, so it never runs per append. A usual block is decompressed at once: that takes the
 * event loop 80 µs, the way to the pool and back would take it 100.
 */
import { constants, zstdCompress, zstdDecompress, zstdDecompressSync } from 'node:zlib'
import { isWorthwhile } from '../core/repack-plan.ts'
import { BLOCK_CODEC } from '../core/segment-format.ts'
import { MAX_FRAME_SIZE, ZstdFrames } from './zstd-frames.ts'

export interface EncodedBlock {
  readonly codec: number
  readonly bytes: Uint8Array
}

export interface BlockCodec {
  /** Compressed, or the bytes themselves where that does not pay; they must not change until then. */
  encode(rawBytes: Uint8Array): Promise<EncodedBlock>
  /** @throws any error when the bytes are not what `encode` made; never more than `rawSize` bytes are allocated. */
  decode(block: EncodedBlock, rawSize: number): Promise<Uint8Array>
}

const LEVEL = 1
/** The least output buffer of Node's zlib. */
const MIN_CHUNK = 64
const frames = new ZstdFrames(LEVEL)

export const zstdCodec: BlockCodec = {
  async encode(rawBytes) {
    const compressed = await (rawBytes.length <= MAX_FRAME_SIZE ? frames.compress(rawBytes) : compressAlone(rawBytes))
    if (!isWorthwhile(rawBytes.length, compressed.length)) return { codec: BLOCK_CODEC.plain, bytes: rawBytes }
    return { codec: BLOCK_CODEC.zstd, bytes: compressed }
  },
  async decode({ codec, bytes }, rawSize) {
    if (codec === BLOCK_CODEC.plain) return bytes
    // One output buffer that takes all, with a byte to spare so that no second one is begun.
    const options = { maxOutputLength: rawSize, chunkSize: Math.max(MIN_CHUNK, rawSize + 1) }
    if (rawSize <= MAX_FRAME_SIZE) return zstdDecompressSync(bytes, options)
    return new Promise((resolve, reject) => {
      zstdDecompress(bytes, options, (error, raw) => (error === null ? resolve(raw) : reject(error)))
    })
  },
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
}
