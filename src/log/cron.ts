import { EdgeError } from '../errors.ts'

const MINUTE_MS = 60_000
/** The default schedule. A timer does it: node-cron and the calendar it loads cost 30 ms at start and 5 MB for good. */
const EVERY_MINUTE = '* * * * *'

/** Runs tasks by the wall clock: port of node-cron, and of the tests' own. */
export interface Cron {
  /**
   * @param expression five fields, or six with seconds first.
   * @returns stops it.
   * @throws EDGE_CONFIG_INVALID when the expression is none.
   */
  schedule(expression: string, task: () => void): Promise<() => void>
}

/** Its functions by the default export, which is all that the executable has of a CommonJS package that is imported when used. */
async function loadNodeCron() {
  return (await import('node-cron')).default
}

/** @throws EDGE_CONFIG_INVALID when the expression is none. */
export async function checkSchedule(expression: string): Promise<void> {
  if (expression === EVERY_MINUTE) return
  const cron = await loadNodeCron()
  if (cron.validate(expression)) return
  throw new EdgeError(
    'EDGE_CONFIG_INVALID',
    `retention.schedule: found ${JSON.stringify(expression)}, expected a cron expression such as "*/5 * * * *"`,
  )
}

/** node-cron, loaded when the first schedule needs a calendar. */
export const systemCron: Cron = {
  async schedule(expression, task) {
    if (expression === EVERY_MINUTE) {
      const timer = setInterval(task, MINUTE_MS).unref()
      return () => clearInterval(timer)
    }
    await checkSchedule(expression)
    const cron = await loadNodeCron()
    // It would print to the console when the process was asleep; a run that was missed is made up by the next one.
    const scheduled = cron.schedule(expression, task, { suppressMissedWarning: true, unref: true })
    return () => void scheduled.stop()
  },
}
