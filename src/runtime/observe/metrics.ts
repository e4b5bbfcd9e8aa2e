/**
 * All metrics, each declared once: name, type and one sentence. Values are asked for when somebody scrapes; nothing is
 * counted twice. Pure.
 *
 * Names without a prefix are those of Iggy's server, so that its dashboards work; our own begin with `edge_`. The text is
 * OpenMetrics: a counter's samples end in `_total`, the text ends in `# EOF`. Written by us: the library that others take
 * holds megabytes to print what fits a page.
 */

export type MetricType = 'counter' | 'gauge'

export interface Metric {
  readonly name: string
  readonly type: MetricType
  readonly help: string
  readonly unit?: 'bytes' | 'seconds' | 'messages'
  readonly labels: readonly string[]
}

export const METRICS = {
  httpRequests: counter('http_requests', 'HTTP requests answered.'),
  streams: gauge('streams', 'Streams there are.'),
  topics: gauge('topics', 'Topics there are.'),
  partitions: gauge('partitions', 'Partitions there are.'),
  segments: gauge('segments', 'Segment files there are.'),
  messages: gauge('messages', 'Messages kept.'),
  users: gauge('users', 'Users there are.'),
  clients: gauge('clients', 'Connected clients of the binary protocol.'),

  startTime: gauge('edge_start_time_seconds', 'When the process started, since the Unix epoch.', 'seconds'),
  residentMemory: gauge(
    'edge_process_resident_memory_bytes',
    'Memory the process holds, shared pages included.',
    'bytes',
  ),
  loopDelay: gauge('edge_event_loop_delay_seconds', 'Longest wait of the event loop since the last scrape.', 'seconds'),
  isReady: gauge('edge_ready', '1 when every enabled listener accepts and the log takes messages.'),
  checkOk: gauge('edge_check_ok', '1 when a part of the runtime works and makes progress.', undefined, ['check']),
  httpConnections: gauge('edge_http_connections', 'Open HTTP connections.'),
  listenerConnections: gauge('edge_listener_connections', 'Open connections of a listener.', undefined, ['listener']),
  listenerLimit: gauge('edge_listener_max_connections', 'Connections that it takes at a time.', undefined, [
    'listener',
  ]),
  listenerRefused: counter(
    'edge_listener_refused_connections',
    'Connections that it turned away because there were too many.',
    undefined,
    ['listener'],
  ),

  quicConnections: gauge('edge_quic_connections', 'Open connections of plain QUIC.'),
  quicAccepted: counter('edge_quic_accepted_connections', 'QUIC handshakes that came through.'),
  quicRefused: counter(
    'edge_quic_refused_connections',
    'First packets refused: over a `limit`, too many `handshakes` under way, a bad Retry `token`, or `stopping`.',
    undefined,
    ['reason'],
  ),
  quicFailedHandshakes: counter('edge_quic_failed_handshakes', 'QUIC handshakes that were begun and came to nothing.'),
  quicRetries: counter('edge_quic_retries', 'Retry packets sent: they ask a client of QUIC to prove its address.'),
  quicReceivedPackets: counter('edge_quic_received_packets', 'Packets of QUIC connections that authenticated.'),
  quicSentPackets: counter('edge_quic_sent_packets', 'Packets sent by QUIC connections.'),
  quicLostPackets: counter('edge_quic_lost_packets', 'Packets of ours that QUIC connections took for lost.'),
  quicDropped: counter(
    'edge_quic_dropped_datagrams',
    "UDP datagrams dropped: `stray` ones came and were nobody's, `unsent` ones had too many before them.",
    undefined,
    ['reason'],
  ),

  devices: gauge('edge_devices', 'Devices that are connected.'),
  deviceLostReadings: counter(
    'edge_device_lost_readings',
    'Readings of devices that came or were announced and are stored nowhere; of `message-too-large`, messages a device has no room for.',
    undefined,
    ['reason'],
  ),

  appendedMessages: counter('edge_log_appended_messages', 'Messages appended since the start.', 'messages'),
  appendedBytes: counter('edge_log_append_bytes', 'Record bytes appended since the start.', 'bytes'),
  writtenBytes: counter(
    'edge_log_written_bytes',
    'Bytes that the log wrote to the device: messages, names, SQLite, and 4 KiB a sync.',
    'bytes',
  ),
  syncs: counter('edge_log_syncs', 'Syncs of journal and segments.'),
  failedSyncs: counter('edge_log_failed_syncs', 'Syncs that the disk refused.'),
  lastSync: gauge('edge_log_last_sync_seconds', 'How long the last sync took.', 'seconds'),
  droppedMessages: counter(
    'edge_log_dropped_messages',
    'Messages dropped by retention or an overflow policy, since the store was made.',
    'messages',
  ),
  journalUsed: gauge('edge_log_journal_used_bytes', 'Journal bytes that are not in segments yet.', 'bytes'),
  refusingFolders: gauge(
    'edge_log_refusing_folders',
    'Partitions whose folder takes no files: what would go there is kept in another one.',
  ),
  diskUsed: gauge('edge_disk_used_bytes', 'Bytes of segments, journal and database.', 'bytes'),
  diskBudget: gauge('edge_disk_budget_bytes', 'Bytes the log may use.', 'bytes'),
  diskFree: gauge('edge_disk_free_bytes', "Bytes free on the data folder's disk.", 'bytes'),
  flashBudget: gauge(
    'edge_flash_budget_per_day_bytes',
    'Bytes that may be written to the device a day; 0 is no limit.',
    'bytes',
  ),
  flashLeft: gauge('edge_flash_budget_left_bytes', 'Bytes that may be written at once.', 'bytes'),
  isWritable: gauge('edge_log_writable', '1 while the disk takes writes.'),
  findings: gauge('edge_findings', 'Problems of the data folder that were found and reported.', undefined, ['level']),

  syncConnected: gauge(
    'edge_sync_connected',
    '1 while a route is connected to its upstream, paused or not; 0 while it is blocked there.',
    undefined,
    ['route'],
  ),
  syncLag: gauge('edge_sync_lag_messages', 'Durable messages the upstream has not confirmed.', 'messages', ['route']),
  syncConfirmed: counter('edge_sync_confirmed_messages', 'Messages the upstream confirmed.', 'messages', ['route']),
  syncGap: counter(
    'edge_sync_gap_messages',
    'Messages that retention dropped here before the upstream had them.',
    'messages',
    ['route'],
  ),
  syncUnreadable: counter('edge_sync_unreadable_messages', 'Messages that could not be read here.', 'messages', [
    'route',
  ]),
  syncDeadLetters: counter(
    'edge_sync_dead_letter_messages',
    'Messages that the upstream refuses, set aside in the dead letters.',
    'messages',
    ['route'],
  ),
  syncResent: counter(
    'edge_sync_resent_messages',
    'Messages that the upstream had confirmed and lost, sent again.',
    'messages',
    ['route'],
  ),
  syncFailures: counter('edge_sync_failures', 'Attempts that failed.', undefined, ['route']),
} as const satisfies Record<string, Metric>

