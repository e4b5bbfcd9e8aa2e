/**
 * What the log offers to the rest of the runtime. Types only: `openLog` in `index.ts` returns a `Log`.
 *
 * Words: a *partition incarnation* is known by its `key`, a u32 given once per store and never again. `…End` is exclusive.
 * Offsets and times (µs since the Unix epoch) are `bigint`; positions, sizes and counts are `number`.
 */
import type { EdgeError } from '../errors.ts'
import type { RecordBatch, StoredBatch } from '../sdk/wire/batch.ts'

/** `durable`: acked after `fdatasync`, survives a power cut. `buffered`: acked after the write, survives this process. */
export type Durability = 'durable' | 'buffered'
/** What a full topic does: drop the oldest segments, count and drop what comes, or refuse it. */
export type OverflowPolicy = 'drop-oldest' | 'drop-newest' | 'reject'

export interface Log extends AsyncDisposable {
  /** 16 random bytes given at the first start: part of every message id upstream. */
  readonly storeId: Uint8Array
  readonly catalog: Catalog
  readonly metadata: MetadataStore
  readonly producers: ProducerTable
  /** False while the disk refuses: appends fail at once with the cause, polls go on. */
  readonly isWritable: boolean
  partition(key: number): Partition | undefined
  /** Whether an append of that many record bytes would be taken now. Else stop reading the peer and wait for `onceRoom`. */
  hasRoom(sizeBytes: number): boolean
  /** Calls back once, in a later turn, when room is there again (or the log is closed). */
  onceRoom(callback: () => void): void
  /** Everything written so far is synced when it resolves. @throws EDGE_APPEND_FAILED. */
  flush(): Promise<void>
  stats(): LogStats
  /** Problems found at open and since, newest last, bounded: holes, recovered names, clamped offsets, failed syncs. */
  findings(): readonly LogFinding[]
  /** Messages given up by retention and overflow, over the life of the store. */
  drops(): DropReport
  /** Clean stop: syncs, marks the journal clean, closes SQLite. Idempotent. */
  close(): Promise<void>
}

export interface LogFinding {
  readonly atUs: bigint
  readonly event: string
  readonly level: 'error' | 'warn'
  readonly text: string
  readonly fields: Readonly<Record<string, string | number | bigint | boolean>>
}

/**
 * Why messages were given up: too old; topic over its size; log over its disk budget; the same, with readers or upstream
 * still behind; a full `drop-newest` topic did not take them (these never had an offset).
 */
export type DropReason = 'expired' | 'topic-size' | 'disk-budget' | 'disk-budget-unread' | 'drop-newest'

export interface DropReport {
  readonly byReason: ReadonlyMap<DropReason, { readonly messageCount: number; readonly sizeBytes: number }>
  /** The newest ranges, newest last, since this start; neighbours are joined. */
  readonly recent: readonly DropRange[]
}

export interface DropRange {
  /** Partition key. */
  readonly key: number
  readonly reason: DropReason
  /** End exclusive; both are the next offset for `drop-newest`. */
  readonly fromOffset: bigint
  readonly endOffset: bigint
  readonly messageCount: number
  readonly sizeBytes: number
}

/** How much room there is, as retention sees it. */
export interface SpaceStats {
  readonly diskBudgetBytes: number
  readonly diskFreeBytes: number
  readonly diskTotalBytes: number
  /** Over the budget or under the free-space floor, and nothing is left to drop. */
  readonly isOverDiskBudget: boolean
  /** Topics that refuse or give up new messages, for want of room. */
  readonly fullTopicCount: number
}

export interface LogStats extends SpaceStats {
  readonly journalFileCount: number
  readonly journalUsedBytes: number
  readonly segmentCount: number
  /** Bytes of segments, journal and reserves, and of SQLite, quarantine and trash as they were some seconds ago. */
  readonly diskUsedBytes: number
  /** Partitions whose folder takes no files now: what would go there is kept in another one. */
  readonly refusingFolderCount: number
  readonly appendedMessages: number
  readonly appendedRecordBytes: number
  /** Pages written to the device, syncs included, by our own count. */
  readonly writtenBytes: number
  readonly syncCount: number
  readonly syncFailedCount: number
  /** Messages wait for a sync now. */
  readonly isSyncAwaited: boolean
  readonly lastSyncUs: number
  /** Over the life of the store, for all reasons; `Log.drops` tells them apart. */
  readonly droppedMessages: number
  readonly flashBudgetPerDayBytes: number
  readonly flashBudgetLeftBytes: number
}

