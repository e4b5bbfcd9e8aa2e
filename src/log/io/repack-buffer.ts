/**
 * Where a journal file lies while it is repacked: one buffer for file after file. Under load a new one each time would
 * begin a full collection each time, since the collector counts it as memory grown; kept for ever it would be the largest
 * single piece of an idle edge. So it stays until no file has come for a while, and then goes at once.
 */
import { discard } from '../../discard.ts'
import { areaOf, type ByteArea } from '../core/byte-area.ts'
import type { Scheduler } from '../scheduler.ts'

/** Files that come faster than that share it; at a slower pace a collection for each costs nothing. */
const KEPT_MS = 200

export class RepackBuffer {
  readonly #scheduler: Scheduler
  #bytes: Uint8Array | undefined
  #cancelRelease: (() => void) | undefined

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler
  }

  /** @returns an area of that size, until `done`. One at a time. */
  take(sizeBytes: number): ByteArea {
    this.#cancelRelease?.()
    if (this.#bytes === undefined || this.#bytes.length < sizeBytes) this.#bytes = new Uint8Array(sizeBytes)
    return areaOf(this.#bytes.subarray(0, sizeBytes))
  }

  done(): void {
    this.#cancelRelease?.()
    this.#cancelRelease = this.#scheduler.after(KEPT_MS, () => this.release())
  }

  /** Gives the memory back without waiting for the collector. */
  release(): void {
    this.#cancelRelease?.()
    if (this.#bytes !== undefined) discard(this.#bytes)
    this.#bytes = undefined
  }
}
