/**
 * Compresses one piece after another with one context, each to a frame of its own. A context for each piece costs nearly
 * as much as compressing 64 KiB, and its memory outside the heap has the collector at work all the time.
 */
import { constants, createZstdCompress, type ZstdCompress } from 'node:zlib'

/** Larger pieces are not worth what the context would keep for them. */
export const MAX_FRAME_SIZE = 256 * 1024
const LEAST_EXPANSION_SIZE = 4096
/** 128 KiB: as far back as matches are looked for. */
const WINDOW_LOG = 17
const OUTPUT_SIZE = 128 * 1024

export class ZstdFrames {
  readonly #level: number
  #stream: ZstdCompress | undefined
  /** Pieces come one after another: the next begins when this has ended. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(level: number) {
    this.#level = level
  }

  /** @param bytes at most `MAX_FRAME_SIZE`; not to be changed until the promise ends. */
  compress(bytes: Uint8Array): Promise<Uint8Array> {
    const frame = this.#last.then(() => this.#compress(bytes))
    this.#last = frame.catch(() => undefined)
    return frame
  }

  #compress(bytes: Uint8Array): Promise<Uint8Array> {
    this.#stream ??= this.#open()
    const stream = this.#stream
    return new Promise((resolve, reject) => {
      const failed = (error: Error): void => {
        this.#stream = undefined
        reject(error)
      }
      stream.once('error', failed)
      stream.write(bytes, () => {
        stream.off('error', failed)
        resolve(takeAll(stream))
      })
    })
  }

  #open(): ZstdCompress {
    const options = {
      params: { [constants.ZSTD_c_compressionLevel]: this.#level, [constants.ZSTD_c_windowLog]: WINDOW_LOG },
      // Each write ends a frame; the next one begins another in the same context.
      flush: constants.ZSTD_e_end,
      chunkSize: OUTPUT_SIZE,
      // A whole frame waits in the stream until it is complete: it must not wait for its reader.
      readableHighWaterMark: MAX_FRAME_SIZE + LEAST_EXPANSION_SIZE + OUTPUT_SIZE,
    }
    return createZstdCompress(options)
  }
}

/** A frame that does not fit what is left of an output buffer comes in two pieces, one a `read`. */
function takeAll(stream: ZstdCompress): Uint8Array {
  const pieces: Uint8Array[] = []
  for (let piece = stream.read(); piece !== null; piece = stream.read()) pieces.push(piece as Uint8Array)
  const [only] = pieces
  return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces)
}
