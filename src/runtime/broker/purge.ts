/** Emptying a topic: messages, stored offsets and what groups wait for go together, or a consumer would skip what comes. */
import type { Topic } from '../../log/index.ts'
import type { BrokerContext } from './context.ts'

export async function purgePartitions(context: BrokerContext, topic: Topic): Promise<void> {
  const { metadata } = context.log
  for (const partition of topic.partitions) {
    // Before and after: what is appended from now on is not taken for a share of what goes.
    context.sizes.of(partition)
    await partition.purge()
    context.sizes.of(partition)
    metadata.deleteOffsetsOf(partition.key)
    for (const group of context.liveGroups.ofTopic(topic)) {
      group.assignment.committed(partition.partitionId, null)
    }
  }
  context.dedup.clear(topic)
  await metadata.flush()
}
