/**
 * One lane of one session: which readings are taken, which are duplicates, what is acknowledged. Pure.
 *
 * `have` is the highest sequence disposed of (handed to the log, or refused for good); `settled` the highest for which the
 * log's promise holds, with all before it. `settled <= have`; only `settled` is ever acknowledged. A lane that is held is
 * held at `have + 1`.
 *
 * For readings first..last, in this order:
 *   held and first beyond it   read over, without an answer: else a later reading could overtake the refused one and make
 *                              it look like a duplicate
 *   1. last <= have            duplicate
 *   2. first <= have < last    the part from have + 1 on is new
 *   3. first = have + 1        new
 *   4. first > have + 1        a gap: refused, the lane is held at have + 1
 */
import type { Alias } from './aliases.ts'

/** How far a run is kept, as the wire tells. */
export const PROMISE = { durable: 0, buffered: 1 } as const

export type Offer =
  | { readonly type: 'passed-over' }
  | { readonly type: 'duplicate' }
  | { readonly type: 'gap'; readonly expected: number }
  | { readonly type: 'new'; readonly first: number }

/** Consecutive sequences that were handed over in one go. */
export interface Run {
  readonly ticket: number
  readonly first: number
  readonly last: number
  /** As it was declared when they came; null: a skip belongs to none. */
  readonly alias: Alias | null
  /** One of `PROMISE`. */
  readonly promise: number
  /** Unacknowledged bytes of frames that the run accounts for. */
  readonly sizeBytes: number
  /** Set when the run was not stored but refused for good: told with the acknowledgement. */
  refusal: { readonly code: number; readonly text: string } | undefined
  /** Where its first reading was stored. */
  offset?: bigint
}

export interface SettledRuns {
  readonly upTo: number
  readonly runs: readonly Run[]
}

export class Lane {
  #have: number
  #settled: number
  #held: number | undefined
  /** Oldest first, without gaps: the first one begins at settled + 1. */
  #runs: { readonly run: Run; isSettled: boolean }[] = []
  /** Runs behind a failed one: nobody waits for them any more. */
  readonly #orphans = new Set<number>()
  #unackedBytes = 0
  /** Without those that the device gave up: a skip after a day without a link may be longer than any window. */
  #unackedReadings = 0

  /** Up to here, something that was settled may be written only. */
  #bufferedUpTo: number

  /** @param durable how far that is on stable storage. */
  constructor(have: number, durable: number) {
    this.#have = have
    this.#settled = have
    this.#bufferedUpTo = durable < have ? have : 0
  }

  get have(): number {
    return this.#have
  }

  get settled(): number {
    return this.#settled
  }

  /** @returns the weakest promise of what is settled, from a sequence on. */
  promiseFrom(first: number): number {
    return first <= this.#bufferedUpTo ? PROMISE.buffered : PROMISE.durable
  }

  get isPending(): boolean {
    return this.#runs.length > 0
  }

  get unackedBytes(): number {
    return this.#unackedBytes
  }

  get unackedReadings(): number {
    return this.#unackedReadings
  }

  offer(first: number, last: number): Offer {
    if (this.#held !== undefined && first > this.#held) return { type: 'passed-over' }
    if (last <= this.#have) return { type: 'duplicate' }
    if (first > this.#have + 1) {
      this.#held = this.#have + 1
      return { type: 'gap', expected: this.#have + 1 }
    }
    return { type: 'new', first: this.#have + 1 }
  }

  /** The next sequences were handed over. */
  accept(run: Run): void {
    this.#have = run.last
    this.#held = undefined
    this.#runs.push({ run, isSettled: false })
    this.#unackedBytes += run.sizeBytes
    this.#unackedReadings += readingsIn(run)
  }

  /** Nothing beyond `have` is taken until it is sent again from there. @returns the sequence to send again from. */
  hold(): number {
    this.#held = this.#have + 1
    return this.#held
  }

  /** The log took the newest run and gave its first reading an offset. */
  stored(ticket: number, offset: bigint): void {
    const newest = this.#runs.at(-1)?.run
    if (newest?.ticket === ticket) newest.offset = offset
  }

  /** The log took the sequences of the newest run and not its readings. @returns that run. */
  givenUp(ticket: number, refusal: { readonly code: number; readonly text: string }): Run | undefined {
    const newest = this.#runs.at(-1)?.run
    if (newest?.ticket !== ticket) return undefined
    newest.refusal = refusal
    return newest
  }

  /** The newest run was refused by the log after all, before anything else happened. @returns that run. */
  withdraw(ticket: number): Run | undefined {
    const newest = this.#runs.at(-1)?.run
    if (newest?.ticket !== ticket) return undefined
    this.#forget(this.#runs.splice(-1))
    this.#have = newest.first - 1
    return newest
  }

  /** @returns what can be acknowledged now, or undefined. */
  settle(ticket: number): SettledRuns | undefined {
    const found = this.#runs.find(({ run }) => run.ticket === ticket)
    if (found === undefined) return undefined
    found.isSettled = true
    const count = this.#runs.findIndex(({ isSettled }) => !isSettled)
    const done = this.#forget(this.#runs.splice(0, count < 0 ? this.#runs.length : count))
    const last = done.at(-1)
    if (last === undefined) return undefined
    this.#settled = last.last
    this.#bufferedUpTo = done.findLast(({ promise }) => promise === PROMISE.buffered)?.last ?? this.#bufferedUpTo
    return { upTo: last.last, runs: done }
  }

  /**
   * The log could not keep a run after all: it and everything behind it must come again.
   *
   * @returns the failed run and those behind it; none when it was itself behind another failed one.
   */
  fail(ticket: number): Run[] {
    const at = this.#runs.findIndex(({ run }) => run.ticket === ticket)
    if (at < 0) {
      this.#orphans.delete(ticket)
      return []
    }
    const dropped = this.#forget(this.#runs.splice(at))
    for (const run of dropped.slice(1)) this.#orphans.add(run.ticket)
    this.#have = (dropped[0]?.first ?? 1) - 1
    this.hold()
    return dropped
  }

  /**
   * True for a run behind a failed one that was kept nevertheless: now only the log knows what it holds, and the session
   * must end so that the next `welcome` tells.
   */
  isOrphan(ticket: number): boolean {
    return this.#orphans.has(ticket)
  }

  #forget(entries: readonly { readonly run: Run }[]): Run[] {
    const runs = entries.map(({ run }) => run)
    for (const run of runs) {
      this.#unackedBytes -= run.sizeBytes
      this.#unackedReadings -= readingsIn(run)
    }
    return runs
  }
}

const readingsIn = ({ alias, first, last }: Run): number => (alias === null ? 0 : last - first + 1)
