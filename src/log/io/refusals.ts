/**
 * What the device refuses to give while the log runs: a page that went bad, or everything, for the half minute of a reset of
 * its bus. Which of both it is only time tells. Until then reads and repacks fail: a forwarder that went on behind each block
 * it is not given would give up a whole backlog within seconds. Tries tell nothing: many may come at once.
 */
import type { Clock } from '../../clock.ts'
import { EdgeError } from '../../errors.ts'
import { isMissing, isRefused } from './file-system.ts'

/** As long as so many tries of the log take what is refused may be given again, and no longer than that: half a minute. */
const RETRIES = 6
const WAIT_MAX_MS = 30_000
/** A file more than that is waited for anew. */
const MAX_FILES = 256

interface Refusal {
  readonly position: number
  readonly sinceUs: number
  lastUs: number
}

export class Refusals {
  readonly #clock: Pick<Clock, 'monotonicUs'>
  readonly #waitUs: number
  /** Of each file the place that was refused first: it is tried again and again, others may be given meanwhile. */
  readonly #refused = new Map<string, Refusal>()

  /** @param retryMs how often the log tries a disk that refuses. */
  constructor(clock: Pick<Clock, 'monotonicUs'>, retryMs: number) {
    this.#clock = clock
    this.#waitUs = Math.min(RETRIES * retryMs, WAIT_MAX_MS) * 1000
  }

  /**
   * A read failed. Returns when the device has refused for so long that the place counts as damaged, or when it is, or gone.
   *
   * @throws EDGE_IO while it may be given again; it counts as a shortage.
   */
  check(file: string, position: number, error: unknown): void {
    if (!isRefused(error) || isMissing(error)) return
    const nowUs = this.#clock.monotonicUs()
    const before = this.#refused.get(file)
    // Nobody has come back for the other place, which may be given for long.
    const isOfBefore = before !== undefined && (before.position === position || nowUs - before.lastUs < this.#waitUs)
    const known = isOfBefore ? before : { position, sinceUs: nowUs, lastUs: nowUs }
    known.lastUs = nowUs
    this.#refused.set(file, known)
    for (const oldest of this.#refused.keys()) {
      if (this.#refused.size <= MAX_FILES) break
      this.#refused.delete(oldest)
    }
    if (nowUs - known.sinceUs >= this.#waitUs) return
    const details = { ...error.details, mayPass: true }
    throw new EdgeError('EDGE_IO', `${error.message}; it may be given a moment later`, { details, cause: error })
  }

  get isEmpty(): boolean {
    return this.#refused.size === 0
  }

  /** What was refused there is given again. */
  given(file: string, position: number): void {
    if (this.#refused.get(file)?.position === position) this.#refused.delete(file)
  }
}
