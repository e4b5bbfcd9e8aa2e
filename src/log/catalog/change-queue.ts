import { EdgeError } from '../../errors.ts'

/** Changes that wait at the same time; a client that sends more is told to come back. */
const MAX_WAITING = 1024

/** Runs changes one after the other: each sees what the one before left, on the disk and in memory. */
export class ChangeQueue {
  #tail: Promise<unknown> = Promise.resolve()
  #waitingCount = 0
  #isClosed = false

  /** @throws EDGE_BACKPRESSURE, EDGE_SHUTTING_DOWN, and whatever `change` throws. */
  async run<T>(change: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new EdgeError('EDGE_SHUTTING_DOWN', 'the log is being closed')
    if (this.#waitingCount >= MAX_WAITING) {
      throw new EdgeError('EDGE_BACKPRESSURE', `${MAX_WAITING} changes of streams and topics are waiting already`)
    }
    this.#waitingCount++
    const done = this.#tail.then(change)
    // The next change does not care how this one ended; who asked for it does.
    this.#tail = done.then(ignore, ignore)
    try {
      return await done
    } finally {
      this.#waitingCount--
    }
  }

  /** Resolves when the last change ended; no new ones are taken. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#tail
  }
}

function ignore(): void {}
