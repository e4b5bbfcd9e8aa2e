/** Topics, their partitions and segments. */
import { EdgeError } from '../../errors.ts'
import { checkPartitionCount, lowestOffsetInUse } from '../../log/index.ts'
import type { Broker } from './api.ts'
import { type BrokerContext, findStream, findTopic, getStream, getTopic, partitionMissing } from './context.ts'
import { purgePartitions } from './purge.ts'
import { Serial } from './serial.ts'
import { defaultTopicOptions, resolveTopicOptions } from './topic-options.ts'

type Topics = Pick<
  Broker,
  | 'topics'
  | 'topic'
  | 'createTopic'
  | 'updateTopic'
  | 'deleteTopic'
  | 'purgeTopic'
  | 'createPartitions'
  | 'deletePartitions'
  | 'deleteSegments'
>

export function createTopics(context: BrokerContext): Topics {
  const { catalog, metadata } = context.log
  const updates = new Serial()
  return {
    topics(caller, streamId) {
      const stream = findStream(context, caller, streamId, 'list-topics')
      return stream === undefined ? undefined : [...stream.topics.values()]
    },

    topic: (caller, streamId, id) => findTopic(context, caller, streamId, id, 'get-topic'),

    async createTopic(caller, streamId, request) {
      checkPartitionCount(request.partitionCount, 0)
      const options = resolveTopicOptions(
        request.options,
        defaultTopicOptions(context.topicDefaults),
        context.topicDefaults,
      )
      const stream = getStream(context, caller, streamId, 'create-topic')
      const { name, partitionCount } = request
      return catalog.createTopic(stream, { name, partitionCount, options })
    },

    async updateTopic(caller, streamId, id, change) {
      const topic = getTopic(context, caller, streamId, id, 'manage-topic')
      // What a change leaves out is as the one before it has made it.
      await updates.run(async () => {
        const options = resolveTopicOptions(change.options ?? {}, topic.options, context.topicDefaults)
        const name = change.name === undefined ? {} : { name: change.name }
        await context.dedup.change(topic, options.dedupWindow, () => catalog.updateTopic(topic, { ...name, options }))
      })
    },

    async deleteTopic(caller, streamId, id) {
      await catalog.deleteTopic(getTopic(context, caller, streamId, id, 'manage-topic'))
    },

    async purgeTopic(caller, streamId, id) {
      await purgePartitions(context, getTopic(context, caller, streamId, id, 'manage-topic'))
    },

    async createPartitions(caller, streamId, id, count) {
      checkPartitionCount(count, 1)
      const topic = getTopic(context, caller, streamId, id, 'manage-topic')
      await context.liveGroups.growing(topic, count, () => catalog.addPartitions(topic, count))
    },

    async deletePartitions(caller, streamId, id, count) {
      checkPartitionCount(count, 1)
      const topic = getTopic(context, caller, streamId, id, 'manage-topic')
      if (count > topic.partitions.length) {
        const message = `partitions to delete: expected at most ${topic.partitions.length}, found ${count}`
        throw new EdgeError('EDGE_PARTITION_COUNT_INVALID', message)
      }
      try {
        await catalog.removePartitions(topic, count)
      } finally {
        // Also of a change that failed after they had gone.
        context.dedup.partitionsRemoved(topic)
      }
    },

    async deleteSegments(caller, streamId, id, partitionId, count) {
      const topic = getTopic(context, caller, streamId, id, 'manage-topic')
      const partition = topic.partitions[partitionId]
      if (partition === undefined) throw partitionMissing(topic, partitionId)
      if (count > 0) await partition.deleteSegments(count, lowestOffsetInUse(metadata, partition.key))
    },
  }
}
