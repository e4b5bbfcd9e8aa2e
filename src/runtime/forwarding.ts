/** Ties sync to the log and tells what it does in the words of page, health and metrics. */
import type { Clock } from '../clock.ts'
import type { Log, Partition } from '../log/index.ts'
import {
  type CursorStore,
  type LogSource,
  type SourcePartition,
  type Sync,
  type SyncOptions,
  type UpstreamState,
  upstreamSpecOf,
} from '../sync/index.ts'
import type { Config } from './config/schema.ts'
import type { SyncRouteStatus } from './observe/index.ts'

export function syncOptionsOf(config: Config): SyncOptions {
  return { upstreams: config['sync.upstreams'].map(upstreamSpecOf), routes: config['sync.routes'] }
}

export function logSourceOf(log: Log): LogSource {
  return {
    storeId: log.storeId,
    topics: () =>
      [...log.catalog.streams.values()].flatMap((stream) =>
        [...stream.topics.values()].map((topic) => ({
          streamName: stream.name,
          topicName: topic.name,
          partitions: topic.partitions.map(sourcePartitionOf),
        })),
      ),
    onTopicsChanged: (callback) => log.catalog.onChanged(callback),
  }
}

function sourcePartitionOf(partition: Partition): SourcePartition {
  return {
    key: partition.key,
    partitionId: partition.partitionId,
    get logStartOffset() {
      return partition.logStartOffset
    },
    get durableEnd() {
      return partition.durableEnd
    },
    read: (fromOffset, maxCount, maxBytes) => partition.read({ fromOffset, maxCount, maxBytes, upTo: 'durable' }),
    onAppended: (callback) => partition.onAppended(callback),
  }
}

export function cursorStoreOf(log: Log): CursorStore {
  return {
    cursor: (route, partitionKey) => log.metadata.cursor(route, partitionKey),
    setCursor: (route, partitionKey, cursor) => log.metadata.setCursor(route, partitionKey, cursor),
  }
}

/** One row for each route that carries something, worst first. */
export function routeStatuses(sync: Sync | null, clock: Clock): readonly SyncRouteStatus[] {
  if (sync === null) return []
  const nowUs = clock.wallUs()
  return sync.state().upstreams.flatMap((upstream) => {
    const routes = new Set(upstream.partitions.map(({ route }) => route))
    return [...routes].map((route) => statusOf(upstream, route, nowUs))
  })
}

function statusOf(upstream: UpstreamState, route: string, nowUs: bigint): SyncRouteStatus {
  const partitions = upstream.partitions.filter((each) => each.route === route)
  const agoMs = partitions.map(({ confirmedAgoMs }) => confirmedAgoMs).filter((each) => each !== null)
  const blocked = partitions.find(({ reason }) => reason !== null)
  const waitMs = upstream.nextAttemptInMs ?? blocked?.nextAttemptInMs ?? null
  return {
    route,
    upstream: upstream.name,
    address: upstream.url,
    state: stateOf(upstream),
    cause: upstream.reason?.text ?? blocked?.reason?.text ?? '',
    lagMessages: Number(partitions.reduce((sum, { lagCount }) => sum + lagCount, 0n)),
    confirmedMessages: Number(partitions.reduce((sum, { sentCount }) => sum + sentCount, 0n)),
    failureCount: upstream.failureCount,
    nextTryAtUs: waitMs === null ? null : nowUs + BigInt(waitMs) * 1000n,
    lastConfirmedAtUs: agoMs.length === 0 ? null : nowUs - BigInt(Math.min(...agoMs)) * 1000n,
  }
}

function stateOf({ link }: UpstreamState): SyncRouteStatus['state'] {
  if (link === 'up') return 'connected'
  return link === 'connecting' ? 'connecting' : 'waiting'
}
