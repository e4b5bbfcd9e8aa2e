/** Emptying a topic: messages, stored offsets and what groups wait for go together, or a consumer would skip what comes. */
import type { Topic } from '../../log/index.ts'
import type { BrokerContext } from './context.ts'

export async function purgePartitions(context: BrokerContext, topic: Topic): Promise<void> {
  const { metadata } = context.log
  for (const partition of topic.partitions) {
    await partition.purge()
    metadata.deleteOffsetsOf(partition.key)
    for (const group of context.liveGroups.ofTopic(topic.streamId, topic.id)) {
      group.assignment.committed(partition.partitionId, null)
    }
  }
  context.dedup.clear(topic)
  await metadata.flush()
}
