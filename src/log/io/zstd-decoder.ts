/**
 * Decompression into memory that is there, by the zstd that Node carries: called through `node:ffi` with one lasting context
 * it takes 40 µs for 200 KB that compress well. Node's `zlib` makes a stream, a context and a buffer for each block, 65 µs
 * and work for the collector; it does it where this Node has no `node:ffi`, or its zstd cannot be called.
 */
import { zstdDecompressSync } from 'node:zlib'
import { cFunctions } from '../../c-library.ts'
import { discard } from '../../discard.ts'

/** Fills `target` with what the frames hold. @throws {Error} when they are damaged, or hold more or less than that. */
export type DecompressInto = (compressed: Uint8Array, target: Uint8Array) => void

/** The least output buffer of Node's zlib. */
const MIN_CHUNK = 64

/** What decompresses best here. It looks, and makes its context of 160 KB, when it is first used. */
export function createZstdDecoder(): DecompressInto {
  let decompress: DecompressInto | undefined
  return (compressed, target) => {
    decompress ??= createNativeDecoder() ?? decompressByZlib
    decompress(compressed, target)
  }
}

export function createNativeDecoder(): DecompressInto | undefined {
  try {
    const { ZSTD_createDCtx: createContext, ZSTD_decompressDCtx: decompress } = cFunctions({
      ZSTD_createDCtx: { arguments: [], return: 'pointer' },
      ZSTD_decompressDCtx: { arguments: ['pointer', 'buffer', 'u64', 'buffer', 'u64'], return: 'u64' },
    })
    const context = createContext()
    if (context === 0n) return undefined
    return (compressed, target) => {
      const room = BigInt(target.length)
      const size = decompress(context, target, room, compressed, BigInt(compressed.length))
      // Codes of errors are larger than any size.
      if (size !== room) throw unlike(target, size)
    }
  } catch {
    return undefined
  }
}

/** Options of `zlib` for one output buffer that takes all, with a byte to spare so that no second one is begun. */
export function outputOf(rawSize: number): { readonly maxOutputLength: number; readonly chunkSize: number } {
  return { maxOutputLength: rawSize, chunkSize: Math.max(MIN_CHUNK, rawSize + 1) }
}

export const decompressByZlib: DecompressInto = (compressed, target) => {
  const raw = zstdDecompressSync(compressed, outputOf(target.length))
  if (raw.length !== target.length) throw unlike(target, raw.length)
  target.set(raw)
  discard(raw)
}

const unlike = (target: Uint8Array, found: number | bigint): Error =>
  new Error(`zstd: expected ${target.length} bytes, found ${found < Number.MAX_SAFE_INTEGER ? found : 'damaged ones'}`)
