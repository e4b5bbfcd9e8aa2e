/**
 * Bytes that all connections may hold of requests they are still receiving. Pure.
 *
 * A large request takes its whole size before its first byte is kept, so whoever holds a share can always finish; the
 * others wait unread. What fits goes past the one that has waited longest and does not, up to as many bytes as that one asks
 * for: then all wait until it has its share. Small requests are free: connections bound them.
 */
import { assert } from '../../assert.ts'

interface Waiter {
  readonly sizeBytes: number
  readonly granted: () => void
}

export class RequestBudget {
  private readonly limitBytes: number
  private usedBytes = 0
  /** In the order they came. */
  private readonly waiters: Waiter[] = []
  /** Taken past the first of them. */
  private passedBytes = 0

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get inUseBytes(): number {
    return this.usedBytes
  }

  /** Whether somebody misses what others hold. */
  get isAwaited(): boolean {
    return this.waiters.length > 0
  }

  /** @returns whether the share was taken. A request larger than everything passes alone. */
  take(sizeBytes: number): boolean {
    if (!this.fits(sizeBytes) || !this.mayPass(sizeBytes)) return false
    if (this.waiters.length > 0) this.passedBytes += sizeBytes
    this.usedBytes += sizeBytes
    return true
  }

  /** Calls `granted` once the share is taken. @returns a function that gives up waiting. */
  wait(sizeBytes: number, granted: () => void): () => void {
    const waiter = { sizeBytes, granted }
    this.waiters.push(waiter)
    return () => {
      const index = this.waiters.indexOf(waiter)
      if (index >= 0) this.leaves(index)
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

  private mayPass(sizeBytes: number): boolean {
    const first = this.waiters[0]
    return first === undefined || this.passedBytes + sizeBytes <= first.sizeBytes
  }

  private grant(): void {
    for (let index = 0; index < this.waiters.length; ) {
      const next = this.waiters[index]
      if (next === undefined || !this.fits(next.sizeBytes) || (index > 0 && !this.mayPass(next.sizeBytes))) {
        index++
        continue
      }
      this.leaves(index)
      if (index > 0) this.passedBytes += next.sizeBytes
      this.usedBytes += next.sizeBytes
      next.granted()
    }
  }

  private leaves(index: number): void {
    this.waiters.splice(index, 1)
    if (index === 0) this.passedBytes = 0
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
