/** Commands on topics, partitions and segments. */
import type { TopicOptions } from '../../../log/index.ts'
import { CODE } from '../../../sdk/wire/codes.ts'
import { parseTopicOptions } from '../../broker/index.ts'
import type { Handlers } from './handler.ts'
import { partitionRecordOf, topicRecordOf } from './records.ts'

export const TOPIC_HANDLERS = {
  [CODE.getTopic]({ broker, caller }, { stream, topic }) {
    const found = broker.topic(caller, stream, topic)
    if (found === undefined) return null
    const partitions = found.partitions.map((partition) => partitionRecordOf(partition, 1, broker.messageSizeOf))
    return { ...topicRecordOf(found, broker.topicDefaults, broker.messageSizeOf), partitions }
  },
  [CODE.getTopics]({ broker, caller }, { stream }) {
    const topics = broker.topics(caller, stream) ?? []
    return { topics: topics.map((topic) => topicRecordOf(topic, broker.topicDefaults, broker.messageSizeOf)) }
  },
  async [CODE.createTopic]({ broker, caller }, request) {
    const options = withFactor(parseTopicOptions(request.options, 'create'), request)
    const { name, partitionsCount } = request
    const created = await broker.createTopic(caller, request.stream, { name, partitionCount: partitionsCount, options })
    const partitions = created.partitions.map((partition) => partitionRecordOf(partition, 0, broker.messageSizeOf))
    return { ...topicRecordOf(created, broker.topicDefaults, broker.messageSizeOf), partitions }
  },
  async [CODE.updateTopic]({ broker, caller }, request) {
    const options = withFactor(parseTopicOptions(request.options, 'update'), request)
    await broker.updateTopic(caller, request.stream, request.topic, { name: request.name, options })
    return null
  },
  async [CODE.deleteTopic]({ broker, caller }, { stream, topic }) {
    await broker.deleteTopic(caller, stream, topic)
    return null
  },
  async [CODE.purgeTopic]({ broker, caller }, { stream, topic }) {
    await broker.purgeTopic(caller, stream, topic)
    return null
  },
  async [CODE.createPartitions]({ broker, caller }, { stream, topic, count }) {
    await broker.createPartitions(caller, stream, topic, count)
    return null
  },
  async [CODE.deletePartitions]({ broker, caller }, { stream, topic, count }) {
    await broker.deletePartitions(caller, stream, topic, count)
    return null
  },
  async [CODE.deleteSegments]({ broker, caller }, { stream, topic, partitionId, segmentsCount }) {
    await broker.deleteSegments(caller, stream, topic, partitionId, segmentsCount)
    return null
  },
} satisfies Partial<Handlers>

/** Classic names a factor, which is kept and shown; 0 is the default of one node, on an update what there was. */
function withFactor(
  options: Partial<TopicOptions>,
  { replicationFactor }: { replicationFactor: number },
): Partial<TopicOptions> {
  return replicationFactor > 0 ? { ...options, replicationFactor } : options
}
