import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 5

/**
 * Waits until `isTrue` holds.
 * @param what said when it does not within `timeoutMs`: a text, or what makes one then. The condition's own when left out.
 */
export async function eventually(
  isTrue: () => boolean | Promise<boolean>,
  what: string | (() => string) = isTrue.toString(),
  timeoutMs = 10_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await isTrue())) {
    if (performance.now() > deadline)
      throw new Error(`${typeof what === 'string' ? what : what()}: not within ${timeoutMs} ms`)
    await delay(POLL_MS)
  }
}
