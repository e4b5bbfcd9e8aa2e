/** Routes of our own: health, metrics, and what the inspection page asks for. */
import { EdgeError } from '../../../errors.ts'
import type { StoredBatch } from '../../../sdk/wire/batch.ts'
import type { Broker, Caller, PollResult } from '../../broker/api.ts'
import {
  collectMetrics,
  formatMetrics,
  type HealthMonitor,
  type MetricSources,
  type OverviewSources,
  type ReadingView,
  topicPath,
  type VisibleTopic,
  viewHealth,
  viewOverview,
  viewReading,
} from '../../observe/index.ts'
import { type Access, notFound, type Reply, type Route } from '../http-types.ts'
import { stringifyExact } from '../json.ts'
import { pathIdentifier } from '../path-values.ts'
import { eachRecord } from '../stored-records.ts'

export interface EdgeRouteContext {
  readonly broker: Broker
  readonly health: Pick<HealthMonitor, 'health'>
  readonly metrics: MetricSources
  readonly overview: OverviewSources
  readonly metricsRoute: { readonly path: string; readonly access: Access } | null
  nowUs(): bigint
}

const OPENMETRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
const PLAIN = 'text/plain; charset=utf-8'
const DEFAULT_NEWEST = 10
const MAX_NEWEST = 50
/** Partitions looked at for the newest messages of a topic. */
const MAX_NEWEST_PARTITIONS = 16

export function edgeRoutes(context: EdgeRouteContext): readonly Route[] {
  const { broker, health, metrics, metricsRoute, overview } = context
  const routes: Route[] = [
    { method: 'GET', path: '/health/live', access: 'public', handle: () => exactJson({ status: 'live' }) },
    {
      method: 'GET',
      path: '/health/ready',
      access: 'public',
      handle: () => readyReply(health),
    },
    {
      method: 'GET',
      path: '/health',
      access: 'details',
      // Health is asked by machines that cannot log in: they get the word, those who may know get the checks.
      handle: ({ isKnown }) => exactJson(isKnown ? viewHealth(health.health) : { status: health.health.status }),
    },
    {
      method: 'GET',
      path: '/edge/overview',
      access: 'token',
      handle({ caller, query }) {
        // Disk, upstreams and listeners are for those who may read the server's state.
        broker.stats(caller)
        const topics = visibleTopics(broker, caller, overview)
        return exactJson(viewOverview(overview, { topics, filter: query.text('filter') ?? '' }, context.nowUs()))
      },
    },
    {
      method: 'GET',
      path: '/edge/topics/{stream_id}/{topic_id}/newest',
      access: 'token',
      async handle(request) {
        const [stream, topic] = [pathIdentifier(request, 'stream_id'), pathIdentifier(request, 'topic_id')]
        const found = broker.topic(request.caller, stream, topic)
        if (found === undefined) return notFound()
        const count = Math.min(request.query.u32('count') ?? DEFAULT_NEWEST, MAX_NEWEST)
        const filled = found.partitions.filter(({ messageCount }) => messageCount > 0)
        const partitions = filled.slice(0, MAX_NEWEST_PARTITIONS)
        const messages: NewestMessage[] = []
        for (const { partitionId } of partitions) {
          const polled = broker.poll(request.caller, {
            consumer: { kind: 'consumer', id: 0 },
            stream,
            topic,
            partitionId,
            strategy: { kind: 'last' },
            count,
            autoCommit: false,
          })
          const view = ({ batches }: PollResult): NewestMessage[] =>
            batches.flatMap((batch) => viewBatch(partitionId, batch))
          // Viewed in the turn that brings the batches: their bytes live no longer.
          const viewed = polled instanceof Promise ? await polled.then(view) : view(polled)
          messages.push(...viewed)
        }
        messages.sort(newestFirst)
        const unread = filled.slice(MAX_NEWEST_PARTITIONS).map(({ partitionId }) => partitionId)
        return exactJson({ messages: messages.slice(0, count), partitions_not_read: unread })
      },
    },
  ]
  if (metricsRoute === null) return routes
  return [
    ...routes,
    {
      method: 'GET',
      ...metricsRoute,
      handle(request) {
        const accept = String(request.headers.accept ?? '')
        const type = accept.includes('application/openmetrics-text') ? OPENMETRICS : PLAIN
        return { status: 200, headers: { 'content-type': type }, body: formatMetrics(collectMetrics(metrics)) }
      },
    },
  ]
}

interface NewestMessage {
  readonly partition_id: number
  readonly offset: bigint
  readonly timestamp_us: bigint
  readonly size_bytes: number
  readonly reading: Omit<ReadingView, 'isCut'> & { readonly is_cut: boolean }
}

function viewBatch(partitionId: number, batch: StoredBatch): NewestMessage[] {
  const messages: NewestMessage[] = []
  eachRecord(batch, ({ offset, payloadView }) => {
    const { format, text, isCut, readings } = viewReading(payloadView)
    messages.push({
      partition_id: partitionId,
      offset,
      timestamp_us: batch.appendTimeUs,
      size_bytes: payloadView.length,
      reading: { format, text, is_cut: isCut, ...(readings === undefined ? {} : { readings }) },
    })
  })
  return messages
}

/** Messages of one batch share their time. */
function newestFirst(a: NewestMessage, b: NewestMessage): number {
  if (a.timestamp_us !== b.timestamp_us) return a.timestamp_us < b.timestamp_us ? 1 : -1
  return a.offset < b.offset ? 1 : -1
}

function readyReply(health: Pick<HealthMonitor, 'health'>): Reply {
  const { status, checks } = health.health
  if (status !== 'not-ready') return exactJson({ status: 'ready' })
  const bad = checks.filter(({ state, isEssential }) => isEssential && state !== 'ok' && state !== 'off')
  const body = { status, checks: bad.map(({ name, state, cause, action }) => ({ name, state, cause, action })) }
  return exactJson(
    bad.length > 0 ? body : { status, checks: [{ name: 'process', state: 'starting', cause: '', action: '' }] },
    503,
  )
}

/** Topics in the order of their names, those left out that the caller may not see. */
function visibleTopics(broker: Broker, caller: Caller, { catalog }: OverviewSources): VisibleTopic[] {
  const visible: VisibleTopic[] = []
  for (const stream of catalog.streams.values()) {
    for (const topic of stream.topics.values()) {
      const isVisible = unlessForbidden(() => broker.topic(caller, stream.id, topic.id)) !== undefined
      if (isVisible) visible.push({ streamName: stream.name, topic })
    }
  }
  return visible.sort((a, b) => (topicPath(a) < topicPath(b) ? -1 : 1))
}

function unlessForbidden<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if (error instanceof EdgeError && error.code === 'EDGE_FORBIDDEN') return undefined
    throw error
  }
}

function exactJson(value: unknown, status = 200): Reply {
  return { status, headers: { 'content-type': 'application/json' }, body: stringifyExact(value) }
}
