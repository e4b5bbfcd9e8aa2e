/**
 * All configuration keys, by section. Each unit declares its own section; this file puts them together and adds what
 * belongs to the runtime as a whole. Section names are those of Apache Iggy's server where they mean the same.
 */
import { ENCRYPTION_SETTINGS, LOG_SETTINGS, RETENTION_SETTINGS } from '../../log/index.ts'
import { QUIC_SETTINGS, WEBTRANSPORT_SETTINGS } from '../../quic-edge/index.ts'
import {
  boolean,
  choice,
  DAY_MS,
  duration,
  GIB,
  MIB,
  SECOND_MS,
  type SettingsTable,
  size,
  text,
  type ValuesOf,
} from '../../setting.ts'
import { SYNC_ROUTE_SETTINGS, SYNC_UPSTREAM_SETTINGS } from '../../sync/index.ts'
import {
  BROKER_SETTINGS,
  CONSUMER_GROUP_SETTINGS,
  HEARTBEAT_SETTINGS,
  MESSAGE_DEDUPLICATION_SETTINGS,
  PERSONAL_ACCESS_TOKEN_SETTINGS,
} from '../broker/settings.ts'
import { HTTP_LISTS, HTTP_SECTIONS } from '../http/settings.ts'
import { TCP_SETTINGS, WEBSOCKET_SETTINGS } from '../server/defaults.ts'

const SYSTEM_SETTINGS = {
  path: { ...text('local_data', 'Data folder, relative to the working directory.'), min: 1 },
  expect_existing: boolean(
    false,
    'Refuse an empty data folder: a disk that was not mounted must not start a new store.',
  ),
  reuse_port: boolean(
    false,
    'Listen with SO_REUSEPORT, for whoever reserved the port before; then a second edge on it is not noticed.',
  ),
  allow_plaintext: boolean(false, 'Let TCP, WebSocket and HTTP listen beyond this machine without TLS.'),
} as const

const LOGGING_SETTINGS = {
  level: choice('info', ['error', 'warn', 'info', 'debug'], 'Least severe level that is written.'),
  file: text('', 'Write the log to this file as well as to stderr, relative to the data folder: logs/iggy-edge.log.'),
  max_file_size: size(
    { default: 10 * MIB, min: 0, max: GIB },
    'A log file is closed and numbered before it becomes larger; 0 is off.',
  ),
  max_total_size: size(
    { default: 50 * MIB, min: 0, max: 64 * GIB },
    'All log files together stay below it, the oldest are deleted; 0 is off.',
  ),
  retention: duration(
    { default: 7 * DAY_MS, min: SECOND_MS, max: 3650 * DAY_MS },
    'Closed log files are deleted after this time.',
  ),
} as const

export const SECTIONS = {
  system: SYSTEM_SETTINGS,
  logging: LOGGING_SETTINGS,
  log: LOG_SETTINGS,
  'log.encryption': ENCRYPTION_SETTINGS,
  retention: RETENTION_SETTINGS,
  tcp: TCP_SETTINGS,
  websocket: WEBSOCKET_SETTINGS,
  quic: QUIC_SETTINGS,
  webtransport: WEBTRANSPORT_SETTINGS,
  ...HTTP_SECTIONS,
  broker: BROKER_SETTINGS,
  heartbeat: HEARTBEAT_SETTINGS,
  personal_access_token: PERSONAL_ACCESS_TOKEN_SETTINGS,
  consumer_group: CONSUMER_GROUP_SETTINGS,
  message_deduplication: MESSAGE_DEDUPLICATION_SETTINGS,
} as const satisfies Record<string, SettingsTable>

/** Sections that repeat: `[[sync.upstreams]]`. */
export const LISTS = {
  'sync.upstreams': SYNC_UPSTREAM_SETTINGS,
  'sync.routes': SYNC_ROUTE_SETTINGS,
  ...HTTP_LISTS,
} as const satisfies Record<string, SettingsTable>

export type Config = { readonly [S in keyof typeof SECTIONS]: ValuesOf<(typeof SECTIONS)[S]> } & {
  readonly [L in keyof typeof LISTS]: readonly ValuesOf<(typeof LISTS)[L]>[]
}
