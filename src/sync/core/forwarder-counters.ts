import type { ErrorCode } from '../../errors.ts'

/** What happened to the records of one partition on one route since the start: the books behind metrics and page. */
export class ForwarderCounters {
  /** Confirmed by an answer, and the bytes of their payloads and headers. */
  sentCount = 0n
  sentBytes = 0
  /** Sent with an unknown outcome and found upstream later: duplicates that were not made. */
  recoveredCount = 0n
  /** Confirmed, lost by the upstream, and sent again. */
  forgottenCount = 0n
  /** Refused by the upstream for good. */
  deadLetterCount = 0n
  /** Dropped by local retention before they were sent. */
  gapCount = 0n
  /** Unreadable locally. */
  holeCount = 0n
  /** Monotonic time of the last confirmation. */
  lastConfirmedUs: number | null = null
  /** Trouble that was already reported: once per kind, not once per attempt. */
  blockedBy: ErrorCode | null = null
}
