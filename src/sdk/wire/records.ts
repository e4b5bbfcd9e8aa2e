/**
 * Records that several replies are made of (protocol section 7.1). `…Details` is a record and what belongs to it; the
 * counts that go before nested lists are taken from the lists.
 */
import { type Codec, list, listToEnd, name, onlyIn, sized, struct, text, u8, u16, u32, u64 } from './codec.ts'
import { NO_OPTIONS, type Options, sizedOptions } from './options.ts'
import { type Permissions, permissions } from './permissions.ts'

export interface StreamRecord {
  readonly id: number
  readonly createdAtUs: bigint
  readonly topicsCount: number
  readonly sizeBytes: bigint
  readonly messagesCount: bigint
  readonly name: string
  /** VSR only. */
  readonly options: Options
}

export const streamRecord: Codec<StreamRecord> = struct({
  id: u32,
  createdAtUs: u64,
  topicsCount: u32,
  sizeBytes: u64,
  messagesCount: u64,
  name,
  options: onlyIn('vsr', sizedOptions, NO_OPTIONS),
})

export interface TopicRecord {
  readonly id: number
  readonly createdAtUs: bigint
  readonly partitionsCount: number
  /** µs; u64::MAX = never. */
  readonly messageExpiryUs: bigint
  /** 1 none, 2 gzip. */
  readonly compression: number
  /** Bytes; u64::MAX = unlimited. */
  readonly maxTopicSizeBytes: bigint
  /** Classic only; 1 when read from VSR. */
  readonly replicationFactor: number
  readonly sizeBytes: bigint
  readonly messagesCount: bigint
  readonly name: string
  /** VSR only: what the client asked for, and what the server made of the rest. */
  readonly explicitOptions: Options
  readonly derivedOptions: Options
}

export const topicRecord: Codec<TopicRecord> = struct({
  id: u32,
  createdAtUs: u64,
  partitionsCount: u32,
  messageExpiryUs: u64,
  compression: u8,
  maxTopicSizeBytes: u64,
  replicationFactor: onlyIn('classic', u8, 1),
  sizeBytes: u64,
  messagesCount: u64,
  name,
  explicitOptions: onlyIn('vsr', sizedOptions, NO_OPTIONS),
  derivedOptions: onlyIn('vsr', sizedOptions, NO_OPTIONS),
})

export interface PartitionRecord {
  readonly id: number
  readonly createdAtUs: bigint
  readonly segmentsCount: number
  readonly currentOffset: bigint
  readonly sizeBytes: bigint
  readonly messagesCount: bigint
}

export const partitionRecord: Codec<PartitionRecord> = struct({
  id: u32,
  createdAtUs: u64,
  segmentsCount: u32,
  currentOffset: u64,
  sizeBytes: u64,
  messagesCount: u64,
})

export interface StreamDetails extends StreamRecord {
  readonly topics: readonly TopicRecord[]
}

/** A stream and its topics, to the end of the payload. */
export const streamDetails: Codec<StreamDetails> = withTail(streamRecord, 'topics', topicRecord)

export interface TopicDetails extends TopicRecord {
  readonly partitions: readonly PartitionRecord[]
}

/** A topic and its partitions, to the end of the payload. */
export const topicDetails: Codec<TopicDetails> = withTail(topicRecord, 'partitions', partitionRecord)

export interface GroupRecord {
  readonly id: number
  readonly partitionsCount: number
  readonly membersCount: number
  readonly name: string
}

export const groupRecord: Codec<GroupRecord> = struct({ id: u32, partitionsCount: u32, membersCount: u32, name })

export interface MemberRecord {
  readonly id: number
  readonly partitions: readonly number[]
}

export const memberRecord: Codec<MemberRecord> = struct({ id: u32, partitions: list(u32, u32) })

export interface GroupDetails extends GroupRecord {
  readonly members: readonly MemberRecord[]
}

/** A group and its members, to the end of the payload. */
export const groupDetails: Codec<GroupDetails> = withTail(groupRecord, 'members', memberRecord)

/** `userId` of a client that has not logged in. */
export const NOT_LOGGED_IN = 0xffff_ffff

export interface ClientRecord {
  readonly clientId: number
  readonly userId: number
  /** 1 TCP, 2 QUIC, 3 HTTP, 4 WebSocket. */
  readonly transport: number
  /** "ip:port". */
  readonly address: string
  readonly groupsCount: number
}

export const clientRecord: Codec<ClientRecord> = struct({
  clientId: u32,
  userId: u32,
  transport: u8,
  address: text,
  groupsCount: u32,
})

export interface ClientGroupRecord {
  readonly streamId: number
  readonly topicId: number
  readonly groupId: number
}

export const clientGroupRecord: Codec<ClientGroupRecord> = struct({ streamId: u32, topicId: u32, groupId: u32 })

export interface ClientDetails extends ClientRecord {
  readonly groups: readonly ClientGroupRecord[]
}

/** A client and its group memberships, to the end of the payload. */
export const clientDetails: Codec<ClientDetails> = withTail(clientRecord, 'groups', clientGroupRecord)

export interface UserRecord {
  readonly id: number
  readonly createdAtUs: bigint
  /** 1 active, 2 inactive. */
  readonly status: number
  readonly username: string
  /** VSR only. */
  readonly options: Options
}

export const userRecord: Codec<UserRecord> = struct({
  id: u32,
  createdAtUs: u64,
  status: u8,
  username: name,
  options: onlyIn('vsr', sizedOptions, NO_OPTIONS),
})

export interface UserDetails extends UserRecord {
  readonly permissions: Permissions | null
}

const sizedPermissions = sized(permissions)

/** A user, then `[1:1][len:4][Permissions]`, or four zero bytes when there are none. */
export const userDetails: Codec<UserDetails> = {
  read(reader, dialect) {
    const record = userRecord.read(reader, dialect)
    reader.field = 'permissions'
    const isGiven = reader.bool()
    if (isGiven) return { ...record, permissions: sizedPermissions.read(reader, dialect) }
    reader.bytesView(3)
    return { ...record, permissions: null }
  },
  write(writer, value, dialect) {
    userRecord.write(writer, value, dialect)
    if (value.permissions === null) {
      writer.u32(0)
    } else {
      writer.u8(1)
      sizedPermissions.write(writer, value.permissions, dialect)
    }
  },
}

export interface NodeRecord {
  readonly name: string
  readonly ip: string
  readonly tcpPort: number
  readonly quicPort: number
  readonly httpPort: number
  readonly websocketPort: number
  /** 0 leader, 1 follower. */
  readonly role: number
  /** 0 healthy, 1 starting, 2 stopping, 3 unreachable, 4 maintenance. */
  readonly status: number
}

export const nodeRecord: Codec<NodeRecord> = struct({
  name: text,
  ip: text,
  tcpPort: u16,
  quicPort: u16,
  httpPort: u16,
  websocketPort: u16,
  role: u8,
  status: u8,
})

/** A record and the list that follows it; old clients count by the end of the payload, so nothing may come after. */
function withTail<R, K extends string, E>(
  record: Codec<R>,
  key: K,
  element: Codec<E>,
): Codec<R & Record<K, readonly E[]>> {
  const tail = listToEnd(element)
  return {
    read(reader, dialect) {
      const head = record.read(reader, dialect)
      return { ...head, [key]: tail.read(reader, dialect) } as R & Record<K, readonly E[]>
    },
    write(writer, value, dialect) {
      record.write(writer, value, dialect)
      tail.write(writer, value[key], dialect)
    },
  }
}
