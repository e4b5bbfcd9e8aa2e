/** Findings of a forwarder as lines of the log: what an operator may have to know, once each. */
import type { Logger } from '../../logger.ts'
import type { Report } from '../core/forwarder-protocol.ts'
import type { Route, TopicName } from '../core/route.ts'
import type { SourcePartition } from '../ports.ts'

export interface ReportContext {
  readonly route: Route
  readonly source: TopicName
  readonly partition: SourcePartition
  readonly logger: Logger
}

export function reportEvent(context: ReportContext, report: Report): void {
  const { logger, route, source, partition } = context
  const where = {
    upstream: route.upstreamName,
    stream: source.streamName,
    topic: source.topicName,
    partition_id: partition.partitionId,
  }
  switch (report.kind) {
    case 'forgotten':
      logger.warn('sync.upstream.forgot', { ...where, ...rangeOf(report) })
      return
    case 'expired':
      logger.info('sync.upstream.expired', where)
      return
    case 'limited':
      logger.warn('sync.tail.limited', where)
      return
    case 'ahead':
      logger.error('sync.upstream.ahead', { ...where, ...rangeOf(report) })
      return
    case 'gap':
      logger.error('sync.log.gap', { ...where, ...rangeOf(report) })
      return
    case 'hole':
      logger.warn('sync.log.hole', { ...where, ...rangeOf(report) })
      return
    case 'dead-letter':
      logger.error('sync.record.refused', { ...where, ...errorOf(report), offset: report.offset })
      return
    case 'blocked':
      logger.error('sync.partition.blocked', { ...where, ...errorOf(report) })
      return
  }
}

function rangeOf(report: { readonly from: bigint; readonly end: bigint }) {
  return { base_offset: report.from, message_count: report.end - report.from }
}

function errorOf(report: { readonly reason: { readonly code: string; readonly message: string } }) {
  return { error_code: report.reason.code, reason: report.reason.message }
}
