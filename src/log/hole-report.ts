/** What is told of offsets that cannot be read. */
import { EdgeError } from '../errors.ts'
import type { Partition } from './api.ts'
import type { EngineOptions } from './engine-options.ts'
import { partitionText } from './place-text.ts'

export function reportHole(
  { report, descriptors }: Pick<EngineOptions, 'report' | 'descriptors'>,
  partition: Pick<Partition, 'streamId' | 'topicId' | 'partitionId'>,
  { from, end, cause }: { readonly from: bigint; readonly end: bigint; readonly cause: string | EdgeError },
): void {
  const { streamId, topicId, partitionId } = partition
  const [reason, code] = cause instanceof EdgeError ? [cause.message, cause.code] : [cause, 'EDGE_BATCH_CORRUPT']
  report({
    event: 'log.hole.found',
    level: 'error',
    text: `offsets ${from} to ${end - 1n} of ${partitionText(descriptors, partition)} cannot be read: ${reason}`,
    fields: {
      stream_id: streamId,
      topic_id: topicId,
      partition_id: partitionId,
      base_offset: from,
      message_count: end - from,
      error_code: code,
    },
  })
}
