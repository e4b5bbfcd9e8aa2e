/** Emptying a topic: messages, stored offsets and what groups wait for go together, or a consumer would skip what comes. */
import type { Partition, Topic } from '../../log/index.ts'
import type { BrokerContext } from './context.ts'

export async function purgePartitions(context: BrokerContext, topic: Topic): Promise<void> {
  // Together, since the log puts on record in one write where all of them begin. What one refuses holds up no other.
  const results = await Promise.allSettled(
    topic.partitions.map((partition) => purgePartition(context, topic, partition)),
  )
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  context.dedup.clear(topic)
  await context.log.metadata.flush()
}

async function purgePartition(context: BrokerContext, topic: Topic, partition: Partition): Promise<void> {
  // Before and after: what is appended from now on is not taken for a share of what goes.
  context.sizes.of(partition)
  await partition.purge()
  context.sizes.of(partition)
  context.log.metadata.deleteOffsetsOf(partition.key)
  for (const group of context.liveGroups.ofTopic(topic)) {
    group.assignment.committed(partition.partitionId, null)
  }
}
