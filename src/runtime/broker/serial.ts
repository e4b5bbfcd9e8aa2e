/**
 * Runs changes one after another, so that a check and the change it allows are not torn apart by another's. No more wait than
 * there are clients: each waits for the answer before it asks for the next.
 */
export class Serial {
  private tail: Promise<unknown> = Promise.resolve()

  run<T>(change: () => Promise<T>): Promise<T> {
    const run = this.tail.then(change)
    this.tail = run.catch(() => undefined)
    return run
  }
}
