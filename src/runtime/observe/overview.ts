/**
 * What the inspection page shows, as JSON: topics with their offsets and lags, upstreams, disk and flash, findings. Fed
 * through ports; counts only, rates are made by whoever asks twice. Pure.
 */
import type { Catalog, LogFinding, LogStats, MetadataStore, Partition, Topic } from '../../log/index.ts'
import type { DeviceTraffic } from '../device/index.ts'
import { findingAdvice } from './finding-advice.ts'
import type { Health } from './health.ts'

/** One route of sync as sync itself tells it. */
export interface SyncRouteStatus {
  /** As its cursors are stored. */
  readonly route: string
  readonly upstream: string
  /** Without user and password. */
  readonly address: string
  /**
   * `paused`: connected, but a limit that was set for the link lets nothing pass now. `blocked`: goes on only when an
   * operator acts; tried again slowly.
   */
  readonly state: 'connected' | 'paused' | 'connecting' | 'waiting' | 'blocked' | 'stopped'
  /** Why nothing moves; empty when it does. */
  readonly cause: string
  /** What an operator can do about the cause; empty without one. */
  readonly action: string
  /** Durable messages not confirmed yet, over all partitions. */
  readonly lagMessages: number
  readonly confirmedMessages: number
  /** Given up by local retention before they were sent, since the start as all that follows. */
  readonly gapMessages: number
  /** Not readable here. */
  readonly unreadableMessages: number
  /** Refused by the upstream for good, and set aside. */
  readonly deadLetterMessages: number
  /** Confirmed once, lost by the upstream, and sent again. */
  readonly resentMessages: number
  /** Of the upstream, over all its routes; null without a daily budget. */
  readonly today: { readonly usedBytes: number; readonly budgetBytes: number } | null
  readonly failureCount: number
  /** Wall clock, µs: of the next attempt, or of the end of a pause; null while connected. */
  readonly nextTryAtUs: bigint | null
  /** Wall clock, µs; null before the first one. */
  readonly lastConfirmedAtUs: bigint | null
}

export interface ListenerStatus {
  readonly name: string
  readonly isEnabled: boolean
  readonly address: string
  /** What it serves; null without TLS. */
  readonly certificate: { readonly sha256: string; readonly notAfterMs: number } | null
}

/** How far upstreams are behind, by partition. */
export interface SyncLags {
  /** Durable messages that the upstream furthest behind has not confirmed; null when no route forwards the partition. */
  lagOf(streamName: string, topicName: string, partitionId: number): bigint | null
}

export interface OverviewSources {
  readonly version: string
  readonly catalog: Pick<Catalog, 'streams'>
  readonly metadata: Pick<MetadataStore, 'groupsOf' | 'offset'>
  /** Since the start, by the monotonic clock: the wall clock of a gateway jumps. */
  uptimeUs(): number
  logStats(): LogStats
  findings(): readonly LogFinding[]
  isWritable(): boolean
  listeners(): readonly ListenerStatus[]
  /** Null while no device can come. */
  deviceTraffic(): DeviceTraffic | null
  sync(): readonly SyncRouteStatus[]
  syncLags(): SyncLags
  health(): Health
}

/** A topic the caller may see, with the name of its stream. */
export interface VisibleTopic {
  readonly streamName: string
  readonly topic: Topic
}

/** What a caller asks to see. */
export interface OverviewQuery {
  /** All that the caller may see, in the order to list them. */
  readonly topics: readonly VisibleTopic[]
  /** Only topics with this in `stream/topic` are listed, in either case; empty: all. */
  readonly filter: string
}

/** More topics or partitions than a page can show are counted, not listed. */
export const MAX_LISTED_TOPICS = 200
const MAX_LISTED_PARTITIONS = 64
const MAX_LISTED_GROUPS = 16
const MAX_LISTED_FINDINGS = 50

export type Overview = ReturnType<typeof viewOverview>

export function viewOverview(sources: OverviewSources, { topics, filter }: OverviewQuery, nowUs: bigint) {
  const wanted = filter.toLowerCase()
  const matching = wanted === '' ? topics : topics.filter((topic) => topicPath(topic).toLowerCase().includes(wanted))
  const stats = sources.logStats()
  const lags = sources.syncLags()
  const findings = sources.findings()
  return {
    now_us: nowUs,
    version: sources.version,
    uptime_us: Math.round(sources.uptimeUs()),
    health: viewHealth(sources.health()),
    listeners: sources
      .listeners()
      .filter(({ isEnabled }) => isEnabled)
      .map(viewListener),
    devices: viewDevices(sources.deviceTraffic()),
    totals: {
      streams: sources.catalog.streams.size,
      topics: topics.length,
      appended_messages: stats.appendedMessages,
      appended_bytes: stats.appendedRecordBytes,
      dropped_messages: stats.droppedMessages,
    },
    topics: matching.slice(0, MAX_LISTED_TOPICS).map((visible) => viewTopic(sources.metadata, lags, visible)),
    topics_not_listed: Math.max(0, matching.length - MAX_LISTED_TOPICS),
    sync: sources.sync().map(viewRoute),
    disk: viewDisk(stats, sources.isWritable()),
    findings_not_listed: Math.max(0, findings.length - MAX_LISTED_FINDINGS),
    findings: findings.slice(-MAX_LISTED_FINDINGS).reverse().map(viewFinding),
  }
}

/** As routes name it. */
export function topicPath({ streamName, topic }: VisibleTopic): string {
  return `${streamName}/${topic.name}`
}

