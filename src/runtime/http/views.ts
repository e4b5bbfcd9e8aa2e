/**
 * How streams, topics, groups, users and statistics look in JSON: the shapes of Iggy's newest server, with what 0.8 knew
 * beside it (`replication_factor`), so that clients of both generations read them. Pure.
 */
import type { Partition, Stream, TokenRow, Topic } from '../../log/index.ts'
import type { ClientView, ClusterView, GroupView, OffsetView, SendResult, StatsView, UserView } from '../broker/api.ts'
import { permissionsToJson } from '../broker/permissions-json.ts'
import type { TopicDefaults } from '../broker/topic-options.ts'
import { formatByteSize } from './byte-size.ts'
import { exact, type JsonObject } from './json.ts'
import { viewOptions } from './topic-options.ts'

/** How Iggy writes "never" and "unlimited". */
export const U64_MAX = 2n ** 64n - 1n

/** What views ask of the broker beside what they show. */
export interface ViewSources {
  readonly topicDefaults: TopicDefaults
  messageSizeOf(partition: Partition): number
}

export function viewStream(stream: Stream, sources: ViewSources): JsonObject {
  const topics = [...stream.topics.values()]
  return {
    id: stream.id,
    created_at: exact(stream.createdAtUs),
    name: stream.name,
    size: formatByteSize(sum(topics, (topic) => topicSizeBytes(topic, sources))),
    messages_count: sum(topics, topicMessageCount),
    topics_count: stream.topics.size,
    options: {},
  }
}

export function viewStreamDetails(stream: Stream, sources: ViewSources): JsonObject {
  const topics = [...stream.topics.values()].map((topic) => viewTopic(topic, sources))
  return { ...viewStream(stream, sources), topics }
}

export function viewTopic(topic: Topic, sources: ViewSources): JsonObject {
  const { messageExpiryUs, maxSizeBytes, compression, replicationFactor } = topic.options
  return {
    id: topic.id,
    created_at: exact(topic.createdAtUs),
    name: topic.name,
    size: formatByteSize(topicSizeBytes(topic, sources)),
    message_expiry: exact(messageExpiryUs ?? U64_MAX),
    compression_algorithm: compression,
    max_topic_size: exact(maxSizeBytes ?? U64_MAX),
    replication_factor: replicationFactor,
    messages_count: topicMessageCount(topic),
    partitions_count: topic.partitions.length,
    options: viewOptions(topic.options, sources.topicDefaults),
  }
}

export function viewTopicDetails(topic: Topic, sources: ViewSources): JsonObject {
  const partitions = topic.partitions.map((partition) => viewPartition(partition, sources))
  return { ...viewTopic(topic, sources), partitions }
}

function viewPartition(partition: Partition, { messageSizeOf }: ViewSources): JsonObject {
  return {
    id: partition.partitionId,
    created_at: exact(partition.createdAtUs),
    segments_count: Math.max(1, partition.segmentCount) + partition.closedInJournalCount,
    current_offset: exact(newestOffset(partition)),
    size: formatByteSize(messageSizeOf(partition)),
    messages_count: partition.messageCount,
  }
}

/** Offset of the newest message that a poll may see; 0 before the first one. */
export function newestOffset(partition: Pick<Partition, 'visibleEnd'>): bigint {
  return partition.visibleEnd > 0n ? partition.visibleEnd - 1n : 0n
}

export function viewGroup(group: GroupView): JsonObject {
  return {
    id: group.id,
    name: group.name,
    partitions_count: group.partitionCount,
    members_count: group.members.length,
  }
}

export function viewGroupDetails(group: GroupView): JsonObject {
  const members = group.members.map(({ id, partitions }) => ({ id, partitions_count: partitions.length, partitions }))
  return { ...viewGroup(group), members }
}

export function viewUser(user: UserView): JsonObject {
  return {
    id: user.id,
    created_at: exact(user.createdAtUs),
    status: user.isActive ? 'active' : 'inactive',
    username: user.username,
    options: {},
  }
}

