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

/** What one connection holds of the budget. */
export class BudgetShare {
  private readonly budget: RequestBudget
  private heldBytes = 0
  private cancel: (() => void) | null = null

  constructor(budget: RequestBudget) {
    this.budget = budget
  }

  get isHeld(): boolean {
    return this.heldBytes > 0
  }

  /** @returns whether it was taken at once; else `granted` is called when it is, in whoever's turn gave it back. */
  take(sizeBytes: number, granted: () => void): boolean {
    assert(!this.isHeld && this.cancel === null, 'a connection takes one share at a time')
    if (this.budget.take(sizeBytes)) {
      this.heldBytes = sizeBytes
      return true
    }
    this.cancel = this.budget.wait(sizeBytes, () => {
      this.cancel = null
      this.heldBytes = sizeBytes
      granted()
    })
    return false
  }

  /** Gives back what is held, or gives up waiting. Idempotent. */
  release(): void {
    this.cancel?.()
    this.cancel = null
    const held = this.heldBytes
    this.heldBytes = 0
    if (held > 0) this.budget.give(held)
  }
}
