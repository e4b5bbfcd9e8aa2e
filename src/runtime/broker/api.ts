/**
 * What the broker does for every way in: binary protocol, HTTP, device protocol, CLI. Types only.
 *
 * Every operation takes the `Caller`, checks its rights, and throws `EdgeError`. Lookups of a single thing return undefined
 * when it is not there (Iggy answers an empty payload or 404); operations on a missing thing throw EDGE_…_NOT_FOUND.
 */

import type {
  Durability,
  GroupRow,
  Partition,
  ProducerTag,
  Receipt,
  Stream,
  TokenRow,
  Topic,
  TopicOptions,
} from '../../log/index.ts'
import type { RecordBatch, StoredBatch } from '../../sdk/wire/batch.ts'
import type { Permissions } from '../../sdk/wire/permissions.ts'
import type { Consumer, Identifier, Partitioning, PollingStrategy } from '../../sdk/wire/primitives.ts'
import type { TopicDefaults } from './topic-options.ts'

/** How the caller talks to us: a few answers differ by protocol generation (PROTOCOL 9 and 10). */
export type Dialect = 'classic' | 'vsr' | 'http' | 'edge'

/** Who asks. HTTP makes one per request, a binary connection keeps one for its life. */
export interface Caller {
  readonly dialect: Dialect
  /** null before login. */
  userId: number | null
  /** When that user was made, where nobody takes it off when the user is deleted: the next one gets its number. */
  readonly userSinceUs?: bigint | undefined
  /** The connection, for group membership and `get_me`; null over HTTP. */
  readonly client: ClientSession | null
}

export interface ClientSession {
  readonly id: number
  readonly transport: 'tcp' | 'quic' | 'http' | 'websocket'
  /** "ip:port", or "quic" where the driver does not tell. */
  readonly address: string
  readonly connectedAtUs: bigint
  /** Monotonic time of the last request: the heartbeat check looks at it. */
  lastSeenUs: number
  /** Tells the connection that the broker ended the session (stale, deleted user); set by the connection. */
  onEvicted: ((reason: 'stale' | 'user-deleted') => void) | null
}

export interface UserView {
  readonly id: number
  readonly createdAtUs: bigint
  readonly username: string
  readonly isActive: boolean
  readonly permissions: Permissions | null
}

export interface GroupView extends GroupRow {
  readonly partitionCount: number
  readonly members: readonly { readonly id: number; readonly partitions: readonly number[] }[]
}

export interface ClientView {
  readonly id: number
  readonly userId: number | null
  readonly transport: ClientSession['transport']
  readonly address: string
  readonly groups: readonly { readonly streamId: number; readonly topicId: number; readonly groupId: number }[]
}

export interface StatsView {
  readonly processId: number
  readonly cpuUsage: number
  readonly totalCpuUsage: number
  readonly memoryUsage: number
  readonly totalMemory: number
  readonly availableMemory: number
  readonly runTimeUs: bigint
  readonly startTimeUs: bigint
  readonly readBytes: number
  readonly writtenBytes: number
  readonly messagesSizeBytes: number
  readonly streamsCount: number
  readonly topicsCount: number
  readonly partitionsCount: number
  readonly segmentsCount: number
  readonly messagesCount: number
  readonly clientsCount: number
  readonly consumerGroupsCount: number
  readonly hostname: string
  readonly osName: string
  readonly osVersion: string
  readonly kernelVersion: string
  readonly serverVersion: string
  readonly serverSemver: number
  readonly threadsCount: number
  readonly freeDiskSpace: number
  readonly totalDiskSpace: number
}

export interface ClusterView {
  readonly name: string
  readonly node: {
    readonly name: string
    readonly ip: string
    readonly tcpPort: number
    readonly quicPort: number
    readonly httpPort: number
    readonly websocketPort: number
  }
}

export interface SendResult {
  readonly streamId: number
  readonly topicId: number
  readonly partitionId: number
  readonly baseOffset: bigint
  readonly promise: Durability
  /** As in `Appended`. */
  readonly isDropped: boolean
}

export interface PollRequest {
  readonly consumer: Consumer
  readonly stream: Identifier
  readonly topic: Identifier
  /** null: partition 0 for a single consumer, the member's next one for a group (classic). */
  readonly partitionId: number | null
  readonly strategy: PollingStrategy
  readonly count: number
  readonly autoCommit: boolean
}

