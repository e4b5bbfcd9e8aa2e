/**
 * Who goes on when something is there again. Whoever is gone meanwhile is taken off, so that nothing is kept of streams and
 * connections that come and go while something is missing.
 */
import type { Log } from '../../log/index.ts'

export class Waiters {
  private waiting = new Set<() => void>()

  get size(): number {
    return this.waiting.size
  }

  /** Once, in the order in which they came, however often they are added. */
  add(resume: () => void): void {
    this.waiting.add(resume)
  }

  delete(resume: () => void): void {
    this.waiting.delete(resume)
  }

  /** Calls all that wait now; who must go on waiting comes back by itself. */
  wake(): void {
    const { waiting } = this
    this.waiting = new Set()
    for (const resume of waiting) resume()
  }
}

/** Those that wait for room in the log: it is asked once for all of them. */
export class LogRoom extends Waiters {
  private readonly log: Pick<Log, 'onceRoom'>
  private isAsked = false

  constructor(log: Pick<Log, 'onceRoom'>) {
    super()
    this.log = log
  }

  override add(resume: () => void): void {
    super.add(resume)
    if (this.isAsked) return
    this.isAsked = true
    this.log.onceRoom(() => {
      this.isAsked = false
      this.wake()
    })
  }
}
