/** Stored consumer offsets: read, store, delete, of single consumers and of groups. */
import { EdgeError } from '../../errors.ts'
import type { ConsumerKind, Partition, Topic } from '../../log/index.ts'
import type { Consumer, Identifier } from '../../sdk/wire/primitives.ts'
import type { Broker, Caller } from './api.ts'
import { consumerIdOf, getGroupRow, memberOf, notOwned } from './consumers.ts'
import { type BrokerContext, findTopic, getTopic, partitionMissing } from './context.ts'
import type { LiveGroup } from './live-groups.ts'
import { currentOffset } from './polling.ts'
import { hasPersistedOffsets } from './topic-options.ts'

type Offsets = Pick<Broker, 'offset' | 'storeOffset' | 'deleteOffset'>

interface Target {
  readonly topic: Topic
  readonly partition: Partition
  readonly kind: ConsumerKind
  readonly consumerId: number
  readonly group: LiveGroup | undefined
}

export function createOffsets(context: BrokerContext): Offsets {
  const { metadata } = context.log
  return {
    offset(caller, consumer, streamId, topicId, partitionId) {
      const topic = findTopic(context, caller, streamId, topicId, 'poll')
      if (topic === undefined) return undefined
      const consumerId = consumerIdOf(context, topic, consumer)
      if (consumerId === undefined) return undefined
      const wantedId = partitionId ?? currentOf(caller, topic, consumer, consumerId) ?? 0
      const partition = topic.partitions[wantedId]
      if (partition === undefined) throw partitionMissing(topic, wantedId)
      const storedOffset = metadata.offset(partition.key, consumer.kind, consumerId)
      if (consumer.kind === 'group' && caller.client !== null) {
        liveGroupOf(topic, consumerId)?.assignment.sawOffset(caller.client.id, wantedId)
      }
      if (storedOffset === undefined) return undefined
      return { partitionId: wantedId, currentOffset: currentOffset(partition), storedOffset }
    },

    storeOffset(caller, consumer, streamId, topicId, partitionId, offset) {
      const { topic, partition, kind, consumerId, group } = target(caller, consumer, streamId, topicId, partitionId)
      if (offset >= partition.visibleEnd) {
        const message = `offset of partition ${partition.partitionId}: expected below ${partition.visibleEnd}, found ${offset}`
        throw new EdgeError('EDGE_OFFSET_INVALID', message)
      }
      metadata.setOffset(partition.key, kind, consumerId, offset)
      group?.assignment.committed(partition.partitionId, offset)
      return hasPersistedOffsets(topic.options) ? metadata.flush() : undefined
    },

    deleteOffset(caller, consumer, streamId, topicId, partitionId) {
      const { topic, partition, kind, consumerId, group } = target(caller, consumer, streamId, topicId, partitionId)
      if (!metadata.deleteOffset(partition.key, kind, consumerId)) {
        const message = `offset of ${kind} ${consumerId} in partition ${partition.partitionId} is not stored`
        throw new EdgeError('EDGE_OFFSET_NOT_FOUND', message)
      }
      group?.assignment.committed(partition.partitionId, null)
      return hasPersistedOffsets(topic.options) ? metadata.flush() : undefined
    },
  }

  /** Whose offset of which partition is meant. A group's may be changed by the member that owns the partition alone. */
  function target(
    caller: Caller,
    consumer: Consumer,
    streamId: Identifier,
    topicId: Identifier,
    partitionId: number | null,
  ): Target {
    const topic = getTopic(context, caller, streamId, topicId, 'poll')
    const kind = consumer.kind
    if (kind === 'consumer') {
      const wantedId = partitionId ?? 0
      const partition = topic.partitions[wantedId]
      if (partition === undefined) throw partitionMissing(topic, wantedId)
      return { topic, partition, kind, consumerId: consumerIdOf(context, topic, consumer) ?? 0, group: undefined }
    }
    const row = getGroupRow(context, topic, consumer.id)
    // HTTP has no connection that could be a member: there the group's offset is anyone's who may poll.
    const group = caller.client === null ? undefined : memberOf(context, topic, row, caller.client)
    const wantedId = partitionId ?? (caller.client === null ? 0 : group?.assignment.current(caller.client.id)) ?? 0
    const partition = topic.partitions[wantedId]
    if (partition === undefined) throw partitionMissing(topic, wantedId)
    if (caller.client !== null && group?.assignment.canCommit(caller.client.id, wantedId) !== true)
      throw notOwned(wantedId, row)
    return { topic, partition, kind, consumerId: row.id, group: group ?? liveGroupOf(topic, row.id) }
  }

  function liveGroupOf(topic: Topic, groupId: number): LiveGroup | undefined {
    return context.liveGroups.find(topic, groupId)
  }

  /** The partition a member polls at the moment; a caller that is no member means partition 0. */
  function currentOf(caller: Caller, topic: Topic, consumer: Consumer, groupId: number): number | null {
    if (consumer.kind !== 'group' || caller.client === null) return null
    return liveGroupOf(topic, groupId)?.assignment.current(caller.client.id) ?? null
  }
}
