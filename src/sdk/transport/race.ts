/**
 * Several ways to one server, of which some may be dead: each gets a head start on the next, and goes on while that is tried
 * (RFC 8305). Who gives a way up when its head start is over never gets through where the round trip is longer than that,
 * unless it is the last. Knows no socket and no name.
 */
export interface Attempt<T> {
  readonly outcome: Promise<T>
  /** Ends it, also when it has come about. */
  abandon(): void
}

/**
 * @param ways at least one, the best first.
 * @returns what came about first; every other attempt is abandoned.
 * @throws what the attempt met that failed last; the reason of `signal`.
 */
export async function firstOf<W, T>(
  ways: readonly W[],
  start: (way: W) => Attempt<T>,
  headStartMs: number,
  signal: AbortSignal,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const waiting = [...ways]
  const running = new Set<Attempt<T>>()
  let isOver = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const abort = (): void => {
    isOver = true
    reject(signal.reason)
  }
  const startNext = (): void => {
    clearTimeout(timer)
    const way = waiting.shift()
    if (way === undefined) return
    const attempt = start(way)
    running.add(attempt)
    attempt.outcome.then(
      (outcome) => {
        // A second one that comes in the same moment stays among those to be abandoned.
        if (isOver) return
        isOver = true
        running.delete(attempt)
        resolve(outcome)
      },
      (error: unknown) => {
        running.delete(attempt)
        if (isOver) return
        if (waiting.length > 0) startNext()
        else if (running.size === 0) reject(error)
      },
    )
    timer = setTimeout(startNext, headStartMs)
  }
  signal.addEventListener('abort', abort, { once: true })
  try {
    if (signal.aborted) abort()
    else startNext()
    return await promise
  } finally {
    isOver = true
    signal.removeEventListener('abort', abort)
    clearTimeout(timer)
    for (const attempt of running) attempt.abandon()
  }
}

/** For an attempt that is begun anew beside itself while it is silent: one that failed has had its answer, and ends the others. */
export function untilRefused<T>(start: () => Attempt<T>): () => Attempt<T> {
  let refusal: Promise<never> | null = null
  return () => {
    if (refusal !== null) return { outcome: refusal, abandon() {} }
    const attempt = start()
    attempt.outcome.catch((error: unknown) => {
      refusal = Promise.reject(error)
      refusal.catch(() => {}) // told by a later attempt, if there is one
    })
    return attempt
  }
}