/** Tells who produced a batch, so that a resend is recognised for as long as the readings themselves are kept. */
export interface ProducerTag {
  /** Number of the device, given by `ProducerTable.numberOf`. */
  readonly device: number
  readonly epoch: number
  readonly lane: number
  readonly firstSequence: number
  /** Sequence numbers the batch disposes of: its records, in order. */
  readonly sequenceCount: number
}

export interface ProducerLane {
  readonly lane: number
  readonly have: number
  readonly durable: number
}

/** One number per (device, epoch, lane): the highest sequence disposed of. Written in the same group as the readings. */
export interface ProducerTable {
  /** Number of a device name; gives one when new. @throws EDGE_LIMIT_REACHED when `max_publishers` are remembered. */
  numberOf(deviceName: string): number
  /** @returns undefined when nothing is known of that epoch. */
  have(device: number, epoch: number, lane: number): number | undefined
  /** What is known of each lane of an epoch; `durable`: how far it is on stable storage, at most `have`. */
  lanes(device: number, epoch: number): readonly ProducerLane[]
  /** All that are remembered; the time of the last reading, µs, null where none is known. */
  devices(): readonly { readonly name: string; readonly lastSeenUs: bigint | null }[]
  /**
   * Makes room for another name; durable when it returns. What the device sends again of what it has no ack for is taken for new.
   *
   * @returns the number it had. @throws EDGE_DEVICE_NOT_FOUND, EDGE_IO, EDGE_DISK_FULL.
   */
  forget(deviceName: string): number
  /** Disposes of sequences without a record: refused for good, or given up by the device. Settles like a durable append. */
  record(tag: ProducerTag, receipt: Receipt): void
}

/** Told once what became of an append; an object that exists anyway (a connection's slot), not a promise per append. */
export interface Receipt {
  /** The promise holds now: `durable` or `written`, as `Appended.promise` said. */
  settled(error: EdgeError | null): void
}

export interface Appended {
  readonly baseOffset: bigint
  readonly appendTimeUs: bigint
  readonly promise: Durability
  /** A full topic that drops the newest gave the batch up: at `baseOffset` comes what is appended next. */
  readonly isDropped: boolean
}

export interface Partition {
  readonly key: number
  readonly streamId: number
  readonly topicId: number
  readonly partitionId: number
  readonly createdAtUs: bigint
  readonly idSeed: bigint
  /** Offset the next message gets; nothing at or above it exists. */
  readonly nextOffset: bigint
  /** First offset still kept; equals `nextOffset` when empty. */
  readonly logStartOffset: bigint
  /** End of what a poll may see: the durable end for `durable` topics, the written end for `buffered` ones. */
  readonly visibleEnd: bigint
  /** End of what is on stable storage: as far as the forwarder may go. */
  readonly durableEnd: bigint
  /** End of what was found when the log was opened, synced or not; 0 for a partition that was made since. */
  readonly foundEnd: bigint
  /** Messages kept (holes not counted) and their stored bytes; bytes are an estimate while in the journal. */
  readonly messageCount: number
  readonly sizeBytes: number
  /** Payload and user header bytes of all that was appended since the log was opened, whatever has become of it. */
  readonly appendedContentBytes: number
  /** Segment files. */
  readonly segmentCount: number
  /** Segments that are closed though their messages still lie in the journal, behind those files. */
  readonly closedInJournalCount: number
  /** Ranges that damage took: counted out of lag, reported once. Bounded, then merged. */
  readonly holes: readonly { readonly from: bigint; readonly end: bigint; readonly reason: 'damage' | 'jump' }[]

  /**
   * Takes one batch; its records are copied before this returns, so the view may be reused. Offsets are given here;
   * `receipt` is settled when the promise holds. Receipts of one partition settle in order.
   *
   * @throws {EdgeError} EDGE_BACKPRESSURE (ask `hasRoom` first), EDGE_TOPIC_FULL, EDGE_MESSAGE_TOO_LARGE, EDGE_APPEND_FAILED.
   */
  append(batch: RecordBatch, receipt: Receipt, tag?: ProducerTag): Appended

