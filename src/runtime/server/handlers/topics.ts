/** Commands on topics, partitions and segments. */
import { CODE } from '../../../sdk/wire/codes.ts'
import { parseTopicOptions } from '../../broker/index.ts'
import type { Handlers } from './handler.ts'
import { partitionRecordOf, topicRecordOf } from './records.ts'

export const TOPIC_HANDLERS = {
  [CODE.getTopic]({ broker, caller }, { stream, topic }) {
    const found = broker.topic(caller, stream, topic)
    if (found === undefined) return null
    const partitions = found.partitions.map((partition) => partitionRecordOf(partition, 1))
    return { ...topicRecordOf(found, broker.topicDefaults), partitions }
  },
  [CODE.getTopics]({ broker, caller }, { stream }) {
    const topics = broker.topics(caller, stream) ?? []
    return { topics: topics.map((topic) => topicRecordOf(topic, broker.topicDefaults)) }
  },
  async [CODE.createTopic]({ broker, caller }, request) {
    const parsed = parseTopicOptions(request.options, 'create')
    // Classic names a factor, 0 = the default of one node.
    const options = request.replicationFactor > 0 ? { ...parsed, replicationFactor: request.replicationFactor } : parsed
    const { name, partitionsCount } = request
    const created = await broker.createTopic(caller, request.stream, { name, partitionCount: partitionsCount, options })
    const partitions = created.partitions.map((partition) => partitionRecordOf(partition, 0))
    return { ...topicRecordOf(created, broker.topicDefaults), partitions }
  },
  async [CODE.updateTopic]({ broker, caller }, request) {
    const options = parseTopicOptions(request.options, 'update')
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
