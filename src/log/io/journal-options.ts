/** What the journal is given and whom it tells; types only. */
import type { Clock } from '../../clock.ts'
import type { EdgeError } from '../../errors.ts'
import type { Checksum } from '../core/checksum.ts'
import type { FlashBudget } from '../core/flash-budget.ts'
import type { GroupCommitOptions } from '../core/group-commit.ts'
import type { Scheduler } from '../scheduler.ts'
import type { GroupBuilder } from './group-buffer.ts'
import type { JournalFile } from './journal-file.ts'
import type { JournalFiles } from './journal-files.ts'

/** Rules that a test leaves out, to see that the simulation notices. */
export interface JournalRules {
  readonly isAckedBeforeSync?: boolean
  readonly isFailedSyncRetried?: boolean
  readonly isPageAlignmentSkipped?: boolean
  readonly isFileLeftUnsynced?: boolean
  readonly isWrittenAgainInParts?: boolean
}

/** Where the recovered journal goes on. */
export interface JournalStart {
  readonly ordinal: number
  readonly boot: number
  readonly bootHash: number
  readonly last: GroupIdentity
  /** What was found but not proven: written again as the first group. More than one only when a test leaves that rule out. */
  readonly again: readonly GroupBuilder[]
}

export interface GroupIdentity {
  readonly sequence: number
  readonly crc: number
  readonly ordinal: number
}

export interface JournalEvents {
  /** A file is full and synced, or was given up: time to repack. */
  fileSealed(): void
  /** No spare is there for a group that waits: one must come free, or be made. */
  fileWanted(): void
  /** After acks and watermarks of a write or sync: wake who waits for messages. */
  settled(): void
  /** A group that names this machine start is synced. */
  startRecorded(): void
  /** The disk refused; `isWritable` tells whether the log goes on. */
  failed(error: EdgeError, file: JournalFile | undefined): void
  writableAgain(): void
}

export interface JournalOptions {
  readonly files: JournalFiles
  readonly start: JournalStart
  readonly bufferSize: number
  /** Whether the files that take groups now are sealed. */
  readonly isSealing: boolean
  readonly commit: GroupCommitOptions
  readonly budget: FlashBudget
  readonly retryMs: number
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly checksum: Checksum
  readonly randomU64: () => bigint
  readonly events: JournalEvents
  readonly rules?: JournalRules
}

export interface JournalCounters {
  writtenBytes: number
  syncCount: number
  syncFailedCount: number
}
