import { EdgeError } from '../../errors.ts'

/**
 * What is started, or null when the signal comes first. The start is left where it is: what it promises is kept at every
 * moment, as a power cut might come at any. Should it come to its end all the same, it is closed again.
 *
 * @throws what the start throws.
 */
export async function unlessAborted<T extends AsyncDisposable>(
  starting: Promise<T>,
  signal: AbortSignal,
): Promise<T | null> {
  const aborted = Promise.withResolvers<null>()
  const abort = () => aborted.resolve(null)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    const started = await Promise.race([starting, aborted.promise])
    if (started === null) void starting.then((late) => late[Symbol.asyncDispose]()).catch(() => {})
    return started
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** For long work in steps: without it, who interrupts waits until the process is ended the hard way. */
export function refuseAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new EdgeError('EDGE_SHUTTING_DOWN', 'interrupted')
}