function viewListener({ name, address, certificate }: ListenerStatus) {
  const ends =
    certificate === null ? null : { sha256: certificate.sha256, ends_at_us: BigInt(certificate.notAfterMs) * 1000n }
  return { name, address, certificate: ends }
}

function viewDevices(traffic: DeviceTraffic | null) {
  if (traffic === null) return null
  const lost = Object.entries(traffic.lostReadings).filter(([, count]) => count > 0)
  return { connected: traffic.connectedCount, lost_readings: lost.map(([reason, count]) => ({ reason, count })) }
}

export function viewHealth(health: Health) {
  return {
    status: health.status,
    checks: health.checks.map(({ name, state, cause, action, forUs }) => ({
      name,
      state,
      cause,
      action,
      for_seconds: Math.floor(forUs / 1_000_000),
    })),
  }
}

function viewTopic(metadata: OverviewSources['metadata'], lags: SyncLags, { streamName, topic }: VisibleTopic) {
  const { partitions, options } = topic
  const listed = partitions.slice(0, MAX_LISTED_PARTITIONS)
  const syncLag = ({ partitionId }: Partition) => lags.lagOf(streamName, topic.name, partitionId)
  return {
    stream_id: topic.streamId,
    stream: streamName,
    topic_id: topic.id,
    topic: topic.name,
    promise: options.durability,
    overflow: options.overflow,
    message_expiry_us: options.messageExpiryUs,
    max_size_bytes: options.maxSizeBytes,
    messages: sum(partitions, (partition) => partition.messageCount),
    size_bytes: sum(partitions, (partition) => partition.sizeBytes),
    /** Grows by one with each message ever appended: what rates are made of. */
    appended: partitions.reduce((total, partition) => total + partition.nextOffset, 0n),
    partitions_count: partitions.length,
    partitions_not_listed: partitions.length - listed.length,
    partitions: listed.map((partition) => viewPartition(partition, syncLag(partition))),
    groups: viewGroups(metadata, topic),
    groups_not_listed: Math.max(0, metadata.groupsOf(topic.streamId, topic.id).length - MAX_LISTED_GROUPS),
    sync_lag: partitions.reduce(
      (total, partition) => {
        const lag = syncLag(partition)
        return lag === null ? total : (total ?? 0n) + lag
      },
      null as bigint | null,
    ),
  }
}

function viewPartition(partition: Partition, syncLag: bigint | null) {
  return {
    id: partition.partitionId,
    first_offset: partition.logStartOffset,
    next_offset: partition.nextOffset,
    durable_end: partition.durableEnd,
    messages: partition.messageCount,
    size_bytes: partition.sizeBytes,
    holes: partition.holes.map(({ from, end, reason }) => ({ from, end, reason })),
    sync_lag: syncLag,
  }
}

function viewGroups(metadata: OverviewSources['metadata'], topic: Topic) {
  const groups = metadata.groupsOf(topic.streamId, topic.id).slice(0, MAX_LISTED_GROUPS)
  return groups.map(({ id, name }) => ({
    name,
    lag: topic.partitions.reduce((total, partition) => {
      const stored = metadata.offset(partition.key, 'group', id)
      return total + lagOf(partition.visibleEnd, stored ?? partition.logStartOffset - 1n, partition.logStartOffset)
    }, 0n),
  }))
}

/** @returns kept messages after `doneOffset` and before `end`. */
function lagOf(end: bigint, doneOffset: bigint, startOffset: bigint): bigint {
  const from = doneOffset + 1n > startOffset ? doneOffset + 1n : startOffset
  return end > from ? end - from : 0n
}

function viewRoute(route: SyncRouteStatus) {
  return {
    route: route.route,
    upstream: route.upstream,
    address: route.address,
    state: route.state,
    cause: route.cause,
    action: route.action,
    lag_messages: route.lagMessages,
    confirmed_messages: route.confirmedMessages,
    gap_messages: route.gapMessages,
    unreadable_messages: route.unreadableMessages,
    dead_letter_messages: route.deadLetterMessages,
    resent_messages: route.resentMessages,
    used_today_bytes: route.today?.usedBytes ?? null,
    daily_budget_bytes: route.today?.budgetBytes ?? null,
    failures: route.failureCount,
    next_try_at_us: route.nextTryAtUs,
    last_confirmed_at_us: route.lastConfirmedAtUs,
  }
}

function viewDisk(stats: LogStats, isWritable: boolean) {
  return {
    is_writable: isWritable,
    used_bytes: stats.diskUsedBytes,
    budget_bytes: stats.diskBudgetBytes,
    free_bytes: stats.diskFreeBytes,
    total_bytes: stats.diskTotalBytes,
    written_bytes: stats.writtenBytes,
    appended_bytes: stats.appendedRecordBytes,
    syncs: stats.syncCount,
    failed_syncs: stats.syncFailedCount,
    last_sync_us: stats.lastSyncUs,
    flash_budget_per_day_bytes: stats.flashBudgetPerDayBytes,
    flash_budget_left_bytes: stats.flashBudgetLeftBytes,
  }
}

function viewFinding(finding: LogFinding) {
  return {
    at_us: finding.atUs,
    level: finding.level,
    event: finding.event,
    text: finding.text,
    action: findingAdvice(finding),
  }
}

function sum<T>(items: readonly T[], amountOf: (item: T) => number): number {
  return items.reduce((total, item) => total + amountOf(item), 0)
}
