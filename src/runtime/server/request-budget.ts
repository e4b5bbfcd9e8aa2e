/**
 * Bytes that all connections may hold of requests they are still receiving. Pure.
 *
 * A large request takes its whole size before its first byte is kept, so whoever holds a share can always finish; the
 * others wait unread, first come first served. Small requests are free: connections bound them.
 */
import { assert } from '../../assert.ts'

interface Waiter {
  readonly sizeBytes: number
  readonly granted: () => void
}

export class RequestBudget {
  private readonly limitBytes: number
  private usedBytes = 0
  private readonly waiters: Waiter[] = []

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get inUseBytes(): number {
    return this.usedBytes
  }

  /** @returns whether the share was taken. A request larger than everything passes alone. */
  take(sizeBytes: number): boolean {
    if (this.waiters.length > 0 || !this.fits(sizeBytes)) return false
    this.usedBytes += sizeBytes
    return true
  }

  /** Calls `granted` once the share is taken. @returns a function that gives up waiting. */
  wait(sizeBytes: number, granted: () => void): () => void {
    const waiter = { sizeBytes, granted }
    this.waiters.push(waiter)
    return () => {
      const index = this.waiters.indexOf(waiter)
      if (index >= 0) this.waiters.splice(index, 1)
      this.grant()
    }
  }

  give(sizeBytes: number): void {
    this.usedBytes -= sizeBytes
    assert(this.usedBytes >= 0, 'a request gives back no more than it took')
    this.grant()
  }

  private fits(sizeBytes: number): boolean {
    return this.usedBytes === 0 || this.usedBytes + sizeBytes <= this.limitBytes
  }

  private grant(): void {
    for (let next = this.waiters[0]; next !== undefined && this.fits(next.sizeBytes); next = this.waiters[0]) {
      this.waiters.shift()
      this.usedBytes += next.sizeBytes
      next.granted()
    }
  }
}