  /**
   * Reads whole stored batches from `fromOffset` on, up to `visibleEnd` (or `durableEnd`): at least one record when there
   * is one, at most `maxCount` records or about `maxBytes` bytes. Hot batches come synchronously, cold ones as a promise
   * unless they are in memory. The views in a result that comes at once are valid until the next call of the log, so use
   * them up before the next `await`; those of a promise stay as they are.
   */
  read(request: ReadRequest): ReadResult | Promise<ReadResult>
  /** @returns the first offset whose append time is at or after `timeUs`, or `visibleEnd` when there is none. */
  offsetAt(timeUs: bigint): bigint | Promise<bigint>
  /** Calls back after `visibleEnd` or `durableEnd` moved. @returns an unsubscribe function. */
  onAppended(callback: () => void): () => void
  /** Drops all messages, keeps the numbering: `logStartOffset = nextOffset`. Durable when it resolves. */
  purge(): Promise<void>
  /**
   * Drops at most `count` oldest sealed segments, none whose last offset is above `barrierOffset`: the lowest offset that
   * somebody has stored, null for no barrier. @returns how many were dropped.
   */
  deleteSegments(count: number, barrierOffset: bigint | null): Promise<number>
}

export interface ReadRequest {
  readonly fromOffset: bigint
  readonly maxCount: number
  readonly maxBytes: number
  /** The forwarder reads to the durable end only. */
  readonly upTo?: 'visible' | 'durable'
}

export interface ReadResult {
  /** Ascending; empty when nothing is at or above `fromOffset`. */
  readonly batches: readonly StoredBatch[]
  /** Where to read on: after the last record taken, or after a hole that was skipped. */
  readonly nextOffset: bigint
  readonly messageCount: number
  /** A range that could not be read and was skipped on the way, if any. */
  readonly hole?: { readonly from: bigint; readonly end: bigint }
}

// ---- names -----------------------------------------------------------------------------------------------------------

/** Options as a client gave them: kind code and bytes of Iggy's options block; the log keeps and returns them unread. */
export interface GivenOption {
  readonly kind: number
  readonly valueBytes: Uint8Array
}

export interface TopicOptions {
  readonly durability: Durability
  readonly overflow: OverflowPolicy
  /** µs; null = never. */
  readonly messageExpiryUs: bigint | null
  /** Physical bytes over all partitions; null = bound only by the disk budget. */
  readonly maxSizeBytes: bigint | null
  /** Segments roll at this size; null = the log's default. */
  readonly segmentSizeBytes: number | null
  /** Stored and shown only, as in Iggy. */
  readonly compression: 'none' | 'gzip'
  readonly replicationFactor: number
  /** Message ids seen within the window are not stored again; null = off. */
  readonly dedupWindow: { readonly maxEntries: number; readonly expiryUs: bigint } | null
  /** Keep the newest message per key for `subscribe` with last value. */
  readonly retainLast: boolean
  /** What the client itself asked for, by key; everything else was derived. */
  readonly given: ReadonlyMap<string, GivenOption>
}

export interface Stream {
  readonly id: number
  readonly name: string
  readonly createdAtUs: bigint
  /** By id, ascending. */
  readonly topics: ReadonlyMap<number, Topic>
}

export interface Topic {
  readonly id: number
  readonly streamId: number
  readonly name: string
  readonly createdAtUs: bigint
  readonly options: TopicOptions
  /** By partition id: 0, 1, 2 .. without gaps. */
  readonly partitions: readonly Partition[]
}

/**
 * Streams, topics and partitions. Reads are synchronous, from memory; changes are durable (descriptor files, then SQLite)
 * when their promise resolves. Ids: lowest free one, from 0. Names are unique per parent, 1..255 bytes of UTF-8.
 *
 * A change is of the very stream or topic it is asked for, EDGE_STREAM_NOT_FOUND or EDGE_TOPIC_NOT_FOUND once that is
 * deleted: changes wait for each other, and another one may have its id and its name by then.
 */
export interface Catalog {
  readonly streams: ReadonlyMap<number, Stream>
  stream(id: number | string): Stream | undefined
  topic(streamId: number, id: number | string): Topic | undefined
  /** Calls back after streams, topics or partitions came, went or were renamed. @returns an unsubscribe function. */
  onChanged(callback: () => void): () => void
  /** @throws EDGE_STREAM_NAME_TAKEN, EDGE_NAME_INVALID, EDGE_TOO_MANY_STREAMS. */
  createStream(name: string): Promise<Stream>
  renameStream(stream: Stream, name: string): Promise<void>
  deleteStream(stream: Stream): Promise<void>
  /** @throws EDGE_TOPIC_NAME_TAKEN, EDGE_TOO_MANY_TOPICS, EDGE_TOO_MANY_PARTITIONS. */
  createTopic(stream: Stream, spec: { name: string; partitionCount: number; options: TopicOptions }): Promise<Topic>
  updateTopic(topic: Topic, change: { name?: string; options?: TopicOptions }): Promise<void>
  deleteTopic(topic: Topic): Promise<void>
  addPartitions(topic: Topic, count: number): Promise<void>
  /** Removes the highest ids. */
  removePartitions(topic: Topic, count: number): Promise<void>
}

