import type { Durability, TopicOptions } from '../../src/log/api.ts'

/** Options of a topic that keeps everything. */
export function topicOptions(durability: Durability, change: Partial<TopicOptions> = {}): TopicOptions {
  return {
    durability,
    overflow: 'drop-oldest',
    messageExpiryUs: null,
    maxSizeBytes: null,
    segmentSizeBytes: null,
    compression: 'none',
    replicationFactor: 1,
    dedupWindow: null,
    retainLast: false,
    given: new Map(),
    ...change,
  }
}
