/**
 * Keep-alive for every connection over TCP that we take: of a client that is gone without a word the system asks, and its place
 * is free again after two minutes of silence. Left alone, the system asks after two hours. While an answer is not acknowledged it
 * does not ask at all: for that there are limits on the answers.
 */
export const KEEP_ALIVE = {
  enable: true,
  /** Silence before the first question, ms. */
  initialDelay: 60_000,
  /** Between questions: Node's own ten within ten seconds would cut a client whose link is away for as long, and was idle before. */
  interval: 15_000,
  count: 4,
} as const
