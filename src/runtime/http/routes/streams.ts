import { type HttpRequest, json, NO_CONTENT, notFound, type Route, type RouteContext } from '../http-types.ts'
import { nameOf, pathIdentifier } from '../path-values.ts'
import { entries, object, optional, text } from '../shape.ts'
import { refuseOptions } from '../topic-options.ts'
import { viewStream, viewStreamDetails } from '../views.ts'
import { readConsistency } from './consistency.ts'

const streamBody = object({ name: nameOf('stream'), options: optional(entries(text)) })
const streamId = (request: HttpRequest) => pathIdentifier(request, 'stream_id')

export function streamRoutes({ broker }: RouteContext): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/streams',
      access: 'token',
      handle(request) {
        readConsistency(request)
        return json(broker.streams(request.caller).map((stream) => viewStream(stream, broker)))
      },
    },
    {
      method: 'POST',
      path: '/streams',
      access: 'token',
      async handle(request) {
        // Unknown options are ignored here, though not on an update: so do both generations of Iggy's server.
        const { name } = await request.body(streamBody)
        return json(viewStreamDetails(await broker.createStream(request.caller, name), broker))
      },
    },
    {
      method: 'GET',
      path: '/streams/{stream_id}',
      access: 'token',
      handle(request) {
        readConsistency(request)
        const stream = broker.stream(request.caller, streamId(request))
        return stream === undefined ? notFound() : json(viewStreamDetails(stream, broker))
      },
    },
    {
      method: 'PUT',
      path: '/streams/{stream_id}',
      access: 'token',
      async handle(request) {
        const { name, options } = await request.body(streamBody)
        refuseOptions(options)
        await broker.renameStream(request.caller, streamId(request), name)
        return NO_CONTENT
      },
    },
    {
      method: 'DELETE',
      path: '/streams/{stream_id}',
      access: 'token',
      async handle(request) {
        await broker.deleteStream(request.caller, streamId(request))
        return NO_CONTENT
      },
    },
    {
      method: 'DELETE',
      path: '/streams/{stream_id}/purge',
      access: 'token',
      async handle(request) {
        await broker.purgeStream(request.caller, streamId(request))
        return NO_CONTENT
      },
    },
  ]
}