// ---- metadata (SQLite) -----------------------------------------------------------------------------------------------

export interface UserRow {
  readonly id: number
  readonly username: string
  /** PHC string (argon2id). */
  readonly passwordHash: string
  readonly isActive: boolean
  readonly createdAtUs: bigint
  /** JSON of `Permissions`, or null for none; the log keeps it unread. */
  readonly permissionsJson: string | null
}

export interface TokenRow {
  readonly userId: number
  readonly name: string
  /** SHA-256 or BLAKE3 of the token text, hex; never the token. */
  readonly hash: string
  /** null = never. */
  readonly expiresAtUs: bigint | null
  /** For device tokens: JSON of its device name pattern and topic patterns; null for a personal access token. */
  readonly deviceJson: string | null
}

export interface GroupRow {
  readonly streamId: number
  readonly topicId: number
  readonly id: number
  readonly name: string
}

/** Whose offset: a single consumer (u32 id or hash of its name), a consumer group, or a device's subscription. */
export type ConsumerKind = 'consumer' | 'group' | 'device'

/**
 * Everything that is not a message. Users, tokens and groups are durable when the promise resolves; offsets and cursors
 * live in memory and reach SQLite at most once a second, always behind the log, so a power cut repeats but never loses.
 */
export interface MetadataStore {
  readonly users: ReadonlyMap<number, UserRow>
  putUser(row: UserRow): Promise<void>
  deleteUser(id: number): Promise<void>

  tokensOf(userId: number): readonly TokenRow[]
  tokenByHash(hash: string): TokenRow | undefined
  putToken(row: TokenRow): Promise<void>
  deleteToken(userId: number, name: string): Promise<void>

  groupsOf(streamId: number, topicId: number): readonly GroupRow[]
  /** Gives the next id of the topic: ids of deleted groups are never given again. */
  createGroup(streamId: number, topicId: number, name: string): Promise<GroupRow>
  deleteGroup(streamId: number, topicId: number, groupId: number): Promise<void>

  /** @returns the last offset the consumer has stored, or undefined. */
  offset(partitionKey: number, kind: ConsumerKind, consumerId: number): bigint | undefined
  /** @throws EDGE_TOO_MANY_OFFSETS over `max_consumer_offsets` per partition. */
  setOffset(partitionKey: number, kind: ConsumerKind, consumerId: number, offset: bigint): void
  deleteOffset(partitionKey: number, kind: ConsumerKind, consumerId: number): boolean
  /** A purge takes the offsets with it. @returns how many there were. */
  deleteOffsetsOf(partitionKey: number): number
  /** All stored offsets of a partition: retention and segment deletion look at the lowest. */
  offsetsOf(partitionKey: number): Iterable<{ kind: ConsumerKind; consumerId: number; offset: bigint }>

  /** Cursor of a sync route on a partition: last offset the upstream confirmed. */
  cursor(route: string, partitionKey: number): CursorRow | undefined
  setCursor(route: string, partitionKey: number, row: CursorRow): void
  /** Cursors of the routes in use: retention and segment deletion look at the lowest. */
  cursorsOf(partitionKey: number): Iterable<{ route: string; row: CursorRow }>
  /** Before it is called all routes count as in use. What others have stays, should they come back. */
  useRoutes(routes: ReadonlySet<string>): void
  deleteCursors(route: string): void

  /** Small values that survive a restart: JWT secret, root password generated at first start, certificate dates. */
  setting(name: string): string | undefined
  setSetting(name: string, value: string): Promise<void>
  /** Pending offsets and cursors are on stable storage when it resolves: a sync each time, for who asked for it. @throws EDGE_DISK_FULL, EDGE_IO. */
  flush(): Promise<void>
}

export interface CursorRow {
  /** -1n: the route exists, nothing is confirmed yet; holds back retention like any other. */
  readonly confirmedOffset: bigint
  /** Where the confirmed record lies upstream, when the upstream told. */
  readonly upstreamOffset: bigint | null
  /** How often the upstream was found ahead of this log (a restored backup): ids differ from then on. Default 0. */
  readonly incarnation?: number
}
