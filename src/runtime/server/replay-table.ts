/**
 * Replies of the last metadata requests of one VSR session, so that a request that comes again is answered again and not
 * carried out again. Pure.
 *
 * A number above the largest seen is new (gaps are allowed), one that is kept is replayed, one that is kept no more was
 * applied. Clients repeat only what they are still waiting for, so a few are enough.
 */
import type { VsrRequestHead } from '../../sdk/wire/vsr/frame.ts'
import { MAX_REPLAY_BYTES, MAX_REPLAYS } from './defaults.ts'

interface Kept {
  readonly requestChecksum: bigint
  readonly replyBytes: Uint8Array
}

export class ReplayTable {
  private readonly kept = new Map<bigint, Kept>()
  private largest = 0n

  /** @returns the reply to give again, 'applied' when it is not kept any more, undefined for a new request. */
  find({ requestNumber, requestChecksum }: VsrRequestHead): Uint8Array | 'applied' | undefined {
    if (requestNumber > this.largest) return undefined
    const kept = this.kept.get(requestNumber)
    if (kept === undefined) return 'applied'
    const isOther = kept.requestChecksum !== 0n && requestChecksum !== 0n && kept.requestChecksum !== requestChecksum
    return isOther ? 'applied' : kept.replyBytes
  }

  /** @param replyView copied; one that is too large is remembered as applied only. */
  put({ requestNumber, requestChecksum }: VsrRequestHead, replyView: Uint8Array): void {
    if (requestNumber > this.largest) this.largest = requestNumber
    if (replyView.length <= MAX_REPLAY_BYTES) {
      this.kept.set(requestNumber, { requestChecksum, replyBytes: new Uint8Array(replyView) })
    }
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= MAX_REPLAYS) return
      this.kept.delete(oldest)
    }
  }

  clear(): void {
    this.kept.clear()
    this.largest = 0n
  }
}
