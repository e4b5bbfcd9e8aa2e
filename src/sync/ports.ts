/** What sync asks of its surroundings: the log to read, a place for cursors. `runtime/edge.ts` hands both in. */
import type { StoredBatch } from '../sdk/wire/batch.ts'

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
  /** Last local offset the upstream confirmed. */
  readonly confirmedOffset: bigint
  readonly upstreamOffset: bigint | null
}
