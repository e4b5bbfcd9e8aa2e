/** Settings of the broker: sections `[broker]`, `[heartbeat]`, `[personal_access_token]`, `[consumer_group]`, `[message_deduplication]`. */
import { MAX_USERS } from '../../log/index.ts'
import {
  autoSize,
  boolean,
  DAY_MS,
  duration,
  HOUR_MS,
  integer,
  KIB,
  MIB,
  MINUTE_MS,
  SECOND_MS,
  type ValuesOf,
} from '../../setting.ts'

export const BROKER_SETTINGS = {
  reset_root: boolean(
    false,
    'When the root password is lost: at the start the root user gets IGGY_ROOT_USERNAME and IGGY_ROOT_PASSWORD, also when it is there.',
  ),
  max_users: integer({ default: 1024, min: 1, max: MAX_USERS }, 'Users there may be, root included.'),
  max_poll_size: autoSize(
    { min: 64 * KIB, max: 128 * MIB },
    'A poll answers about this many bytes of messages at most, and always at least one message; "auto" takes a 64th of the ' +
      'memory, 8 to 128 MiB. More than 56 MiB fit into no answer of protocol 0.11, and over HTTP 8 MiB are the most.',
  ),
  max_poll_count: integer({ default: 100_000, min: 1, max: 10_000_000 }, 'Messages one poll answers at most.'),
} as const

export const HEARTBEAT_SETTINGS = {
  enabled: boolean(true, 'Members of consumer groups that send nothing for 1.2 intervals lose their membership.'),
  interval: duration(
    { default: 30 * SECOND_MS, min: SECOND_MS, max: HOUR_MS },
    'How often clients are expected to ping.',
  ),
} as const

export const PERSONAL_ACCESS_TOKEN_SETTINGS = {
  max_tokens_per_user: integer({ default: 100, min: 1, max: 100_000 }, 'Personal access tokens one user may have.'),
  cleaner_interval: duration(
    { default: MINUTE_MS, min: SECOND_MS, max: DAY_MS },
    'Expired tokens are removed this often; they are refused from the moment they expire.',
  ),
} as const

export const CONSUMER_GROUP_SETTINGS = {
  rebalancing_timeout: duration(
    { default: 30 * SECOND_MS, min: SECOND_MS, max: HOUR_MS },
    'A partition with polled but uncommitted messages changes hands at the latest this long after a join.',
  ),
} as const

export const MESSAGE_DEDUPLICATION_SETTINGS = {
  enabled: boolean(false, 'New topics drop messages whose id they have seen, unless the topic says otherwise.'),
  max_entries: integer({ default: 10_000, min: 1, max: 1_000_000 }, 'Message ids a topic remembers.'),
  max_total_entries: integer(
    { default: 200_000, min: 1, max: 10_000_000 },
    'Message ids all topics remember together, 44 to 88 bytes each; the topics that remember most forget their oldest ones first.',
  ),
  expiry: duration({ default: MINUTE_MS, min: SECOND_MS, max: 7 * DAY_MS }, 'How long a message id is remembered.'),
} as const

export interface BrokerSettings {
  readonly broker: ValuesOf<typeof BROKER_SETTINGS>
  readonly heartbeat: ValuesOf<typeof HEARTBEAT_SETTINGS>
  readonly personalAccessToken: ValuesOf<typeof PERSONAL_ACCESS_TOKEN_SETTINGS>
  readonly consumerGroup: ValuesOf<typeof CONSUMER_GROUP_SETTINGS>
  readonly messageDeduplication: ValuesOf<typeof MESSAGE_DEDUPLICATION_SETTINGS>
  /** Of section `[log]`: what topics get that do not say. */
  readonly defaultDurability: 'durable' | 'buffered'
  readonly defaultSegmentSizeBytes: number
}
