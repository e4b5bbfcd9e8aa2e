/** Topics and partitions as their operator named them: the numbers stand in the fields beside the text. Pure. */
import type { Catalog, Partition, Topic } from './api.ts'

/** Whoever knows the names now: they may change while the log is open. */
export type NameSource = Pick<Catalog, 'streams'>

/** @returns `stream "plant", topic "pumps"`; the number of what has no name any more. */
export function topicText({ streams }: NameSource, { streamId, id }: Pick<Topic, 'streamId' | 'id'>): string {
  const stream = streams.get(streamId)
  return quotedTopic(stream?.name ?? streamId, stream?.topics.get(id)?.name ?? id)
}

/** @returns `stream "plant", topic "pumps", partition 0`. */
export function partitionText(
  names: NameSource,
  { streamId, topicId, partitionId }: Pick<Partition, 'streamId' | 'topicId' | 'partitionId'>,
): string {
  return `${topicText(names, { streamId, id: topicId })}, partition ${partitionId}`
}

/** Quoted as in JSON: names may hold line ends, and the text is to stay one line. */
export function quotedTopic(stream: string | number, topic: string | number): string {
  return `stream ${JSON.stringify(stream)}, topic ${JSON.stringify(topic)}`
}
