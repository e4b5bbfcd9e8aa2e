import type { ErrorCode } from '../../errors.ts'

/** What happened to the records of one partition on one route since the start: the books behind metrics and page. */
export class ForwarderCounters {
  /** Confirmed by an answer. */
  sentCount = 0n
  /** Confirmed, lost by the upstream, and sent again. */
  resentCount = 0n
  /** Refused by the upstream for good. */
  deadLetterCount = 0n
  /** Dropped by local retention before they were sent. */
  gapCount = 0n
  /** Unreadable locally. */
  unreadableCount = 0n
  /** Monotonic time of the last confirmation. */
  lastConfirmedUs: number | null = null
  /** Trouble that was already reported: once per kind, not once per attempt. */
  blockedBy: ErrorCode | null = null
}
