/** What sync asks of its surroundings: the log to read, a place for cursors. `runtime/edge.ts` hands both in. */
import type { Clock } from '../clock.ts'
import type { EdgeError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import type { StoredBatch } from '../sdk/wire/batch.ts'

export interface SyncPorts {
  readonly log: LogSource
  readonly cursors: CursorStore
  readonly clock: Clock
  readonly logger: Logger
  /** Takes records that the upstream refuses for good. Absent: they are counted and named in the log only. */
  readonly deadLetters?: DeadLetterSink
  /** Keeps what was spent of the daily budgets. Absent: they begin anew with the process. */
  readonly budgets?: BudgetStore
  /** 0 <= value < 1, for jitter; defaults to `Math.random`. */
  readonly random?: () => number
}

/** Local topics as sync sees them. */
export interface LogSource {
  readonly storeId: Uint8Array
  /** All topics there are now. */
  topics(): readonly SourceTopic[]
  /** Calls back when topics or partitions came or went. @returns an unsubscribe function. */
  onTopicsChanged(callback: () => void): () => void
}

export interface SourceTopic {
  readonly streamName: string
  readonly topicName: string
  readonly partitions: readonly SourcePartition[]
}

export interface SourcePartition {
  readonly key: number
  readonly partitionId: number
  readonly logStartOffset: bigint
  /** End (exclusive) of what survives a power cut: nothing at or above it is ever sent upstream. */
  readonly durableEnd: bigint
  /** End of what was there when the log was opened, synced or not: an earlier process may have sent all of it. */
  readonly foundEnd: bigint
  /** Reads stored batches up to `durableEnd`; views are valid until the next call. */
  read(fromOffset: bigint, maxCount: number, maxBytes: number): SourceRead | Promise<SourceRead>
  onAppended(callback: () => void): () => void
}

export interface SourceRead {
  readonly batches: readonly StoredBatch[]
  readonly nextOffset: bigint
  readonly messageCount: number
  readonly hole?: { readonly from: bigint; readonly end: bigint }
}

export interface CursorStore {
  cursor(route: string, partitionKey: number): Cursor | undefined
  setCursor(route: string, partitionKey: number, cursor: Cursor): void
}

export interface Cursor {
  /** Last local offset that is done with: the upstream confirmed it, or it was given up and counted. */
  readonly confirmedOffset: bigint
  /** Where our newest record lies upstream, or a lower bound of it where the upstream does not tell. */
  readonly upstreamOffset: bigint | null
  /**
   * Counts how often the upstream was found ahead of the local log (a restored backup), or to be another topic of that name:
   * new ids from then on. Default 0.
   */
  readonly incarnation?: number
}

export interface BudgetStore {
  spent(upstream: string): SpentBudget | undefined
  /** Resolves when it is kept. */
  setSpent(upstream: string, spent: SpentBudget): Promise<void>
}

/** A day's budget as it stood at `atUs` of the wall clock, `elapsedUs` after the day began. */
export interface SpentBudget {
  readonly usedBytes: number
  readonly elapsedUs: number
  readonly atUs: bigint
}

/** A record that the upstream refused for good. */
export interface DeadLetter {
  readonly route: string
  readonly streamName: string
  readonly topicName: string
  readonly partitionId: number
  readonly offset: bigint
  readonly payloadBytes: Uint8Array
  readonly userHeadersBytes: Uint8Array | null
  readonly originUs: bigint
  /** What the upstream said, last. */
  readonly reason: EdgeError
}

export interface DeadLetterSink {
  /** Resolves when the letter is kept as safely as the record was. Called again for the same offset after a failure. */
  add(letter: DeadLetter): Promise<void>
}