export interface PollResult {
  readonly partitionId: number
  /** Offset of the newest message; 0 for an empty partition. */
  readonly currentOffset: bigint
  readonly messageCount: number
  /** Views are valid until the next turn: encode the answer before any `await`. */
  readonly batches: readonly StoredBatch[]
}

export interface OffsetView {
  readonly partitionId: number
  readonly currentOffset: bigint
  readonly storedOffset: bigint
}

/** Options of a new topic as the client named them; what is absent takes the configured default. */
export interface TopicRequest {
  readonly name: string
  readonly partitionCount: number
  readonly options: Partial<TopicOptions>
}

export interface Broker {
  /** What topics get whose creator says nothing; for the derived block of options. */
  readonly topicDefaults: TopicDefaults
  /** What the partition's messages take in Iggy's own form: what its clients are shown as a size. */
  messageSizeOf(partition: Partition): number

  // ---- sessions
  /** Argon2; resolves after the same time whether or not the user exists. @throws EDGE_CREDENTIALS_INVALID, EDGE_USER_INACTIVE. */
  authenticate(username: string, password: string): Promise<number>
  /** @returns the user id of a personal access token. @throws EDGE_TOKEN_INVALID, EDGE_TOKEN_EXPIRED, EDGE_USER_INACTIVE. */
  authenticateToken(token: string): number
  openClient(transport: ClientSession['transport'], address: string, dialect: Dialect): ClientSession
  /** Leaves all groups. Idempotent. */
  closeClient(client: ClientSession): void
  /** The caller acts for that user from now on; a user before is logged out first. */
  login(caller: Caller, userId: number): void
  /** Leaves all groups and forgets the user; the connection may log in again. */
  logout(caller: Caller): void

  // ---- system
  stats(caller: Caller): StatsView
  me(caller: Caller): ClientView
  client(caller: Caller, id: number): ClientView | undefined
  clients(caller: Caller): readonly ClientView[]
  cluster(caller: Caller): ClusterView
  /** A ZIP file. */
  snapshot(caller: Caller, request: { compression: number; types: readonly number[] }): Promise<Uint8Array>

  // ---- users and tokens
  users(caller: Caller): readonly UserView[]
  user(caller: Caller, id: Identifier): UserView | undefined
  createUser(
    caller: Caller,
    spec: { username: string; password: string; isActive: boolean; permissions: Permissions | null },
  ): Promise<UserView>
  updateUser(caller: Caller, id: Identifier, change: { username?: string; isActive?: boolean }): Promise<void>
  deleteUser(caller: Caller, id: Identifier): Promise<void>
  setPermissions(caller: Caller, id: Identifier, permissions: Permissions | null): Promise<void>
  changePassword(caller: Caller, id: Identifier, currentPassword: string, newPassword: string): Promise<void>
  tokens(caller: Caller): readonly TokenRow[]
  /** @returns the token text, shown once. `expiryUs` null = never. */
  createToken(caller: Caller, name: string, expiryUs: bigint | null): Promise<string>
  deleteToken(caller: Caller, name: string): Promise<void>
  /**
   * A token for devices: opens device sessions only, within what `deviceJson` says. Its name is its own among all device
   * tokens. @returns its text, shown once. @throws EDGE_FORBIDDEN without `manage_users`.
   */
  createDeviceToken(caller: Caller, name: string, expiryUs: bigint | null, deviceJson: string): Promise<string>
  /** Of all users. @throws EDGE_FORBIDDEN without `manage_users`. */
  deviceTokens(caller: Caller): readonly TokenRow[]
  /** @throws EDGE_FORBIDDEN without `manage_users`, EDGE_TOKEN_NOT_FOUND. */
  deleteDeviceToken(caller: Caller, name: string): Promise<void>
  /** Names of devices that are remembered, the one silent the longest first. @throws EDGE_FORBIDDEN without `manage_users`. */
  devices(caller: Caller): readonly { readonly name: string; readonly lastSeenUs: bigint | null }[]
  /**
   * Forgets a device that comes back no more: its sequence numbers and its offsets.
   *
   * @throws EDGE_FORBIDDEN without `manage_users`, EDGE_DEVICE_NOT_FOUND, EDGE_DEVICE_ACTIVE while it still publishes
   *   or is connected.
   */
  forgetDevice(caller: Caller, name: string): Promise<void>
  /** A session of that device begins: it is not forgotten meanwhile. @returns a function that tells its end. */
  holdDevice(name: string): () => void
  /** @returns the row of a device token. @throws EDGE_TOKEN_INVALID, EDGE_TOKEN_EXPIRED, EDGE_USER_INACTIVE. */
  authenticateDevice(token: string): TokenRow

