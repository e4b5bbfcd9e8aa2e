import { type HttpRequest, NO_CONTENT, type Route, type RouteContext } from '../http-types.ts'
import { pathIdentifier, pathU32 } from '../path-values.ts'
import { object, u32 } from '../shape.ts'

const countBody = object({ partitions_count: u32 })

export function partitionRoutes({ broker }: RouteContext): readonly Route[] {
  const streamOf = (request: HttpRequest) => pathIdentifier(request, 'stream_id')
  const topicOf = (request: HttpRequest) => pathIdentifier(request, 'topic_id')
  return [
    {
      method: 'POST',
      path: '/streams/{stream_id}/topics/{topic_id}/partitions',
      access: 'token',
      async handle(request) {
        const { partitions_count: count } = await request.body(countBody)
        await broker.createPartitions(request.caller, streamOf(request), topicOf(request), count)
        return { status: 200 }
      },
    },
    {
      method: 'DELETE',
      path: '/streams/{stream_id}/topics/{topic_id}/partitions',
      access: 'token',
      async handle(request) {
        const count = request.query.requiredU32('partitions_count')
        await broker.deletePartitions(request.caller, streamOf(request), topicOf(request), count)
        return NO_CONTENT
      },
    },
    {
      method: 'DELETE',
      path: '/streams/{stream_id}/topics/{topic_id}/partitions/{partition_id}',
      access: 'token',
      async handle(request) {
        const partitionId = pathU32(request, 'partition_id')
        const count = request.query.requiredU32('segments_count')
        await broker.deleteSegments(request.caller, streamOf(request), topicOf(request), partitionId, count)
        return NO_CONTENT
      },
    },
  ]
}