export type MetricName = keyof typeof METRICS

export interface Sample {
  readonly metric: MetricName
  readonly value: number
  /** As many as the metric has labels, in their order. */
  readonly labels?: readonly string[]
}

/** The exposition text. Metrics without a sample are left out; samples keep their order within a metric. */
export function formatMetrics(samples: readonly Sample[]): string {
  const lines: string[] = []
  for (const [key, metric] of Object.entries<Metric>(METRICS)) {
    const own = samples.filter((sample) => sample.metric === key)
    if (own.length === 0) continue
    lines.push(`# HELP ${metric.name} ${metric.help}`, `# TYPE ${metric.name} ${metric.type}`)
    // A unit must be the last word of the name: only then is it named.
    if (metric.unit !== undefined && metric.name.endsWith(`_${metric.unit}`))
      lines.push(`# UNIT ${metric.name} ${metric.unit}`)
    for (const sample of own) lines.push(formatSample(metric, sample))
  }
  return `${lines.join('\n')}\n# EOF\n`
}

function formatSample(metric: Metric, sample: Sample): string {
  const name = metric.type === 'counter' ? `${metric.name}_total` : metric.name
  const labels = metric.labels.map((label, index) => `${label}="${escapeLabel(sample.labels?.[index] ?? '')}"`)
  return `${labels.length === 0 ? name : `${name}{${labels.join(',')}}`} ${formatValue(sample.value)}`
}

const escapeLabel = (text: string): string =>
  text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

function formatValue(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (Number.isFinite(value)) return String(value)
  return value > 0 ? '+Inf' : '-Inf'
}

function counter(name: string, help: string, unit?: Metric['unit'], labels: readonly string[] = []): Metric {
  return { name, type: 'counter', help, labels, ...(unit === undefined ? {} : { unit }) }
}

function gauge(name: string, help: string, unit?: Metric['unit'], labels: readonly string[] = []): Metric {
  return { name, type: 'gauge', help, labels, ...(unit === undefined ? {} : { unit }) }
}
