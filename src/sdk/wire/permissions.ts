/**
 * What a user may do: ten global rights, then rights per stream, then per topic.
 *
 *   global: 10 bools, [has_streams:1], then per stream
 *   [stream_id:4] 6 bools [has_topics:1], then per topic [topic_id:4] 4 bools [has_next_topic:1]; [has_next_stream:1]
 *
 * Rights add up; who inherits what is the broker's business.
 */
import { bool, type Codec, struct, u32 } from './codec.ts'

export interface Permissions extends GlobalPermissions {
  /** In the order they were given; empty when there are none. */
  readonly streams: readonly StreamPermissions[]
}

export interface GlobalPermissions {
  readonly manageServers: boolean
  readonly readServers: boolean
  readonly manageUsers: boolean
  readonly readUsers: boolean
  readonly manageStreams: boolean
  readonly readStreams: boolean
  readonly manageTopics: boolean
  readonly readTopics: boolean
  readonly pollMessages: boolean
  readonly sendMessages: boolean
}

export interface StreamPermissions {
  readonly streamId: number
  readonly manageStream: boolean
  readonly readStream: boolean
  readonly manageTopics: boolean
  readonly readTopics: boolean
  readonly pollMessages: boolean
  readonly sendMessages: boolean
  readonly topics: readonly TopicPermissions[]
}

export interface TopicPermissions {
  readonly topicId: number
  readonly manageTopic: boolean
  readonly readTopic: boolean
  readonly pollMessages: boolean
  readonly sendMessages: boolean
}

/** `[has:1]` elements, each followed by `[has_next:1]`. */
function chain<T>(element: Codec<T>): Codec<readonly T[]> {
  return {
    read(reader, dialect) {
      const values: T[] = []
      while (reader.bool()) values.push(element.read(reader, dialect))
      return values
    },
    write(writer, values, dialect) {
      for (const value of values) {
        writer.bool(true)
        element.write(writer, value, dialect)
      }
      writer.bool(false)
    },
  }
}

const topicPermissions: Codec<TopicPermissions> = struct({
  topicId: u32,
  manageTopic: bool,
  readTopic: bool,
  pollMessages: bool,
  sendMessages: bool,
})

const streamPermissions: Codec<StreamPermissions> = struct({
  streamId: u32,
  manageStream: bool,
  readStream: bool,
  manageTopics: bool,
  readTopics: bool,
  pollMessages: bool,
  sendMessages: bool,
  topics: chain(topicPermissions),
})

export const permissions: Codec<Permissions> = struct({
  manageServers: bool,
  readServers: bool,
  manageUsers: bool,
  readUsers: bool,
  manageStreams: bool,
  readStreams: bool,
  manageTopics: bool,
  readTopics: bool,
  pollMessages: bool,
  sendMessages: bool,
  streams: chain(streamPermissions),
})
