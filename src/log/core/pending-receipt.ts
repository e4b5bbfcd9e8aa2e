/** Who waits for the outcome of an append. Told once, and within a partition in the order of the appends. */
import type { EdgeError } from '../../errors.ts'
import type { Receipt } from '../api.ts'

export class PendingReceipt {
  #receipt: Receipt | null
  /** Known, but not told yet: one before it still waits. */
  #outcome: EdgeError | null | undefined
  #next: PendingReceipt | null = null
  #before: PendingReceipt | null = null

  constructor(receipt: Receipt | null) {
    this.#receipt = receipt
  }

  get isSettled(): boolean {
    return this.#receipt === null
  }

  /** The one that must be told first, while it is not. */
  get before(): PendingReceipt | null {
    return this.#before
  }

  /** Is told after `before`, whatever is known first. At most one follows each. */
  follow(before: PendingReceipt): void {
    if (before.isSettled) return
    before.#next = this
    this.#before = before
  }

  /** Tells the one who appended, once. */
  settle(error: EdgeError | null): void {
    if (this.#receipt === null || this.#outcome !== undefined) return
    this.#outcome = error
    if (this.#before === null) this.#tell()
  }

  #tell(): void {
    for (let link: PendingReceipt | null = this; link !== null && link.#outcome !== undefined; link = link.#next) {
      const receipt = link.#receipt
      link.#receipt = null
      receipt?.settled(link.#outcome)
      if (link.#next !== null) link.#next.#before = null
    }
  }
}
