/**
 * Group commit: when the open group is written, and when a sync starts.
 *
 * Decides from counts and times alone; `io/journal.ts` writes, syncs and reports back. Relies on a disk that writes into
 * the page cache within microseconds. Never lets two syncs run at once: the next one covers all that came meanwhile.
 *
 * Why lingering: producers that wait for an ack come back in a burst right after it. Without a short wait the first few of
 * them close a group of their own and the rest waits a whole sync: half the rate. The wait ends as soon as as many are
 * queued as were in flight, so a lone producer never waits, and is bounded by a share of the last sync's duration: 150 µs
 * is right where a sync takes 0.2 ms, 1.5 ms where it takes 10.
 */
import { type FlashBudget, MAX_WAIT_US } from './flash-budget.ts'

/**
 * A sync for the sake of `flushSizeBytes` starts this long after the end of the one before it at the earliest: with more than
 * 6.5 MB/s they would else follow each other without a pause, wear the flash, and take a tenth of the time of everything else.
 */
const FLUSH_PAUSE_US = 10_000
/** A timer cannot be shorter than this. */
export const LEAST_TIMER_US = 1000

export interface GroupCommitOptions {
  readonly lingerMinUs: number
  /** Part of the last sync's duration, such as 0.15. */
  readonly lingerShare: number
  readonly flushIntervalUs: number
  readonly flushSizeBytes: number
  /** Bytes not synced from which on a sync no longer waits for the budget: the buffers must come free. */
  readonly urgentBytes: number
}

export interface Decision {
  /** Write the open group now: somebody waits for it alone, or a sync is about to start. */
  readonly isWriteDue: boolean
  readonly isSyncDue: boolean
  /** Ask again at the latest in that many µs; 0 = in the next turn; undefined = not before something happens. */
  readonly againInUs: number | undefined
}

const NOTHING: Decision = { isWriteDue: false, isSyncDue: false, againInUs: undefined }

export class GroupCommit {
  readonly #options: GroupCommitOptions
  readonly #budget: FlashBudget
  /** Appends that wait for a sync which has not started yet. */
  #waiting = 0
  /** Appends whose promise was kept by the last sync, and those that waited then: as many may come again. */
  #expected = 0
  #inFlight = 0
  #firstWaitingUs = 0
  #lingerUs: number
  #unsyncedBytes = 0
  #bufferedBytes = 0
  #firstBufferedUs = 0
  #hasUnwrittenBuffered = false
  #isSyncing = false
  #syncStartedUs = 0
  #syncEndedUs = Number.NEGATIVE_INFINITY
  #isForced = false
  lastSyncUs = 0

  constructor(options: GroupCommitOptions, budget: FlashBudget) {
    this.#options = options
    this.#budget = budget
    this.#lingerUs = options.lingerMinUs
  }

  get isSyncing(): boolean {
    return this.#isSyncing
  }

  /** @returns whether `decide` should be asked soon though no turn is due: enough wait, or a first one came. */
  appended(isBuffered: boolean, sizeBytes: number, nowUs: number): boolean {
    const { urgentBytes } = this.#options
    const isUrgent = this.#unsyncedBytes < urgentBytes && this.#unsyncedBytes + sizeBytes >= urgentBytes
    this.#unsyncedBytes += sizeBytes
    if (isBuffered) {
      if (this.#bufferedBytes === 0) this.#firstBufferedUs = nowUs
      this.#bufferedBytes += sizeBytes
      const isFirst = !this.#hasUnwrittenBuffered
      this.#hasUnwrittenBuffered = true
      return isFirst || isUrgent
    }
    if (this.#waiting === 0) this.#firstWaitingUs = nowUs
    this.#waiting++
    return this.#waiting === 1 || this.#waiting === this.#expected || isUrgent
  }

  /** The next sync starts as soon as it can: a flush was asked for, a file is full, the log closes. */
  force(): void {
    this.#isForced = true
  }

  written(): void {
    this.#hasUnwrittenBuffered = false
  }

  /** @param waiting and `unsyncedBytes`: what the sync does not cover, because no file took it yet. */
  syncStarted(waiting: number, unsyncedBytes: number, nowUs: number): void {
    this.#isSyncing = true
    this.#syncStartedUs = nowUs
    this.#inFlight = this.#waiting
    this.#waiting = waiting
    this.#unsyncedBytes = unsyncedBytes
    this.#bufferedBytes = 0
    this.#isForced = false
  }

  syncEnded(nowUs: number): void {
    this.#isSyncing = false
    this.#syncEndedUs = nowUs
    this.#expected = this.#inFlight + this.#waiting
    this.#inFlight = 0
    this.lastSyncUs = nowUs - this.#syncStartedUs
    this.#lingerUs = Math.max(this.#options.lingerMinUs, this.lastSyncUs * this.#options.lingerShare)
    // The wait counts from the ack on: those who waited through the sync would else close a group of their own.
    if (this.#waiting > 0) this.#firstWaitingUs = nowUs
  }

  /** A sync or write failed: all that was not synced is written again, as one group, and waits from now on. */
  restarted(waiting: number, unsyncedBytes: number, nowUs: number): void {
    this.#isSyncing = false
    this.#inFlight = 0
    this.#waiting = waiting
    this.#unsyncedBytes = unsyncedBytes
    this.#firstWaitingUs = nowUs
    this.#isForced = unsyncedBytes > 0
  }

  decide(nowUs: number): Decision {
    if (this.#isSyncing) return this.#hasUnwrittenBuffered ? { ...NOTHING, isWriteDue: true } : NOTHING
    const dueInUs = this.#syncDueInUs(nowUs)
    const isSyncDue = dueInUs !== undefined && dueInUs <= 0
    if (isSyncDue) return { isWriteDue: true, isSyncDue, againInUs: undefined }
    return { isWriteDue: this.#hasUnwrittenBuffered, isSyncDue: false, againInUs: dueInUs }
  }

  /** @returns µs until a sync should start; undefined when nothing needs one. */
  #syncDueInUs(nowUs: number): number | undefined {
    if (this.#isForced || this.#unsyncedBytes >= this.#options.urgentBytes) return 0
    const dues: number[] = []
    if (this.#waiting > 0) {
      const hasAll = this.#waiting >= this.#expected
      const lingerUs = hasAll ? 0 : this.#firstWaitingUs + this.#lingerUs - nowUs
      // Counted from the first that waits: a budget that is in debt would else be waited for again and again.
      const longestUs = this.#firstWaitingUs + MAX_WAIT_US - nowUs
      dues.push(Math.max(lingerUs, Math.min(this.#budget.waitUs(nowUs), longestUs)))
    }
    if (this.#bufferedBytes > 0) {
      dues.push(this.#firstBufferedUs + this.#options.flushIntervalUs - nowUs)
      const pauseUs = this.#syncEndedUs + FLUSH_PAUSE_US - nowUs
      // Who appends meanwhile asks earlier.
      if (this.#bufferedBytes >= this.#options.flushSizeBytes)
        dues.push(pauseUs <= 0 ? 0 : Math.max(pauseUs, LEAST_TIMER_US))
    }
    return dues.length === 0 ? undefined : Math.min(...dues)
  }
}
