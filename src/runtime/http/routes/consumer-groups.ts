import { EdgeError } from '../../../errors.ts'
import { type HttpRequest, json, NO_CONTENT, notFound, type Route, type RouteContext } from '../http-types.ts'
import { nameOf, pathIdentifier, pathText } from '../path-values.ts'
import { object } from '../shape.ts'
import { viewGroup, viewGroupDetails } from '../views.ts'
import { readConsistency } from './consistency.ts'

const groupBody = object({ name: nameOf('group') })

export function consumerGroupRoutes({ broker }: RouteContext): readonly Route[] {
  const streamOf = (request: HttpRequest) => pathIdentifier(request, 'stream_id')
  const topicOf = (request: HttpRequest) => pathIdentifier(request, 'topic_id')
  const groupOf = (request: HttpRequest) => pathIdentifier(request, 'group_id')

  /** The groups of a topic, which must be there: a missing one is an error here, not an empty list. */
  const groupsOf = (request: HttpRequest) => {
    readConsistency(request)
    const groups = broker.groups(request.caller, streamOf(request), topicOf(request))
    if (groups !== undefined) return groups
    const hasStream = broker.stream(request.caller, streamOf(request)) !== undefined
    const [stream, topic] = [pathText(request, 'stream_id'), pathText(request, 'topic_id')]
    throw hasStream
      ? new EdgeError('EDGE_TOPIC_NOT_FOUND', `Topic with ID: ${topic} for stream with ID: ${stream} was not found.`)
      : new EdgeError('EDGE_STREAM_NOT_FOUND', `Stream with ID: ${stream} was not found.`)
  }

  return [
    {
      method: 'GET',
      path: '/streams/{stream_id}/topics/{topic_id}/consumer-groups',
      access: 'token',
      handle: (request) => json(groupsOf(request).map(viewGroup)),
    },
    {
      method: 'POST',
      path: '/streams/{stream_id}/topics/{topic_id}/consumer-groups',
      access: 'token',
      async handle(request) {
        const { name } = await request.body(groupBody)
        const group = await broker.createGroup(request.caller, streamOf(request), topicOf(request), name)
        return json(viewGroupDetails(group))
      },
    },
    {
      method: 'GET',
      path: '/streams/{stream_id}/topics/{topic_id}/consumer-groups/{group_id}',
      access: 'token',
      handle(request) {
        groupsOf(request)
        const group = broker.group(request.caller, streamOf(request), topicOf(request), groupOf(request))
        return group === undefined ? notFound() : json(viewGroupDetails(group))
      },
    },
    {
      method: 'DELETE',
      path: '/streams/{stream_id}/topics/{topic_id}/consumer-groups/{group_id}',
      access: 'token',
      async handle(request) {
        await broker.deleteGroup(request.caller, streamOf(request), topicOf(request), groupOf(request))
        return NO_CONTENT
      },
    },
  ]
}
