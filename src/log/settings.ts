/**
 * Settings of the log: section `[log]` of the configuration. Each bound has its reason in the sentence or beside it.
 */
import {
  autoSize,
  choice,
  DAY_MS,
  duration,
  GIB,
  HOUR_MS,
  integer,
  KIB,
  MIB,
  MINUTE_MS,
  SECOND_MS,
  size,
  type ValuesOf,
} from '../setting.ts'

export const LOG_SETTINGS = {
  default_durability: choice(
    'durable',
    ['durable', 'buffered'],
    'Promise of topics that name none: durable acks after fdatasync, buffered acks after the write.',
  ),
  flush_interval: duration(
    { default: 200, min: 5, max: 10 * SECOND_MS },
    'Messages of buffered topics are on stable storage at the latest this long after their ack.',
  ),
  flush_size: size(
    { default: 64 * KIB, min: 4 * KIB, max: MIB },
    'A sync starts earlier when this many bytes of buffered topics are not synced yet, 10 ms after the last one at the earliest.',
  ),
  journal_file_size: size(
    { default: 8 * MIB, min: 256 * KIB, max: 64 * MIB },
    'Size of one journal file; written once with zeros and recycled for ever.',
  ),
  journal_files: integer(
    { default: 4, min: 3, max: 16 },
    'Number of journal files; one more is made when failed syncs hold all of them.',
  ),
  linger_min_us: integer(
    { default: 150, min: 0, max: 10_000 },
    'A durable group waits at least this long (µs) for as many messages as the last one held.',
  ),
  linger_share_percent: integer(
    { default: 15, min: 0, max: 100 },
    'A durable group waits up to this share of the last sync for late comers, on slow disks more than linger_min_us.',
  ),
  flash_budget_per_day: autoSize(
    { min: 0, max: 1024 * GIB },
    'Bytes a day that may be written to the device: once they are used up, acks wait up to 1 s for a common sync and offsets up to 10 s, and nothing is refused; 0 is off, auto is on where the data lies on an SD card or eMMC.',
  ),
  repack_after: duration(
    { default: HOUR_MS, min: SECOND_MS, max: DAY_MS },
    'A journal file that holds messages this long is gathered into segments though it is not full.',
  ),
  segment_size: size(
    { default: 16 * MIB, min: 4 * KIB, max: GIB },
    'A segment is closed at this size, in the journal or in a file of its own; retention drops whole segments.',
  ),
  segment_max_age: duration(
    { default: DAY_MS, min: MINUTE_MS, max: 365 * DAY_MS },
    'A segment is closed this long after its first message, so that retention by age can drop it.',
  ),
  open_segments: integer({ default: 32, min: 4, max: 1024 }, 'Segment files kept open for reading at the same time.'),
  decoded_blocks: integer(
    { default: 16, min: 4, max: 256 },
    'Decoded segment blocks (about 64 KiB each) kept in memory for readers.',
  ),
  quarantine_size: size(
    { default: 8 * MIB, min: 0, max: GIB },
    'Damaged or unknown files are kept aside up to this size, oldest dropped first; the newest stays unless it is 0.',
  ),
  quarantine_max_age: duration(
    { default: 30 * DAY_MS, min: HOUR_MS, max: 3650 * DAY_MS },
    'Damaged or unknown files are kept aside this long.',
  ),
  max_partitions: integer(
    { default: 3000, min: 1, max: 100_000 },
    'Partitions of all topics together, and most topics and streams there may be. A partition takes a folder and 3 KiB of ' +
      'memory, with a route upstream 6: of the 48 MiB that the executable has for such things, half are free.',
  ),
  max_consumer_offsets: integer(
    { default: 1024, min: 1, max: 65_536 },
    'Consumers, groups and devices whose offsets one partition keeps; all partitions together keep 131072.',
  ),
  max_publishers: integer(
    { default: 10_000, min: 1, max: 1_000_000 },
    'Device names whose sequence numbers are remembered, so that what they send again is recognised.',
  ),
  append_retry: duration(
    { default: 5 * SECOND_MS, min: 100, max: HOUR_MS },
    'While the disk refuses, the log tries again this often.',
  ),
} as const

/** Values of the table, sizes in bytes and durations in ms, as `defaultsOf(LOG_SETTINGS)` gives them. */
export type LogSettings = ValuesOf<typeof LOG_SETTINGS>
