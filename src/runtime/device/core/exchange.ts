/** What the session is told and what it wants done: the whole of its traffic with the shell. */
import type { EdgeError } from '../../../errors.ts'
import type { Durability, ProducerLane } from '../../../log/api.ts'
import type { RecordBatch } from '../../../sdk/wire/batch.ts'
import type { Auth, Frame, FrameFault, PartitionChoice } from '../../../sdk/wire/edge/index.ts'
import type { DownMessage } from '../ports.ts'

/** When something happens: monotonic for waiting, wall for stamps. */
export interface Moment {
  readonly monotonicMs: number
  readonly wallUs: bigint
  readonly isWallTrusted: boolean
  readonly accuracyMs: number
}

export type Input =
  | { readonly type: 'frame'; readonly stream: number; readonly frame: Frame; readonly sizeBytes: number }
  | { readonly type: 'refused'; readonly stream: number; readonly refusal: Refusal }
  | { readonly type: 'datagram'; readonly frame: Frame<'datagram'> }
  /** The device ended its direction, or the stream is gone. */
  | { readonly type: 'stream-ended'; readonly stream: number }
  | { readonly type: 'authenticated'; readonly welcome: WelcomeFacts }
  | { readonly type: 'authentication-failed'; readonly error: EdgeError }
  | { readonly type: 'resolved'; readonly alias: number; readonly target: TargetFacts }
  | { readonly type: 'resolve-failed'; readonly alias: number; readonly error: EdgeError }
  /** Answers of one `append`, in the same turn. Offset null: a full topic took its sequences and gave up the readings. */
  | { readonly type: 'appended'; readonly ticket: number; readonly offset: bigint | null }
  | { readonly type: 'append-refused'; readonly ticket: number; readonly error: EdgeError }
  /** Everything that settled since the last turn: one ack a lane covers it. */
  | { readonly type: 'settled'; readonly results: readonly Settlement[] }
  | { readonly type: 'source-opened'; readonly subscription: number; readonly source: SourceFacts }
  | { readonly type: 'source-refused'; readonly subscription: number; readonly error: EdgeError }
  | { readonly type: 'source-grew'; readonly subscription: number; readonly endOffset: bigint }
  | { readonly type: 'read-done'; readonly subscription: number; readonly read: ReadFacts }
  | { readonly type: 'read-failed'; readonly subscription: number; readonly error: EdgeError }
  /** The edge is short of memory: the lane group's window is set anew. */
  | { readonly type: 'set-window'; readonly bytes: number; readonly readings: number }
  /** Ends the session: at once, or after what is unacknowledged has settled. */
  | { readonly type: 'end'; readonly code: number; readonly retryMs: number; readonly isDraining: boolean }
  | { readonly type: 'tick' }

/** A frame that could not be taken: what is wrong, and what an `error` frame can say about it. */
export interface Refusal {
  readonly fault: FrameFault
  readonly of: number
  readonly ref: number | null
  readonly text: string
}

export interface WelcomeFacts {
  readonly session: number
  readonly mayReadAllKeys: boolean
  readonly lanes: readonly ProducerLane[]
}

export interface TargetFacts {
  readonly partitionId: number
  readonly promise: Durability
  readonly maxPayloadBytes: number
}

export interface Settlement {
  readonly ticket: number
  readonly error: EdgeError | null
}

export interface SourceFacts {
  readonly incarnation: number
  readonly storedOffset: bigint | undefined
  readonly startOffset: bigint
  readonly endOffset: bigint
}

export interface ReadFacts {
  readonly messages: readonly DownMessage[]
  readonly nextOffset: bigint
  readonly endOffset: bigint
  readonly hasHole: boolean
}

/** Which sequences an append disposes of; the shell adds the device's number. */
export interface SequenceTag {
  readonly epoch: number
  readonly lane: number
  readonly firstSequence: number
  readonly sequenceCount: number
}

export type Effect =
  | { readonly type: 'send'; readonly stream: number; readonly frame: Frame }
  | { readonly type: 'authenticate'; readonly name: string; readonly auth: Auth; readonly epoch: number }
  | {
      readonly type: 'resolve'
      readonly alias: number
      readonly topic: string
      readonly partition: PartitionChoice | undefined
    }
  /** Tag null: a datagram, which has no sequence; its ticket is not settled. */
  | {
      readonly type: 'append'
      readonly ticket: number
      readonly alias: number
      readonly batch: RecordBatch
      readonly tag: SequenceTag | null
    }
  | { readonly type: 'record'; readonly ticket: number; readonly tag: SequenceTag }
  /** Readings that will never be stored, for metrics and the operator. */
  | {
      readonly type: 'lost'
      readonly reason: LossReason
      readonly lane: number
      readonly first: number
      readonly count: number
    }
  | {
      readonly type: 'open-source'
      readonly subscription: number
      readonly topic: string
      readonly partition: number | undefined
    }
  | {
      readonly type: 'read'
      readonly subscription: number
      readonly fromOffset: bigint
      readonly maxCount: number
      readonly maxBytes: number
    }
  | { readonly type: 'store-offset'; readonly subscription: number; readonly offset: bigint }
  | { readonly type: 'close-source'; readonly subscription: number }
  /** The device ended its direction: a stream that stays open on one side counts as one of its few. */
  | { readonly type: 'end-stream'; readonly stream: number }
  | { readonly type: 'close'; readonly code: number; readonly reason: string }

export const LOSS_REASONS = [
  'refused',
  'topic-full',
  'skipped-overflow',
  'skipped-expired',
  'skipped-damaged',
  'lost-by-edge',
  'datagram-dropped',
  'message-too-large',
] as const

export type LossReason = (typeof LOSS_REASONS)[number]
