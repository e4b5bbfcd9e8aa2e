/**
 * Who may do what: the rules of Iggy's permissions as a table. Pure.
 *
 * Rights add up from global over stream to topic; any one that an action names is enough. Managing implies reading and
 * reading implies polling, but only managing implies sending. A user's `Permissions` are compiled once to bit masks, so a
 * check on the hot path is two or three bit operations and no allocation.
 */
import type { Permissions } from '../../sdk/wire/permissions.ts'

export type Action =
  | 'read-servers'
  | 'read-users'
  | 'manage-users'
  | 'list-streams'
  | 'get-stream'
  | 'create-stream'
  | 'manage-stream'
  | 'list-topics'
  | 'get-topic'
  | 'create-topic'
  | 'manage-topic'
  | 'poll'
  | 'send'

/** Bits of the global mask, and of the stream and topic masks where the word exists there. */
const MANAGE_SERVERS = 1
const READ_SERVERS = 2
const MANAGE_USERS = 4
const READ_USERS = 8
const MANAGE_STREAMS = 16
const READ_STREAMS = 32
const MANAGE_TOPICS = 64
const READ_TOPICS = 128
const POLL = 256
const SEND = 512

interface Rule {
  /** Any of these bits at the level is enough. */
  readonly global: number
  readonly stream: number
  readonly topic: number
}

const MANAGE_ANY = MANAGE_STREAMS | MANAGE_TOPICS
const READ_ANY = MANAGE_ANY | READ_STREAMS | READ_TOPICS

const RULES: Readonly<Record<Action, Rule>> = {
  'read-servers': { global: MANAGE_SERVERS | READ_SERVERS, stream: 0, topic: 0 },
  'read-users': { global: MANAGE_USERS | READ_USERS, stream: 0, topic: 0 },
  'manage-users': { global: MANAGE_USERS, stream: 0, topic: 0 },
  'list-streams': { global: MANAGE_STREAMS | READ_STREAMS, stream: 0, topic: 0 },
  'get-stream': { global: MANAGE_STREAMS | READ_STREAMS, stream: MANAGE_STREAMS | READ_STREAMS, topic: 0 },
  'create-stream': { global: MANAGE_STREAMS, stream: 0, topic: 0 },
  'manage-stream': { global: MANAGE_STREAMS, stream: MANAGE_STREAMS, topic: 0 },
  'list-topics': { global: READ_ANY, stream: READ_ANY, topic: 0 },
  'get-topic': { global: READ_ANY, stream: READ_ANY, topic: MANAGE_TOPICS | READ_TOPICS },
  'create-topic': { global: MANAGE_ANY, stream: MANAGE_ANY, topic: 0 },
  'manage-topic': { global: MANAGE_ANY, stream: MANAGE_ANY, topic: MANAGE_TOPICS },
  poll: { global: READ_ANY | POLL, stream: READ_ANY | POLL, topic: MANAGE_TOPICS | READ_TOPICS | POLL },
  send: { global: MANAGE_ANY | SEND, stream: MANAGE_ANY | SEND, topic: MANAGE_TOPICS | SEND },
}

/** Compiled permissions of one user. */
export interface Rights {
  readonly global: number
  readonly streams: ReadonlyMap<number, StreamRights>
}

interface StreamRights {
  readonly mask: number
  readonly topics: ReadonlyMap<number, number>
}

export const NO_RIGHTS: Rights = { global: 0, streams: new Map() }

export function compileRights(permissions: Permissions | null): Rights {
  if (permissions === null) return NO_RIGHTS
  const streams = new Map<number, StreamRights>()
  for (const stream of permissions.streams) {
    const topics = new Map<number, number>()
    for (const topic of stream.topics) {
      const level = maskOf(topic.manageTopic, MANAGE_TOPICS) | maskOf(topic.readTopic, READ_TOPICS)
      topics.set(topic.topicId, level | maskOf(topic.pollMessages, POLL) | maskOf(topic.sendMessages, SEND))
    }
    const level = maskOf(stream.manageStream, MANAGE_STREAMS) | maskOf(stream.readStream, READ_STREAMS)
    streams.set(stream.streamId, { mask: level | maskOfTopics(stream), topics })
  }
  const servers = maskOf(permissions.manageServers, MANAGE_SERVERS) | maskOf(permissions.readServers, READ_SERVERS)
  const users = maskOf(permissions.manageUsers, MANAGE_USERS) | maskOf(permissions.readUsers, READ_USERS)
  const level = maskOf(permissions.manageStreams, MANAGE_STREAMS) | maskOf(permissions.readStreams, READ_STREAMS)
  return { global: servers | users | level | maskOfTopics(permissions), streams }
}

/** Everything: root's. */
export const ALL_PERMISSIONS: Permissions = {
  manageServers: true,
  readServers: true,
  manageUsers: true,
  readUsers: true,
  manageStreams: true,
  readStreams: true,
  manageTopics: true,
  readTopics: true,
  pollMessages: true,
  sendMessages: true,
  streams: [],
}

/** @param streamId undefined when the action has no stream, or names one that is not there: then only global rights count. */
export function isAllowed(rights: Rights, action: Action, streamId?: number, topicId?: number): boolean {
  const rule = RULES[action]
  if ((rights.global & rule.global) !== 0) return true
  if (streamId === undefined || rights.streams.size === 0) return false
  const stream = rights.streams.get(streamId)
  if (stream === undefined) return false
  if ((stream.mask & rule.stream) !== 0) return true
  return topicId !== undefined && ((stream.topics.get(topicId) ?? 0) & rule.topic) !== 0
}

/** Whether the rights allow the action in any stream or topic, or in all. */
export function isAllowedSomewhere(rights: Rights, action: Action): boolean {
  const rule = RULES[action]
  if ((rights.global & rule.global) !== 0) return true
  for (const { mask, topics } of rights.streams.values()) {
    if ((mask & rule.stream) !== 0) return true
    for (const each of topics.values()) if ((each & rule.topic) !== 0) return true
  }
  return false
}

interface TopicsAndMessages {
  readonly manageTopics: boolean
  readonly readTopics: boolean
  readonly pollMessages: boolean
  readonly sendMessages: boolean
}

function maskOfTopics(level: TopicsAndMessages): number {
  const topics = maskOf(level.manageTopics, MANAGE_TOPICS) | maskOf(level.readTopics, READ_TOPICS)
  return topics | maskOf(level.pollMessages, POLL) | maskOf(level.sendMessages, SEND)
}

function maskOf(isGiven: boolean, bit: number): number {
  return isGiven ? bit : 0
}
