/** Sections `[[sync.upstreams]]` and `[[sync.routes]]`: where topics are forwarded to, and what a link may take. */
import {
  duration,
  GIB,
  HOUR_MS,
  integer,
  KIB,
  MIB,
  MINUTE_MS,
  SECOND_MS,
  secret,
  size,
  text,
  type ValuesOf,
} from '../setting.ts'
import { SYNC_DEFAULTS } from './defaults.ts'
import type { UpstreamSpec } from './options.ts'

const D = SYNC_DEFAULTS

export const SYNC_UPSTREAM_SETTINGS = {
  name: text('', 'Name of the upstream, which routes refer to.'),
  url: secret('', 'iggy+tcp://user:password@host:port, iggy+wt://.. or iggy+http://..; options as in docs/sdk.md.'),
  max_batch_count: integer({ default: D.maxBatchCount, min: 1, max: 100_000 }, 'Most records in one send.'),
  max_batch_bytes: size({ default: D.maxBatchBytes, min: KIB, max: 8 * MIB }, 'Most bytes in one send.'),
  max_in_flight: integer(
    { default: D.maxInFlight, min: 1, max: 64 },
    'Sends of different partitions on their way at the same time.',
  ),
  retry_delay_min: duration(
    { default: D.retryDelayMinMs, min: 10, max: MINUTE_MS },
    'Ceiling of the first pause after a failure; it doubles from there.',
  ),
  retry_delay_max: duration(
    { default: D.retryDelayMaxMs, min: SECOND_MS, max: HOUR_MS },
    'No pause between attempts is longer.',
  ),
  retry_delay_silent_max: duration(
    { default: D.retryDelaySilentMaxMs, min: SECOND_MS, max: HOUR_MS },
    'Nor, after an attempt to which nothing answered, than this; an attempt sends some 500 bytes over TCP then, so longer saves bytes on metered links.',
  ),
  stable_after: duration(
    { default: D.stableAfterMs, min: SECOND_MS, max: HOUR_MS },
    'Pauses begin short again after a link has stood this long.',
  ),
  settle: duration(
    { default: D.settleMs, min: 0, max: MINUTE_MS },
    'A send without an answer is repeated no sooner: it may still arrive.',
  ),
  max_refusals: integer(
    { default: D.maxRefusals, min: 1, max: 100 },
    'A record that the upstream refuses so often by name goes to the dead letters.',
  ),
  connect_timeout: duration(
    { default: D.connectTimeoutMs, min: SECOND_MS, max: 5 * MINUTE_MS },
    'Name lookup, connection and TLS must be done within this time.',
  ),
  request_timeout_max: duration(
    { default: D.requestTimeoutMaxMs, min: SECOND_MS, max: 10 * MINUTE_MS },
    'Answers are waited for by the measured round trip, but never longer than this and the time to transfer the batch.',
  ),
  heartbeat_interval: duration(
    { default: D.heartbeatIntervalMs, min: SECOND_MS, max: 10 * MINUTE_MS },
    'An idle link is pinged this often; longer saves bytes on metered links and notices a dead one later.',
  ),
  topic_check_interval: duration(
    { default: D.topicCheckIntervalMs, min: 0, max: HOUR_MS },
    'Topics are looked for upstream this often, so that one that was deleted or made anew there is filled again; longer saves bytes on metered links; 0: a deleted one is noticed with the next message.',
  ),
  tail_scan_max_count: integer(
    { default: D.tailScanMaxCount, min: 1, max: 1_000_000_000 },
    'Without a cursor, or below where it has our newest record, so many messages of the upstream are searched for ours before a topic is taken as new there.',
  ),
  max_bytes_per_second: size(
    { default: D.maxBytesPerSecond, min: 0, max: 10 * GIB },
    'Rate at which records are sent; 0: no limit.',
  ),
  daily_budget: size(
    { default: D.dailyBudgetBytes, min: 0, max: 1024 * GIB },
    'Bytes of records sent in 24 hours, restarts included; 0: no limit.',
  ),
} as const

export const SYNC_ROUTE_SETTINGS = {
  from: text('', 'Local stream/topic, with * for any characters: sensors/*.'),
  to: text('', 'upstream:stream/topic, with {stream} and {topic} of the local side: central:site-7/{topic}.'),
} as const

/** @returns one upstream of the configuration in the words of `startSync`. */
export function upstreamSpecOf(values: ValuesOf<typeof SYNC_UPSTREAM_SETTINGS>): UpstreamSpec {
  return {
    name: values.name,
    url: values.url,
    maxBatchCount: values.max_batch_count,
    maxBatchBytes: values.max_batch_bytes,
    maxInFlight: values.max_in_flight,
    retryDelayMinMs: values.retry_delay_min,
    retryDelayMaxMs: values.retry_delay_max,
    retryDelaySilentMaxMs: values.retry_delay_silent_max,
    stableAfterMs: values.stable_after,
    settleMs: values.settle,
    maxRefusals: values.max_refusals,
    connectTimeoutMs: values.connect_timeout,
    requestTimeoutMaxMs: values.request_timeout_max,
    heartbeatIntervalMs: values.heartbeat_interval,
    topicCheckIntervalMs: values.topic_check_interval,
    tailScanMaxCount: values.tail_scan_max_count,
    maxBytesPerSecond: values.max_bytes_per_second,
    dailyBudgetBytes: values.daily_budget,
  }
}
