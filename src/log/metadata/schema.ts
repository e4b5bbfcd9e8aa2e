/**
 * The tables of `metadata.sqlite`. Drawn and explained in docs/formats/metadata.md.
 *
 * No table has a row per message. `descriptors` is a copy of what the descriptor files say, kept so that each can be
 * restored from the other; everything else has its truth here.
 */

/**
 * `PRAGMA user_version` of the newest layout. A store with a higher one belongs to a newer release, unless its tables are
 * exactly those of this one: no checksum guards the number. So no layout is like another.
 */
export const SCHEMA_VERSION = 1

/** Step `n` brings layout `n` to layout `n + 1`; steps that were released never change. */
export const SCHEMA_STEPS: readonly string[] = [
  `
  CREATE TABLE descriptors (
    stream_id INTEGER NOT NULL,
    topic_id  INTEGER NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (stream_id, topic_id)
  ) STRICT;

  CREATE TABLE users (
    id               INTEGER PRIMARY KEY,
    username         TEXT NOT NULL UNIQUE,
    password_hash    TEXT NOT NULL,
    is_active        INTEGER NOT NULL,
    created_at_us    INTEGER NOT NULL,
    permissions_json TEXT
  ) STRICT;

  CREATE TABLE tokens (
    hash          TEXT PRIMARY KEY,
    user_id       INTEGER NOT NULL,
    name          TEXT NOT NULL,
    expires_at_us INTEGER,
    device_json   TEXT,
    UNIQUE (user_id, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE consumer_groups (
    stream_id INTEGER NOT NULL,
    topic_id  INTEGER NOT NULL,
    id        INTEGER NOT NULL,
    name      TEXT NOT NULL,
    PRIMARY KEY (stream_id, topic_id, id),
    UNIQUE (stream_id, topic_id, name)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE group_counters (
    stream_id INTEGER NOT NULL,
    topic_id  INTEGER NOT NULL,
    next_id   INTEGER NOT NULL,
    PRIMARY KEY (stream_id, topic_id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE consumer_offsets (
    partition_key INTEGER NOT NULL,
    kind          INTEGER NOT NULL,
    consumer_id   INTEGER NOT NULL,
    offset        INTEGER NOT NULL,
    PRIMARY KEY (partition_key, kind, consumer_id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE cursors (
    partition_key    INTEGER NOT NULL,
    route            TEXT NOT NULL,
    confirmed_offset INTEGER NOT NULL,
    upstream_offset  INTEGER,
    incarnation      INTEGER NOT NULL,
    PRIMARY KEY (partition_key, route)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE hints (
    partition_key INTEGER PRIMARY KEY,
    next_offset   INTEGER NOT NULL,
    segment_end   INTEGER NOT NULL,
    message_count INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE devices (
    device INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE
  ) STRICT;

  CREATE TABLE sequences (
    device     INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    lane       INTEGER NOT NULL,
    have       INTEGER NOT NULL,
    seen_at_us INTEGER NOT NULL,
    PRIMARY KEY (device, epoch, lane)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE drops (
    partition_key INTEGER NOT NULL,
    reason        TEXT NOT NULL,
    message_count INTEGER NOT NULL,
    size_bytes    INTEGER NOT NULL,
    from_offset   INTEGER NOT NULL,
    end_offset    INTEGER NOT NULL,
    PRIMARY KEY (partition_key, reason)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
]

/** Setting that counts the writes of offsets: tells which rows of the offset trail the database does not have. */
export const GENERATION_SETTING = 'offset_generation'

/** Setting that names the generations of the journal's files, with commas between. */
export const JOURNAL_FILES_SETTING = 'journal_files'

/** Setting that names offsets which partitions go on above: `key:offset`, with commas between. */
export const OWED_OFFSETS_SETTING = 'owed_offsets'

/** Setting that names offsets which partitions left out: `key:from-end/missing`, with commas between. */
export const JUMPS_SETTING = 'jumps'

/** In the order in which rows are saved from a damaged file: what nobody can give back comes first. */
export const TABLES = [
  'users',
  'tokens',
  'settings',
  'consumer_groups',
  'group_counters',
  'consumer_offsets',
  'cursors',
  'devices',
  'sequences',
  'drops',
  'descriptors',
  'hints',
] as const

export type TableName = (typeof TABLES)[number]

/** Columns of the newest layout, in order: what a file of that layout must have. */
export const TABLE_COLUMNS: Readonly<Record<TableName, string>> = {
  users: 'id username password_hash is_active created_at_us permissions_json',
  tokens: 'hash user_id name expires_at_us device_json',
  settings: 'name value',
  consumer_groups: 'stream_id topic_id id name',
  group_counters: 'stream_id topic_id next_id',
  consumer_offsets: 'partition_key kind consumer_id offset',
  cursors: 'partition_key route confirmed_offset upstream_offset incarnation',
  devices: 'device name',
  sequences: 'device epoch lane have seen_at_us',
  drops: 'partition_key reason message_count size_bytes from_offset end_offset',
  descriptors: 'stream_id topic_id body',
  hints: 'partition_key next_offset segment_end message_count',
}
