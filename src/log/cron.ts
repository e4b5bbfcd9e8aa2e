import { EdgeError } from '../errors.ts'

/** Runs tasks by the wall clock: port of node-cron, and of the tests' own. */
export interface Cron {
  /**
   * @param expression five fields, or six with seconds first.
   * @returns stops it.
   * @throws EDGE_CONFIG_INVALID when the expression is none.
   */
  schedule(expression: string, task: () => void): Promise<() => void>
}

/** node-cron, loaded when the first task is scheduled: a start without retention does not pay for it. */
export const systemCron: Cron = {
  async schedule(expression, task) {
    const { schedule, validate } = await import('node-cron')
    if (!validate(expression)) {
      throw new EdgeError(
        'EDGE_CONFIG_INVALID',
        `retention.schedule: ${JSON.stringify(expression)} is no cron expression`,
      )
    }
    // It would print to the console when the process was asleep; a run that was missed is made up by the next one.
    const scheduled = schedule(expression, task, { suppressMissedWarning: true, unref: true })
    return () => void scheduled.stop()
  },
}
