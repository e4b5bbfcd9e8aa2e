/**
 * Credit accounting: how many bytes of one session were read and not yet worked off, which of its streams therefore wait.
 * Pure.
 *
 * Invariants: unread bytes are the sum over its open streams; they exceed the bound by at most one chunk a stream; a stream
 * waits only while the session is above the bound.
 */
export class SessionFlow {
  readonly #maxUnreadBytes: number
  readonly #unreadByStream = new Map<number, number>()
  /** Stream to the time since when it waits. */
  readonly #pausedSinceMs = new Map<number, number>()
  #unreadBytes = 0

  constructor(maxUnreadBytes: number) {
    this.#maxUnreadBytes = maxUnreadBytes
  }

  get unreadBytes(): number {
    return this.#unreadBytes
  }

  get pausedCount(): number {
    return this.#pausedSinceMs.size
  }

  /** @returns whether the stream may be read on; if not, it waits until `granted` or `forget` names it. */
  received(streamId: number, sizeBytes: number, nowMs: number): boolean {
    this.#unreadByStream.set(streamId, (this.#unreadByStream.get(streamId) ?? 0) + sizeBytes)
    this.#unreadBytes += sizeBytes
    if (this.#unreadBytes < this.#maxUnreadBytes) return true
    this.#pausedSinceMs.set(streamId, nowMs)
    return false
  }

  /** @returns streams that may be read again. More than was received is taken as all of it. */
  granted(streamId: number, sizeBytes: number): number[] {
    const unread = this.#unreadByStream.get(streamId) ?? 0
    const taken = Math.min(unread, sizeBytes)
    if (taken === unread) this.#unreadByStream.delete(streamId)
    else this.#unreadByStream.set(streamId, unread - taken)
    return this.#release(taken)
  }

  /** A stream is gone, and with it what nobody worked off. @returns streams that may be read again. */
  forget(streamId: number): number[] {
    this.#pausedSinceMs.delete(streamId)
    const unread = this.#unreadByStream.get(streamId) ?? 0
    this.#unreadByStream.delete(streamId)
    return this.#release(unread)
  }

  /** Streams that have waited since before `sinceMs`. */
  pausedBefore(sinceMs: number): number[] {
    return [...this.#pausedSinceMs].filter(([, since]) => since <= sinceMs).map(([streamId]) => streamId)
  }

  #release(sizeBytes: number): number[] {
    this.#unreadBytes -= sizeBytes
    if (this.#unreadBytes >= this.#maxUnreadBytes || this.#pausedSinceMs.size === 0) return []
    const resumed = [...this.#pausedSinceMs.keys()]
    this.#pausedSinceMs.clear()
    return resumed
  }
}
