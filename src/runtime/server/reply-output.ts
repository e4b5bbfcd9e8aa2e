/**
 * Where replies are put together: one writer for all connections, over the kernels' memory, so that messages are expanded
 * in place and leave for the socket from there.
 *
 * Nearly always the socket takes all bytes at once and the buffer is used again. What a slow peer leaves is read from the
 * buffer later: it is lent until then, and the writer goes on in another one.
 */
import { sharedKernel } from '../../sdk/wire/kernel/shared-kernel.ts'
import { Writer } from '../../sdk/wire/writer.ts'
import { OUTPUT_BUFFER_BYTES } from './defaults.ts'

/** Buffers beside the first one, for as many slow peers; others get one of their own. */
const SPARE_BUFFERS = 2
const OWN_BYTES = 64 * 1024

export class ReplyOutput extends Writer {
  /** The largest is the last one. */
  readonly #spares = Array.from({ length: SPARE_BUFFERS }, () => sharedKernel().reserve(OUTPUT_BUFFER_BYTES))

  constructor() {
    super(sharedKernel().reserve(OUTPUT_BUFFER_BYTES))
  }

  /**
   * Leaves the bytes to who still reads them and begins anew.
   *
   * @returns the buffer to give back, or null for one that nobody misses.
   */
  lend(): Uint8Array | null {
    if (!this.hasGrown) return this.replaceFirst(this.#spares.pop() ?? new Uint8Array(OWN_BYTES))
    this.reset()
    return null
  }

  /** Of more buffers than are kept the largest stay: those of the kernels' memory are not made twice. */
  giveBack(buffer: Uint8Array): void {
    const isSmaller = this.length === 0 && !this.hasGrown && this.bufferView.length < buffer.length
    this.#spares.push(isSmaller ? this.replaceFirst(buffer) : buffer)
    this.#spares.sort((one, other) => one.length - other.length)
    if (this.#spares.length > SPARE_BUFFERS) this.#spares.shift()
  }
}
