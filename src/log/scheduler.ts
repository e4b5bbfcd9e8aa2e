/** Turns and timers as the log needs them: handed in, so that tests and the simulation run them. */
export interface Scheduler {
  /** Runs `task` in the next turn of the event loop, after pending socket reads. */
  nextTurn(task: () => void): void
  /** Runs `task` once, `milliseconds` from now at the earliest. @returns cancels it. */
  after(milliseconds: number, task: () => void): () => void
}

export const systemScheduler: Scheduler = {
  nextTurn: (task) => {
    setImmediate(task)
  },
  after(milliseconds, task) {
    const timer = setTimeout(task, milliseconds)
    return () => clearTimeout(timer)
  },
}
