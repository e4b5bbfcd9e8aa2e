/** Who waits for the journal: for room, or for everything appended so far to be synced. */
import type { EdgeError } from '../../errors.ts'
import type { Scheduler } from '../scheduler.ts'

/** Called once each, in a later turn. */
export class RoomWaiters {
  readonly #scheduler: Scheduler
  #callbacks: (() => void)[] = []

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler
  }

  add(callback: () => void): void {
    this.#callbacks.push(callback)
  }

  wake(): void {
    if (this.#callbacks.length === 0) return
    const callbacks = this.#callbacks
    this.#callbacks = []
    this.#scheduler.nextTurn(() => {
      for (const callback of callbacks) callback()
    })
  }
}

interface FlushWaiter {
  /** How many batches were appended when it began to wait. */
  readonly appended: number
  readonly resolve: () => void
  readonly reject: (error: EdgeError) => void
}

export class FlushWaiters {
  #waiters: FlushWaiter[] = []

  get count(): number {
    return this.#waiters.length
  }

  wait(appended: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ appended, resolve, reject })
    })
  }

  /** That many batches are synced by now. */
  resolve(synced: number): void {
    const done = this.#waiters.filter((waiter) => waiter.appended <= synced)
    if (done.length === 0) return
    this.#waiters = this.#waiters.filter((waiter) => waiter.appended > synced)
    for (const waiter of done) waiter.resolve()
  }

  reject(error: EdgeError): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) waiter.reject(error)
  }
}
