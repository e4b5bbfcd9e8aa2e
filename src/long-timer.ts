/** Waits of any length: Node's timers take one above 2^31 - 1 ms (25 days) for 1 ms, and say so on stderr each time. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** Calls `onDue` after `delayMs`; what is due later than a timer can be is waited for in several. @returns what stops it. */
export function setLongTimeout(onDue: () => void, delayMs: number): () => void {
  let timer: ReturnType<typeof setTimeout>
  const wait = (leftMs: number): void => {
    const isTooFar = leftMs > MAX_TIMER_MS
    timer = setTimeout(isTooFar ? () => wait(leftMs - MAX_TIMER_MS) : onDue, Math.min(MAX_TIMER_MS, leftMs))
  }
  wait(delayMs)
  return () => clearTimeout(timer)
}