  // ---- streams, topics, partitions
  streams(caller: Caller): readonly Stream[]
  stream(caller: Caller, id: Identifier): Stream | undefined
  createStream(caller: Caller, name: string): Promise<Stream>
  renameStream(caller: Caller, id: Identifier, name: string): Promise<void>
  deleteStream(caller: Caller, id: Identifier): Promise<void>
  purgeStream(caller: Caller, id: Identifier): Promise<void>
  /** undefined when the stream is missing. */
  topics(caller: Caller, stream: Identifier): readonly Topic[] | undefined
  topic(caller: Caller, stream: Identifier, topic: Identifier): Topic | undefined
  createTopic(caller: Caller, stream: Identifier, request: TopicRequest): Promise<Topic>
  /** A patch: what is absent stays. */
  updateTopic(
    caller: Caller,
    stream: Identifier,
    topic: Identifier,
    change: { name?: string; options?: Partial<TopicOptions> },
  ): Promise<void>
  deleteTopic(caller: Caller, stream: Identifier, topic: Identifier): Promise<void>
  purgeTopic(caller: Caller, stream: Identifier, topic: Identifier): Promise<void>
  createPartitions(caller: Caller, stream: Identifier, topic: Identifier, count: number): Promise<void>
  deletePartitions(caller: Caller, stream: Identifier, topic: Identifier, count: number): Promise<void>
  deleteSegments(
    caller: Caller,
    stream: Identifier,
    topic: Identifier,
    partitionId: number,
    count: number,
  ): Promise<void>

  // ---- messages and offsets
  /** Offsets are given at once; `receipt` settles when the topic's promise holds. */
  send(
    caller: Caller,
    stream: Identifier,
    topic: Identifier,
    partitioning: Partitioning,
    batch: RecordBatch,
    receipt: Receipt,
    tag?: ProducerTag,
  ): SendResult
  /** Whether there may be a topic that the caller may send to. */
  maySend(caller: Caller): boolean
  /** Hot polls answer at once; cold ones, and group polls that wait for nothing, as a promise. */
  poll(caller: Caller, request: PollRequest): PollResult | Promise<PollResult>
  /** So many bytes of answers more, or fewer, wait for peers to take them: with too many, polls answer little. */
  answersLeft(changeBytes: number): void
  flush(caller: Caller, stream: Identifier, topic: Identifier, partitionId: number): Promise<void>
  offset(
    caller: Caller,
    consumer: Consumer,
    stream: Identifier,
    topic: Identifier,
    partitionId: number | null,
  ): OffsetView | undefined
  /** A promise only where the topic asks for `consumer_offset_durability=persisted`. */
  storeOffset(
    caller: Caller,
    consumer: Consumer,
    stream: Identifier,
    topic: Identifier,
    partitionId: number | null,
    offset: bigint,
  ): void | Promise<void>
  deleteOffset(
    caller: Caller,
    consumer: Consumer,
    stream: Identifier,
    topic: Identifier,
    partitionId: number | null,
  ): void | Promise<void>

  // ---- consumer groups
  /** undefined when stream or topic is missing. */
  groups(caller: Caller, stream: Identifier, topic: Identifier): readonly GroupView[] | undefined
  group(caller: Caller, stream: Identifier, topic: Identifier, group: Identifier): GroupView | undefined
  createGroup(caller: Caller, stream: Identifier, topic: Identifier, name: string): Promise<GroupView>
  deleteGroup(caller: Caller, stream: Identifier, topic: Identifier, group: Identifier): Promise<void>
  joinGroup(caller: Caller, stream: Identifier, topic: Identifier, group: Identifier): void
  leaveGroup(caller: Caller, stream: Identifier, topic: Identifier, group: Identifier): void
  /** What the member may poll now; undefined when it is no member. */
  syncGroup(
    caller: Caller,
    stream: Identifier,
    topic: Identifier,
    group: Identifier,
  ): { generation: bigint; partitions: readonly number[] } | undefined

  // ---- watching
  partition(stream: Identifier, topic: Identifier, partitionId: number): Partition | undefined
}
