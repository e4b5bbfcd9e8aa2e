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
    // What was due a moment ago runs next; Node would warn of a negative time on stderr.
    const timer = setTimeout(task, Math.max(0, milliseconds))
    return () => clearTimeout(timer)
  },
}
