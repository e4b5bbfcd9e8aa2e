import type { Identifier } from '../../../sdk/wire/primitives.ts'
import { type HttpRequest, json, NO_CONTENT, notFound, type Route, type RouteContext } from '../http-types.ts'
import { parseIdentifier, pathIdentifier } from '../path-values.ts'
import { object, optional, type Shape, text, u32, u64 } from '../shape.ts'
import { viewOffset } from '../views.ts'
import { readConsistency } from './consistency.ts'

/** Who asks where nobody is named. */
export const DEFAULT_CONSUMER: Identifier = 1

/** `5`, `"5"` and `"name"`. */
const consumerId: Shape<Identifier> = (found, path) =>
  typeof found === 'string' ? parseIdentifier(text(found, path)) : u32(found, path)

const storeBody = object({ consumer_id: optional(consumerId), partition_id: optional(u32), offset: u64() })

export function offsetRoutes({ broker }: RouteContext): readonly Route[] {
  const streamOf = (request: HttpRequest) => pathIdentifier(request, 'stream_id')
  const topicOf = (request: HttpRequest) => pathIdentifier(request, 'topic_id')
  const path = '/streams/{stream_id}/topics/{topic_id}/consumer-offsets'
  return [
    {
      method: 'GET',
      path,
      access: 'token',
      handle(request) {
        readConsistency(request)
        const name = request.query.text('consumer_id')
        const consumer = {
          kind: 'consumer',
          id: name === undefined ? DEFAULT_CONSUMER : parseIdentifier(name),
        } as const
        const partitionId = request.query.u32('partition_id') ?? 0
        const offset = broker.offset(request.caller, consumer, streamOf(request), topicOf(request), partitionId)
        return offset === undefined ? notFound() : json(viewOffset(offset))
      },
    },
    {
      method: 'PUT',
      path,
      access: 'token',
      async handle(request) {
        const body = await request.body(storeBody)
        const consumer = { kind: 'consumer', id: body.consumer_id ?? DEFAULT_CONSUMER } as const
        const partitionId = body.partition_id ?? 0
        await broker.storeOffset(
          request.caller,
          consumer,
          streamOf(request),
          topicOf(request),
          partitionId,
          body.offset,
        )
        return NO_CONTENT
      },
    },
    {
      method: 'DELETE',
      path: `${path}/{consumer_id}`,
      access: 'token',
      async handle(request) {
        const consumer = { kind: 'consumer', id: pathIdentifier(request, 'consumer_id') } as const
        const partitionId = request.query.u32('partition_id') ?? 0
        await broker.deleteOffset(request.caller, consumer, streamOf(request), topicOf(request), partitionId)
        return NO_CONTENT
      },
    },
  ]
}
