/** Permissions out of JSON: all rights of a level must be named, streams and topics may be absent or null. Pure. */
import type { Permissions, StreamPermissions, TopicPermissions } from '../../sdk/wire/permissions.ts'
import { rejection } from './rejection.ts'
import { boolean, entries, object, optional, type Shape } from './shape.ts'

const globalRights = object({
  manage_servers: boolean,
  read_servers: boolean,
  manage_users: boolean,
  read_users: boolean,
  manage_streams: boolean,
  read_streams: boolean,
  manage_topics: boolean,
  read_topics: boolean,
  poll_messages: boolean,
  send_messages: boolean,
})

const topicRights: Shape<Omit<TopicPermissions, 'topicId'>> = (found, path) => {
  const rights = object({ manage_topic: boolean, read_topic: boolean, poll_messages: boolean, send_messages: boolean })(
    found,
    path,
  )
  return {
    manageTopic: rights.manage_topic,
    readTopic: rights.read_topic,
    pollMessages: rights.poll_messages,
    sendMessages: rights.send_messages,
  }
}

const streamFields = object({
  manage_stream: boolean,
  read_stream: boolean,
  manage_topics: boolean,
  read_topics: boolean,
  poll_messages: boolean,
  send_messages: boolean,
  topics: optional(entries(topicRights)),
})

const streamRights: Shape<Omit<StreamPermissions, 'streamId'>> = (found, path) => {
  const rights = streamFields(found, path)
  return {
    manageStream: rights.manage_stream,
    readStream: rights.read_stream,
    manageTopics: rights.manage_topics,
    readTopics: rights.read_topics,
    pollMessages: rights.poll_messages,
    sendMessages: rights.send_messages,
    topics: byId(rights.topics, `${path}.topics`).map(([topicId, topic]) => ({ topicId, ...topic })),
  }
}

const permissionFields = object({ global: globalRights, streams: optional(entries(streamRights)) })

export const permissions: Shape<Permissions> = (found, path) => {
  const { global, streams } = permissionFields(found, path)
  return {
    manageServers: global.manage_servers,
    readServers: global.read_servers,
    manageUsers: global.manage_users,
    readUsers: global.read_users,
    manageStreams: global.manage_streams,
    readStreams: global.read_streams,
    manageTopics: global.manage_topics,
    readTopics: global.read_topics,
    pollMessages: global.poll_messages,
    sendMessages: global.send_messages,
    streams: byId(streams, `${path}.streams`).map(([streamId, stream]) => ({ streamId, ...stream })),
  }
}

/** Iggy's server stumbles over a key that is no number while it still parses: 400, not 422. */
function byId<T>(given: ReadonlyMap<string, T> | undefined, path: string): [id: number, value: T][] {
  return [...(given ?? [])].map(([key, value]) => {
    if (/^\d{1,10}$/.test(key) && Number(key) <= 0xffff_ffff) return [Number(key), value]
    const sentence = `${path}.?: invalid value: expected key to be a number in quotes`
    throw rejection(400, `Failed to parse the request body as JSON: ${sentence}`)
  })
}
