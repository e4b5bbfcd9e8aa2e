/** What sync is doing, for page, health, metrics and CLI: plain values, no secrets. Types only. */
import type { ErrorCode } from '../errors.ts'
import type { ForwarderState } from './core/forwarder-state.ts'
import type { LinkFailureKind, LinkState } from './core/link.ts'

export interface SyncState {
  readonly upstreams: readonly UpstreamState[]
}

export interface UpstreamState {
  readonly name: string
  /** Without credentials. */
  readonly url: string
  readonly link: LinkState
  /** Why it is not up. */
  readonly reason: SyncReason | null
  readonly failureKind: LinkFailureKind | null
  readonly nextAttemptInMs: number | null
  /** Attempts and links that failed since the start. */
  readonly failureCount: number
  readonly usedTodayBytes: number
  /** The link is up, and a limit that was set for it lets nothing pass now; null when none does. */
  readonly pause: { readonly reason: 'day' | 'rate'; readonly forMs: number } | null
  readonly partitions: readonly SyncPartitionState[]
}

export interface SyncReason {
  readonly code: ErrorCode
  readonly text: string
}

export interface SyncPartitionState {
  readonly route: string
  readonly streamName: string
  readonly topicName: string
  readonly partitionId: number
  readonly state: ForwarderState
  readonly reason: SyncReason | null
  readonly nextAttemptInMs: number | null
  /** Last local offset that is done with; null before the first. */
  readonly confirmedOffset: bigint | null
  readonly durableEnd: bigint
  readonly lagCount: bigint
  /** ms since the upstream confirmed something; null when it never did in this process. */
  readonly confirmedAgoMs: number | null
  readonly sentCount: bigint
  readonly resentCount: bigint
  readonly deadLetterCount: bigint
  readonly gapCount: bigint
  readonly unreadableCount: bigint
}
