/** Takes the values of all metrics from where they are kept, at the moment of a scrape. Pure. */
import type { Catalog, LogFinding, LogStats, Topic } from '../../log/index.ts'
import type { QuicTraffic } from '../../quic-edge/index.ts'
import type { DeviceTraffic } from '../device/index.ts'
import type { ListenerOccupancy } from './connection-reports.ts'
import type { Health } from './health.ts'
import type { Sample } from './metrics.ts'
import type { SyncRouteStatus } from './overview.ts'

export interface MetricSources {
  readonly startedAtUs: bigint
  readonly catalog: Pick<Catalog, 'streams'>
  userCount(): number
  clientCount(): number
  httpRequestCount(): number
  httpConnectionCount(): number
  residentBytes(): number
  /** Longest delay since the last call, µs. */
  takeLoopDelayUs(): number
  /** Of the listeners that are on. */
  occupancies(): readonly ListenerOccupancy[]
  /** Null while plain QUIC is off: its metrics are left out then. */
  quicTraffic(): QuicTraffic | null
  /** Null while no device can come. */
  deviceTraffic(): DeviceTraffic | null
  logStats(): LogStats
  isWritable(): boolean
  findings(): readonly LogFinding[]
  sync(): readonly SyncRouteStatus[]
  health(): Health
}

export function collectMetrics(sources: MetricSources): readonly Sample[] {
  return [
    ...collectIggy(sources),
    ...collectProcess(sources),
    ...collectConnections(sources.occupancies()),
    ...collectQuic(sources.quicTraffic()),
    ...collectDevices(sources.deviceTraffic()),
    ...collectLog(sources),
    ...collectSync(sources.sync()),
  ]
}

function collectIggy(sources: MetricSources): readonly Sample[] {
  const streams = [...sources.catalog.streams.values()]
  const topics = streams.flatMap((stream) => [...stream.topics.values()])
  const partitions = topics.flatMap((topic: Topic) => topic.partitions)
  return [
    { metric: 'httpRequests', value: sources.httpRequestCount() },
    { metric: 'streams', value: streams.length },
    { metric: 'topics', value: topics.length },
    { metric: 'partitions', value: partitions.length },
    { metric: 'segments', value: sources.logStats().segmentCount },
    { metric: 'messages', value: partitions.reduce((total, { messageCount }) => total + messageCount, 0) },
    { metric: 'users', value: sources.userCount() },
    { metric: 'clients', value: sources.clientCount() },
  ]
}

function collectProcess(sources: MetricSources): readonly Sample[] {
  const { status, checks } = sources.health()
  const enabled = checks.filter(({ state }) => state !== 'off')
  return [
    { metric: 'startTime', value: Number(sources.startedAtUs) / 1e6 },
    { metric: 'residentMemory', value: sources.residentBytes() },
    { metric: 'loopDelay', value: sources.takeLoopDelayUs() / 1e6 },
    { metric: 'isReady', value: status === 'not-ready' ? 0 : 1 },
    ...enabled.map(({ name, state }): Sample => ({ metric: 'checkOk', value: state === 'ok' ? 1 : 0, labels: [name] })),
    { metric: 'httpConnections', value: sources.httpConnectionCount() },
  ]
}

function collectConnections(occupancies: readonly ListenerOccupancy[]): readonly Sample[] {
  return occupancies.flatMap(({ name, openConnections, maxConnections, refusedConnections }): Sample[] => [
    { metric: 'listenerConnections', value: openConnections, labels: [name] },
    { metric: 'listenerLimit', value: maxConnections, labels: [name] },
    { metric: 'listenerRefused', value: refusedConnections, labels: [name] },
  ])
}

function collectQuic(traffic: QuicTraffic | null): readonly Sample[] {
  if (traffic === null) return []
  return [
    { metric: 'quicConnections', value: traffic.openConnections },
    { metric: 'quicAccepted', value: traffic.acceptedConnections },
    ...Object.entries(traffic.refusedConnections).map(
      ([reason, value]): Sample => ({ metric: 'quicRefused', value, labels: [reason] }),
    ),
    { metric: 'quicFailedHandshakes', value: traffic.failedHandshakes },
    { metric: 'quicRetries', value: traffic.retries },
    { metric: 'quicReceivedPackets', value: traffic.receivedPackets },
    { metric: 'quicSentPackets', value: traffic.sentPackets },
    { metric: 'quicLostPackets', value: traffic.lostPackets },
    { metric: 'quicDropped', value: traffic.strayDatagrams, labels: ['stray'] },
    { metric: 'quicDropped', value: traffic.unsentDatagrams, labels: ['unsent'] },
  ]
}

function collectDevices(traffic: DeviceTraffic | null): readonly Sample[] {
  if (traffic === null) return []
  return [
    { metric: 'devices', value: traffic.connectedCount },
    ...Object.entries(traffic.lostReadings).map(
      ([reason, value]): Sample => ({ metric: 'deviceLostReadings', value, labels: [reason] }),
    ),
  ]
}

function collectLog(sources: MetricSources): readonly Sample[] {
  const stats = sources.logStats()
  const findings = sources.findings()
  const countOf = (level: LogFinding['level']): number => findings.filter((finding) => finding.level === level).length
  return [
    { metric: 'appendedMessages', value: stats.appendedMessages },
    { metric: 'appendedBytes', value: stats.appendedRecordBytes },
    { metric: 'writtenBytes', value: stats.writtenBytes },
    { metric: 'syncs', value: stats.syncCount },
    { metric: 'failedSyncs', value: stats.syncFailedCount },
    { metric: 'lastSync', value: stats.lastSyncUs / 1e6 },
    { metric: 'droppedMessages', value: stats.droppedMessages },
    { metric: 'journalUsed', value: stats.journalUsedBytes },
    { metric: 'refusingFolders', value: stats.refusingFolderCount },
    { metric: 'diskUsed', value: stats.diskUsedBytes },
    { metric: 'diskBudget', value: stats.diskBudgetBytes },
    { metric: 'diskFree', value: stats.diskFreeBytes },
    { metric: 'flashBudget', value: stats.flashBudgetPerDayBytes },
    { metric: 'flashLeft', value: stats.flashBudgetLeftBytes },
    { metric: 'isWritable', value: sources.isWritable() ? 1 : 0 },
    { metric: 'findings', value: countOf('error'), labels: ['error'] },
    { metric: 'findings', value: countOf('warn'), labels: ['warn'] },
  ]
}

function collectSync(routes: readonly SyncRouteStatus[]): readonly Sample[] {
  return routes.flatMap(({ route, state, ...counts }): Sample[] => [
    { metric: 'syncConnected', value: state === 'connected' || state === 'paused' ? 1 : 0, labels: [route] },
    { metric: 'syncLag', value: counts.lagMessages, labels: [route] },
    { metric: 'syncConfirmed', value: counts.confirmedMessages, labels: [route] },
    { metric: 'syncGap', value: counts.gapMessages, labels: [route] },
    { metric: 'syncUnreadable', value: counts.unreadableMessages, labels: [route] },
    { metric: 'syncDeadLetters', value: counts.deadLetterMessages, labels: [route] },
    { metric: 'syncResent', value: counts.resentMessages, labels: [route] },
    { metric: 'syncFailures', value: counts.failureCount, labels: [route] },
  ])
}
