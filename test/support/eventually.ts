import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 10

/** Waits until `isTrue` holds. @throws when it does not within `timeoutMs`. */
export async function eventually(
  isTrue: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 10_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs} ms`)
    await delay(POLL_MS)
  }
}
