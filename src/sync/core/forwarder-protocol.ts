/** What goes into the forwarder of a partition and what comes out: inputs, effects, reports, its view. Types only. */
import type { EdgeError } from '../../errors.ts'
import type { BackoffPolicy } from '../../sdk/index.ts'
import type { Cursor } from '../ports.ts'
import type { BatchBounds } from './batcher.ts'
import type { FailureKind } from './failure.ts'
import type { ForwarderCounters } from './forwarder-counters.ts'
import type { ForwarderState } from './forwarder-state.ts'
import type { Finding } from './reconcile.ts'
import type { RecordContent } from './record-content.ts'
import type { TailPage, TailRequest } from './tail.ts'

export type Input =
  | { readonly type: 'link-up' }
  | { readonly type: 'link-down'; readonly error: EdgeError }
  | { readonly type: 'appended'; readonly logStart: bigint; readonly durableEnd: bigint }
  /** Another incarnation: a topic of that name that was made anew. */
  | { readonly type: 'topic-ready'; readonly ticket: number; readonly incarnation: string }
  | { readonly type: 'tail'; readonly ticket: number; readonly page: TailPage }
  /** Whether the local log has that record at that offset; true where it cannot tell. */
  | { readonly type: 'compared'; readonly ticket: number; readonly isSame: boolean }
  | { readonly type: 'read'; readonly ticket: number; readonly read: ReadSummary }
  /** Less than the batch may be sent now: others have used the budget up that it was read for. */
  | { readonly type: 'over-budget'; readonly ticket: number }
  /** The batch is handed to the link: from now on it may arrive. */
  | { readonly type: 'sent'; readonly ticket: number }
  | { readonly type: 'confirmed'; readonly ticket: number; readonly upstreamBaseOffset: bigint | null }
  | { readonly type: 'failed'; readonly ticket: number; readonly failure: Failure }
  | { readonly type: 'dead-letter-kept'; readonly ticket: number }
  /** The upstream does not know the topic any more, or has a younger one of that name. */
  | { readonly type: 'topic-lost' }
  | { readonly type: 'woken' }
  /** The network changed: pauses end now. */
  | { readonly type: 'probe' }

/** What a local read gave; the records stay with the shell. */
export interface ReadSummary {
  readonly count: number
  readonly sizeBytes: number
  /** Where to read on after these records, and after any hole on the way. */
  readonly nextOffset: bigint
  readonly hole: { readonly from: bigint; readonly end: bigint } | null
}

export interface Failure {
  readonly kind: FailureKind
  readonly error: EdgeError
  /** What the peer asked for, if it did. */
  readonly retryAfterUs?: number
}

export type Effect =
  /** Anew: the upstream itself is asked which topic it is, whatever the link knows of it. */
  | { readonly type: 'ensure-topic'; readonly ticket: number; readonly isAnew: boolean }
  | { readonly type: 'poll-tail'; readonly ticket: number; readonly request: TailRequest }
  | { readonly type: 'compare'; readonly ticket: number; readonly offset: bigint; readonly content: RecordContent }
  | { readonly type: 'read'; readonly ticket: number; readonly fromOffset: bigint; readonly bounds: BatchBounds }
  /** First answered by `sent`, or by `over-budget`, after which nothing is sent. A batch under suspicion needs the link for itself. */
  | { readonly type: 'send'; readonly ticket: number; readonly idPrefix: bigint; readonly suspicion: number }
  | { readonly type: 'keep-dead-letter'; readonly ticket: number; readonly offset: bigint; readonly reason: EdgeError }
  | { readonly type: 'commit-cursor'; readonly cursor: Cursor }
  /** Told so by the upstream: what others send there may reach one that is made anew. */
  | { readonly type: 'topic-missing' }
  | { readonly type: 'wake'; readonly atUs: number }
  | { readonly type: 'report'; readonly report: Report }

/** Worth a line in the log; everything else is in the view. */
export type Report =
  | Exclude<Finding, { kind: 'agreed' | 'recovered' }>
  | { readonly kind: 'hole' | 'gap'; readonly from: bigint; readonly end: bigint }
  | { readonly kind: 'dead-letter'; readonly offset: bigint; readonly reason: EdgeError }
  | { readonly kind: 'blocked'; readonly reason: EdgeError }

export interface ForwarderOptions {
  readonly idPrefix: (incarnation: number) => bigint
  readonly cursor: Cursor | undefined
  readonly logStart: bigint
  readonly durableEnd: bigint
  /** End of what the log had when it was opened, before anything new came: what an earlier process can have sent at most. */
  readonly foundEnd: bigint
  readonly bounds: BatchBounds
  readonly retry: BackoffPolicy
  readonly blockedRetryUs: number
  readonly settleUs: number
  readonly maxRefusals: number
  readonly maxDeadLettersInRow: number
  readonly tailPageCount: number
  readonly tailScanMaxCount: number
  readonly random: () => number
}

export interface ForwarderView {
  readonly state: ForwarderState
  /** When it last got on, or had nothing to do. */
  readonly progressUs: number
  readonly nextAttemptUs: number | null
  readonly reason: EdgeError | null
  readonly confirmedOffset: bigint | null
  readonly nextOffset: bigint
  readonly durableEnd: bigint
  readonly counters: Readonly<ForwarderCounters>
}

/** An effect that is answered by an input with the same ticket. */
export type Question =
  Extract<Effect, { ticket: number }> extends infer E
    ? E extends { ticket: number }
      ? Omit<E, 'ticket'>
      : never
    : never
