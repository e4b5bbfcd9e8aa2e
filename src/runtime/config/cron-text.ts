/** Intervals as cron expressions. Pure. */

const MINUTE_S = 60
const HOUR_S = 3600
const DAY_S = 86_400

/**
 * The expression that comes round once in `everyMs`. What does not divide a minute, an hour or a day evenly, or is shorter
 * than a second, becomes the next length that does: a little more often, but for what is shorter than a second.
 */
export function cronEvery(everyMs: number): string {
  const seconds = Math.max(1, Math.floor(everyMs / 1000))
  if (seconds < MINUTE_S) return `${everyOf(seconds, MINUTE_S)} * * * * *`
  if (seconds < HOUR_S) return `${everyOf(seconds / MINUTE_S, HOUR_S / MINUTE_S)} * * * *`
  if (seconds < DAY_S) return `0 ${everyOf(seconds / HOUR_S, DAY_S / HOUR_S)} * * *`
  return '0 0 * * *'
}

/** @param whole in which the step must be contained evenly. */
function everyOf(step: number, whole: number): string {
  let even = Math.floor(step)
  while (whole % even !== 0) even--
  return even === 1 ? '*' : `*/${even}`
}
