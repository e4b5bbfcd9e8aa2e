/** What the domains of the broker share. */
import type { Clock } from '../../clock.ts'
import { EdgeError } from '../../errors.ts'
import type { Log, Stream, Topic } from '../../log/index.ts'
import type { Logger } from '../../logger.ts'
import type { Identifier } from '../../sdk/wire/primitives.ts'
import type { Caller } from './api.ts'
import type { Clients } from './clients.ts'
import type { LiveGroups } from './live-groups.ts'
import type { MessageDedup } from './message-dedup.ts'
import type { MessageSizes } from './message-sizes.ts'
import type { PasswordHasher } from './password.ts'
import type { Action } from './permissions.ts'
import type { RightsBook } from './rights-book.ts'
import type { Serial } from './serial.ts'
import type { BrokerSettings } from './settings.ts'
import type { TopicDefaults } from './topic-options.ts'

export interface BrokerContext {
  readonly log: Log
  readonly clock: Clock
  readonly isClockTrusted: () => boolean
  readonly logger: Logger
  readonly settings: BrokerSettings
  readonly topicDefaults: TopicDefaults
  readonly rights: RightsBook
  readonly hasher: PasswordHasher
  readonly clients: Clients
  readonly liveGroups: LiveGroups
  readonly dedup: MessageDedup
  readonly sizes: MessageSizes
  /** For changes of users and tokens. */
  readonly serial: Serial
  readonly identity: ServerIdentity
  /** The user is gone: its connections go back to being nobody's. */
  endSessionsOf(userId: number): void
  /** The user may do more or less than before. */
  rightsChanged(userId: number): void
}

/** What the server says of itself; known to whoever starts the listeners. */
export interface ServerIdentity {
  /** Such as "0.9.0". */
  readonly version: string
  addresses(): {
    readonly ip: string
    readonly tcpPort: number
    readonly quicPort: number
    readonly httpPort: number
    readonly websocketPort: number
  }
  /** The configuration in force as TOML, without secrets. */
  config(): string
  /** The newest lines of the log, where they are kept. */
  readonly recentLog?: () => string
}

/**
 * The stream, when it is there and the caller may do `action` on it.
 *
 * @returns undefined when it is missing, but only to those who may know: without a global right a missing stream looks
 *   like a forbidden one, so names cannot be probed.
 * @throws {EdgeError} EDGE_UNAUTHENTICATED, EDGE_FORBIDDEN.
 */
export function findStream(context: BrokerContext, caller: Caller, id: Identifier, action: Action): Stream | undefined {
  const stream = context.log.catalog.stream(id)
  context.rights.allow(caller, action, stream?.id)
  return stream
}

/** @throws {EdgeError} as `findStream`, and EDGE_STREAM_NOT_FOUND. */
export function getStream(context: BrokerContext, caller: Caller, id: Identifier, action: Action): Stream {
  const stream = findStream(context, caller, id, action)
  if (stream === undefined) throw streamMissing(id)
  return stream
}

/** The topic, under the rules of `findStream`; undefined when it or its stream is missing. */
export function findTopic(
  context: BrokerContext,
  caller: Caller,
  streamId: Identifier,
  id: Identifier,
  action: Action,
): Topic | undefined {
  const stream = context.log.catalog.stream(streamId)
  const topic = stream === undefined ? undefined : context.log.catalog.topic(stream.id, id)
  context.rights.allow(caller, action, stream?.id, topic?.id)
  return topic
}

/** @throws {EdgeError} as `findStream`, and EDGE_STREAM_NOT_FOUND, EDGE_TOPIC_NOT_FOUND. */
export function getTopic(
  context: BrokerContext,
  caller: Caller,
  streamId: Identifier,
  id: Identifier,
  action: Action,
): Topic {
  const topic = findTopic(context, caller, streamId, id, action)
  if (topic !== undefined) return topic
  if (context.log.catalog.stream(streamId) === undefined) throw streamMissing(streamId)
  throw new EdgeError('EDGE_TOPIC_NOT_FOUND', `topic ${quoted(id)} of stream ${quoted(streamId)} is not there`, {
    details: { stream: streamId, topic: id },
  })
}

export function partitionMissing(topic: Topic, partitionId: number): EdgeError {
  const message = `partition ${partitionId} of topic "${topic.name}": expected 0..${topic.partitions.length - 1}`
  return new EdgeError('EDGE_PARTITION_NOT_FOUND', message, {
    details: { streamId: topic.streamId, topicId: topic.id, partitionId },
  })
}

export function quoted(id: Identifier): string {
  return typeof id === 'string' ? `"${id}"` : String(id)
}

function streamMissing(id: Identifier): EdgeError {
  return new EdgeError('EDGE_STREAM_NOT_FOUND', `stream ${quoted(id)} is not there`, { details: { stream: id } })
}
