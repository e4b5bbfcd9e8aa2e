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

  giveBack(buffer: Uint8Array): void {
    if (this.#spares.length < SPARE_BUFFERS) this.#spares.push(buffer)
  }
}
