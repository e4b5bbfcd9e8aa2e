/** Permissions as JSON, in the form of Iggy's HTTP API: how they are stored, and what HTTP reads and shows. Pure. */
import { EdgeError } from '../../errors.ts'
import type { GlobalPermissions, Permissions, StreamPermissions, TopicPermissions } from '../../sdk/wire/permissions.ts'

type Flags = Readonly<Record<string, boolean>>

export interface PermissionsJson {
  readonly global: Flags
  /** By stream id; null when there are none. */
  readonly streams: Readonly<Record<string, Flags | { readonly topics: Readonly<Record<string, Flags>> | null }>> | null
}

const GLOBAL_FLAGS = {
  manage_servers: 'manageServers',
  read_servers: 'readServers',
  manage_users: 'manageUsers',
  read_users: 'readUsers',
  manage_streams: 'manageStreams',
  read_streams: 'readStreams',
  manage_topics: 'manageTopics',
  read_topics: 'readTopics',
  poll_messages: 'pollMessages',
  send_messages: 'sendMessages',
} as const satisfies Record<string, keyof GlobalPermissions>

const STREAM_FLAGS = {
  manage_stream: 'manageStream',
  read_stream: 'readStream',
  manage_topics: 'manageTopics',
  read_topics: 'readTopics',
  poll_messages: 'pollMessages',
  send_messages: 'sendMessages',
} as const satisfies Record<string, keyof StreamPermissions>

const TOPIC_FLAGS = {
  manage_topic: 'manageTopic',
  read_topic: 'readTopic',
  poll_messages: 'pollMessages',
  send_messages: 'sendMessages',
} as const satisfies Record<string, keyof TopicPermissions>

export function permissionsToJson(permissions: Permissions): PermissionsJson {
  const streams = permissions.streams.map((stream) => {
    const topics = stream.topics.map((topic) => [topic.topicId, flagsOf(topic, TOPIC_FLAGS)])
    const topicsById = topics.length === 0 ? null : Object.fromEntries(topics)
    return [stream.streamId, { ...flagsOf(stream, STREAM_FLAGS), topics: topicsById }]
  })
  const streamsById = streams.length === 0 ? null : Object.fromEntries(streams)
  return { global: flagsOf(permissions, GLOBAL_FLAGS), streams: streamsById }
}

/** @throws {EdgeError} EDGE_COMMAND_MALFORMED naming the first value that is missing or wrong. */
export function permissionsFromJson(json: unknown): Permissions {
  const root = objectAt(json, 'permissions')
  const global = readFlags<GlobalPermissions>(root.global, GLOBAL_FLAGS, 'permissions.global')
  const streams = entriesAt(root.streams, 'permissions.streams').map(([streamId, value]) => {
    const path = `permissions.streams.${streamId}`
    const flags = readFlags<Omit<StreamPermissions, 'streamId' | 'topics'>>(value, STREAM_FLAGS, path)
    const topics = entriesAt(objectAt(value, path).topics, `${path}.topics`).map(([topicId, topic]) => ({
      topicId,
      ...readFlags<Omit<TopicPermissions, 'topicId'>>(topic, TOPIC_FLAGS, `${path}.topics.${topicId}`),
    }))
    return { streamId, ...flags, topics }
  })
  return { ...global, streams }
}

export function encodePermissions(permissions: Permissions | null): string | null {
  return permissions === null ? null : JSON.stringify(permissionsToJson(permissions))
}

/** @returns none for what cannot be read: nobody gets a right by a flipped bit, and the user can be given them anew. */
export function decodePermissions(json: string | null): Permissions | null {
  if (json === null) return null
  try {
    return permissionsFromJson(JSON.parse(json))
  } catch {
    return null
  }
}

function flagsOf<T extends object>(source: T, flags: Readonly<Record<string, string>>): Flags {
  const values = new Map(Object.entries(source))
  return Object.fromEntries(Object.entries(flags).map(([name, field]) => [name, values.get(field) === true]))
}

function readFlags<T>(json: unknown, flags: Readonly<Record<string, string>>, path: string): T {
  const source = objectAt(json, path)
  const entries = Object.entries(flags).map(([name, field]) => {
    const value = source[name]
    if (typeof value !== 'boolean') throw malformed(`${path}.${name}`, 'true or false', value)
    return [field, value]
  })
  return Object.fromEntries(entries) as T
}

function entriesAt(json: unknown, path: string): [number, unknown][] {
  if (json === null || json === undefined) return []
  return Object.entries(objectAt(json, path)).map(([key, value]) => {
    if (!/^\d{1,10}$/.test(key) || Number(key) > 0xffff_ffff) throw malformed(path, 'ids as keys', key)
    return [Number(key), value]
  })
}

function objectAt(json: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw malformed(path, 'an object', json)
  return json as Readonly<Record<string, unknown>>
}

function malformed(path: string, expected: string, found: unknown): EdgeError {
  return new EdgeError('EDGE_COMMAND_MALFORMED', `${path}: expected ${expected}, found ${JSON.stringify(found)}`)
}
