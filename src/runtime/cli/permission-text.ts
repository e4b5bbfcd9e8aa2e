/**
 * Permissions as Iggy's command line writes them. Pure.
 *
 *   global   manage_servers,read_users           or short: m_srv,r_usr,m_str,r_str,m_top,r_top,p_msg,s_msg
 *   stream   STREAM_ID:perm,perm#TOPIC_ID:perm,perm#..
 */
import type { GlobalPermissions, Permissions, StreamPermissions, TopicPermissions } from '../../sdk/wire/permissions.ts'
import { usageError } from './grammar.ts'

type Flag = keyof GlobalPermissions | keyof StreamPermissions | keyof TopicPermissions
type Words<K extends Flag> = readonly (readonly [key: K, long: string, short: string])[]

const GLOBAL_WORDS: Words<keyof GlobalPermissions> = [
  ['manageServers', 'manage_servers', 'm_srv'],
  ['readServers', 'read_servers', 'r_srv'],
  ['manageUsers', 'manage_users', 'm_usr'],
  ['readUsers', 'read_users', 'r_usr'],
  ['manageStreams', 'manage_streams', 'm_str'],
  ['readStreams', 'read_streams', 'r_str'],
  ['manageTopics', 'manage_topics', 'm_top'],
  ['readTopics', 'read_topics', 'r_top'],
  ['pollMessages', 'poll_messages', 'p_msg'],
  ['sendMessages', 'send_messages', 's_msg'],
]
const STREAM_WORDS: Words<Exclude<keyof StreamPermissions, 'streamId' | 'topics'>> = [
  ['manageStream', 'manage_stream', 'm_str'],
  ['readStream', 'read_stream', 'r_str'],
  ['manageTopics', 'manage_topics', 'm_top'],
  ['readTopics', 'read_topics', 'r_top'],
  ['pollMessages', 'poll_messages', 'p_msg'],
  ['sendMessages', 'send_messages', 's_msg'],
]
const TOPIC_WORDS: Words<Exclude<keyof TopicPermissions, 'topicId'>> = [
  ['manageTopic', 'manage_topic', 'm_top'],
  ['readTopic', 'read_topic', 'r_top'],
  ['pollMessages', 'poll_messages', 'p_msg'],
  ['sendMessages', 'send_messages', 's_msg'],
]

/** @returns null when neither is given. @throws {EdgeError} a usage error that lists the words there are. */
export function parsePermissions(global: string | undefined, streams: readonly string[]): Permissions | null {
  if (global === undefined && streams.length === 0) return null
  return { ...flagsOf('global-permissions', global ?? '', GLOBAL_WORDS), streams: streams.map(parseStream) }
}

export function formatPermissions(permissions: Permissions | null): string {
  if (permissions === null) return ''
  const global = wordsOf(permissions, GLOBAL_WORDS)
  return [global, ...permissions.streams.map(formatStream)].filter((text) => text !== '').join(' ')
}

function parseStream(text: string): StreamPermissions {
  const [head = '', ...topics] = text.split('#')
  const { id, words } = partsOf('stream-permissions', head)
  return { streamId: id, ...flagsOf('stream-permissions', words, STREAM_WORDS), topics: topics.map(parseTopic) }
}

function parseTopic(text: string): TopicPermissions {
  const { id, words } = partsOf('stream-permissions', text)
  return { topicId: id, ...flagsOf('stream-permissions', words, TOPIC_WORDS) }
}

function partsOf(name: string, text: string): { id: number; words: string } {
  const match = /^(\d{1,10})(?::(.*))?$/.exec(text)
  if (match === null) throw usageError(`${name}: found "${text}", expected ID:permission,permission`)
  return { id: Number(match[1]), words: match[2] ?? '' }
}

function flagsOf<K extends Flag>(name: string, text: string, known: Words<K>): Record<K, boolean> {
  const given = text.split(',').filter((word) => word !== '')
  for (const word of given) {
    if (known.some(([, long, short]) => word === long || word === short)) continue
    throw usageError(`${name}: found "${word}", expected ${known.map(([, long]) => long).join(', ')}`)
  }
  const flags = known.map(([key, long, short]) => [key, given.includes(long) || given.includes(short)] as const)
  return Object.fromEntries(flags) as Record<K, boolean>
}

function formatStream(stream: StreamPermissions): string {
  const topics = stream.topics.map((topic) => `#${topic.topicId}:${wordsOf(topic, TOPIC_WORDS)}`)
  return `${stream.streamId}:${wordsOf(stream, STREAM_WORDS)}${topics.join('')}`
}

function wordsOf<K extends Flag>(flags: Readonly<Record<K, boolean>>, known: Words<K>): string {
  return known
    .filter(([key]) => flags[key])
    .map(([, long]) => long)
    .join(',')
}