export function viewUserDetails(user: UserView): JsonObject {
  return {
    ...viewUser(user),
    permissions: user.permissions === null ? null : { ...permissionsToJson(user.permissions) },
  }
}

export function viewToken(token: TokenRow): JsonObject {
  return { name: token.name, expiry_at: token.expiresAtUs === null ? null : exact(token.expiresAtUs) }
}

const TRANSPORT_NAMES = { tcp: 'TCP', quic: 'QUIC', http: 'HTTP', websocket: 'WebSocket' } as const

export function viewClient(client: ClientView): JsonObject {
  return {
    client_id: client.id,
    user_id: client.userId,
    address: client.address,
    transport: TRANSPORT_NAMES[client.transport],
    consumer_groups_count: client.groups.length,
  }
}

export function viewClientDetails(client: ClientView): JsonObject {
  const groups = client.groups.map(({ streamId, topicId, groupId }) => ({
    stream_id: streamId,
    topic_id: topicId,
    group_id: groupId,
  }))
  return { ...viewClient(client), consumer_groups: groups }
}

export function viewStats(stats: StatsView): JsonObject {
  return {
    process_id: stats.processId,
    cpu_usage: stats.cpuUsage,
    total_cpu_usage: stats.totalCpuUsage,
    memory_usage: formatByteSize(stats.memoryUsage),
    total_memory: formatByteSize(stats.totalMemory),
    available_memory: formatByteSize(stats.availableMemory),
    run_time: exact(stats.runTimeUs),
    start_time: exact(stats.startTimeUs),
    read_bytes: formatByteSize(stats.readBytes),
    written_bytes: formatByteSize(stats.writtenBytes),
    messages_size_bytes: formatByteSize(stats.messagesSizeBytes),
    streams_count: stats.streamsCount,
    topics_count: stats.topicsCount,
    partitions_count: stats.partitionsCount,
    segments_count: stats.segmentsCount,
    messages_count: stats.messagesCount,
    clients_count: stats.clientsCount,
    consumer_groups_count: stats.consumerGroupsCount,
    hostname: stats.hostname,
    os_name: stats.osName,
    os_version: stats.osVersion,
    kernel_version: stats.kernelVersion,
    iggy_server_version: stats.serverVersion,
    iggy_server_semver: stats.serverSemver,
    cache_metrics: {},
    threads_count: stats.threadsCount,
    free_disk_space: formatByteSize(stats.freeDiskSpace),
    total_disk_space: formatByteSize(stats.totalDiskSpace),
  }
}

/** One node: it leads itself. */
export function viewCluster({ name, node }: ClusterView): JsonObject {
  const endpoints = { tcp: node.tcpPort, quic: node.quicPort, http: node.httpPort, websocket: node.websocketPort }
  return { name, nodes: [{ name: node.name, ip: node.ip, endpoints, role: 'leader', status: 'healthy' }] }
}

export function viewOffset(offset: OffsetView): JsonObject {
  return {
    partition_id: offset.partitionId,
    current_offset: exact(offset.currentOffset),
    stored_offset: exact(offset.storedOffset),
  }
}

export function viewSendResult(sent: SendResult): JsonObject {
  const confirmation = {
    stream_id: sent.streamId,
    topic_id: sent.topicId,
    partition_id: sent.partitionId,
    base_offset: exact(sent.baseOffset),
  }
  return { confirmations: [confirmation] }
}

const topicSizeBytes = (topic: Topic, { messageSizeOf }: ViewSources): number => sum(topic.partitions, messageSizeOf)
const topicMessageCount = (topic: Topic): number => sum(topic.partitions, (partition) => partition.messageCount)

function sum<T>(items: readonly T[], amountOf: (item: T) => number): number {
  return items.reduce((total, item) => total + amountOf(item), 0)
}
