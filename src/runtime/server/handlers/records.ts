/** The broker's views as the records that replies are made of. */
import type { Partition, Stream, Topic } from '../../../log/index.ts'
import { NO_OPTIONS } from '../../../sdk/wire/options.ts'
import {
  type ClientDetails,
  type GroupDetails,
  NOT_LOGGED_IN,
  type NodeRecord,
  type PartitionRecord,
  type StreamRecord,
  type TopicRecord,
  type UserDetails,
} from '../../../sdk/wire/records.ts'
import {
  type ClientView,
  type ClusterView,
  derivedOptions,
  explicitOptions,
  type GroupView,
  type TopicDefaults,
  type UserView,
} from '../../broker/index.ts'

const UNLIMITED = 0xffff_ffff_ffff_ffffn
const COMPRESSION = { none: 1, gzip: 2 } as const
const STATUS = { active: 1, inactive: 2 } as const
const TRANSPORT = { tcp: 1, quic: 2, http: 3, websocket: 4 } as const

/** What the messages of a partition take: `Broker.messageSizeOf`. */
type SizeOf = (partition: Partition) => number

export function streamRecordOf(stream: Stream, sizeOf: SizeOf): StreamRecord {
  const partitions = [...stream.topics.values()].flatMap((topic) => topic.partitions)
  return {
    id: stream.id,
    createdAtUs: stream.createdAtUs,
    topicsCount: stream.topics.size,
    ...sumOf(partitions, sizeOf),
    name: stream.name,
    options: NO_OPTIONS,
  }
}

export function topicRecordOf(topic: Topic, defaults: TopicDefaults, sizeOf: SizeOf): TopicRecord {
  const { options } = topic
  return {
    id: topic.id,
    createdAtUs: topic.createdAtUs,
    partitionsCount: topic.partitions.length,
    messageExpiryUs: options.messageExpiryUs ?? UNLIMITED,
    compression: COMPRESSION[options.compression],
    maxTopicSizeBytes: options.maxSizeBytes ?? UNLIMITED,
    replicationFactor: options.replicationFactor,
    ...sumOf(topic.partitions, sizeOf),
    name: topic.name,
    explicitOptions: explicitOptions(options),
    derivedOptions: derivedOptions(options, defaults),
  }
}

/** @param leastSegments Iggy shows a new topic without segments and any other with at least one a partition. */
export function partitionRecordOf(partition: Partition, leastSegments: number, sizeOf: SizeOf): PartitionRecord {
  return {
    id: partition.partitionId,
    createdAtUs: partition.createdAtUs,
    segmentsCount: Math.max(leastSegments, partition.segmentCount) + partition.closedInJournalCount,
    currentOffset: partition.visibleEnd > 0n ? partition.visibleEnd - 1n : 0n,
    sizeBytes: BigInt(sizeOf(partition)),
    messagesCount: BigInt(partition.messageCount),
  }
}

export function groupDetailsOf(group: GroupView): GroupDetails {
  const { id, name, members } = group
  return { id, partitionsCount: group.partitionCount, membersCount: members.length, name, members }
}

export function clientDetailsOf(client: ClientView): ClientDetails {
  return {
    clientId: client.id,
    userId: client.userId ?? NOT_LOGGED_IN,
    transport: TRANSPORT[client.transport],
    address: client.address,
    groupsCount: client.groups.length,
    groups: client.groups,
  }
}

export function userDetailsOf(user: UserView): UserDetails {
  return {
    id: user.id,
    createdAtUs: user.createdAtUs,
    status: user.isActive ? STATUS.active : STATUS.inactive,
    username: user.username,
    options: NO_OPTIONS,
    permissions: user.permissions,
  }
}

/** A healthy leader. */
export function nodeRecordOf({ node }: ClusterView): NodeRecord {
  return { ...node, role: 0, status: 0 }
}

function sumOf(partitions: readonly Partition[], sizeOf: SizeOf): { sizeBytes: bigint; messagesCount: bigint } {
  let sizeBytes = 0
  let messagesCount = 0
  for (const partition of partitions) {
    sizeBytes += sizeOf(partition)
    messagesCount += partition.messageCount
  }
  return { sizeBytes: BigInt(sizeBytes), messagesCount: BigInt(messagesCount) }
}
