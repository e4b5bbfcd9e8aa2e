import type { TopicOptions } from '../../../log/index.ts'
import { optionOf } from '../../broker/topic-option-catalog.ts'
import { parseTopicOptions } from '../../broker/topic-options.ts'
import { type HttpRequest, json, NO_CONTENT, notFound, type Route, type RouteContext } from '../http-types.ts'
import { nameOf, pathIdentifier } from '../path-values.ts'
import { wrongShape } from '../rejection.ts'
import { describe, entries, object, optional, type Shape, text, u8, u32, u64 } from '../shape.ts'
import { viewTopic, viewTopicDetails } from '../views.ts'
import { readConsistency } from './consistency.ts'

/** Input in any case, as Iggy takes it. */
const compression: Shape<'none' | 'gzip'> = (found, path) => {
  if (typeof found !== 'string') throw wrongShape(path, `invalid type: ${describe(found)}, expected a string`)
  const name = found.toLowerCase()
  if (name === 'none' || name === 'gzip') return name
  throw wrongShape(path, `Unknown compression type: ${found}`)
}

/** Guides leave out, or set to null, what Iggy's server insists on: expiry, size and compression have defaults here. */
const topicFields = {
  name: nameOf('topic'),
  compression_algorithm: optional(compression),
  message_expiry: optional(u64('a microsecond expiry as a u64')),
  max_topic_size: optional(u64('a u64 bytes representing a MaxTopicSize')),
  replication_factor: optional(u8),
  options: optional(entries(text)),
}
const createBody = object({ ...topicFields, partitions_count: u32 })
const updateBody = object(topicFields)
type TopicBody = ReturnType<typeof updateBody>

export function topicRoutes({ broker }: RouteContext): readonly Route[] {
  const streamOf = (request: HttpRequest) => pathIdentifier(request, 'stream_id')
  const topicOf = (request: HttpRequest) => pathIdentifier(request, 'topic_id')
  return [
    {
      method: 'GET',
      path: '/streams/{stream_id}/topics',
      access: 'token',
      handle(request) {
        readConsistency(request)
        const topics = broker.topics(request.caller, streamOf(request)) ?? []
        return json(topics.map((topic) => viewTopic(topic, broker)))
      },
    },
    {
      method: 'POST',
      path: '/streams/{stream_id}/topics',
      access: 'token',
      async handle(request) {
        const stream = streamOf(request)
        const body = await request.body(createBody)
        const spec = { name: body.name, partitionCount: body.partitions_count, options: optionsOf(body, 'create') }
        return json(viewTopicDetails(await broker.createTopic(request.caller, stream, spec), broker))
      },
    },
    {
      method: 'GET',
      path: '/streams/{stream_id}/topics/{topic_id}',
      access: 'token',
      handle(request) {
        readConsistency(request)
        const topic = broker.topic(request.caller, streamOf(request), topicOf(request))
        return topic === undefined ? notFound() : json(viewTopicDetails(topic, broker))
      },
    },
    {
      method: 'PUT',
      path: '/streams/{stream_id}/topics/{topic_id}',
      access: 'token',
      async handle(request) {
        const body = await request.body(updateBody)
        const change = { name: body.name, options: optionsOf(body, 'update') }
        await broker.updateTopic(request.caller, streamOf(request), topicOf(request), change)
        return NO_CONTENT
      },
    },
    {
      method: 'DELETE',
      path: '/streams/{stream_id}/topics/{topic_id}',
      access: 'token',
      async handle(request) {
        await broker.deleteTopic(request.caller, streamOf(request), topicOf(request))
        return NO_CONTENT
      },
    },
    {
      method: 'DELETE',
      path: '/streams/{stream_id}/topics/{topic_id}/purge',
      access: 'token',
      async handle(request) {
        await broker.purgeTopic(request.caller, streamOf(request), topicOf(request))
        return NO_CONTENT
      },
    },
  ]
}

/**
 * Top-level fields win over options of the same name; 0 and absent both mean "as configured", on an update "unchanged".
 *
 * @throws {EdgeError} EDGE_OPTION_UNKNOWN, EDGE_OPTION_INVALID.
 */
function optionsOf(body: TopicBody, purpose: 'create' | 'update'): Partial<TopicOptions> {
  const options = new Map([...(body.options ?? [])].map(([key, text]) => [key, optionOf(key, 'string', text)]))
  const { compression_algorithm: codec, message_expiry: expiry, max_topic_size: size } = body
  // A new topic that names the default has not asked for anything.
  if (codec !== undefined && (codec !== 'none' || purpose === 'update'))
    options.set('compression_algorithm', optionOf('compression_algorithm', 'string', codec))
  if (expiry !== undefined && expiry > 0n) options.set('message_expiry', optionOf('message_expiry', 'uint64', expiry))
  if (size !== undefined && size > 0n) options.set('max_topic_size', optionOf('max_topic_size', 'uint64', size))
  const asked = parseTopicOptions([...options.values()], purpose)
  const { replication_factor: replicationFactor } = body
  // Kept and shown for clients of 0.8; the newest server ignores it, 0 included.
  return replicationFactor === undefined || replicationFactor === 0 ? asked : { ...asked, replicationFactor }
}
