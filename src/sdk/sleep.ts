import { setLongTimeout } from '../long-timer.ts'

/** Waits for `delayMs`, however long, or until the signal is aborted; never rejects. */
export async function sleep(delayMs: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      stop()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const stop = setLongTimeout(done, delayMs)
    signal.addEventListener('abort', done, { once: true })
    if (signal.aborted) done()
  })
}
