import { EdgeError } from '../../../errors.ts'
import { json, notFound, plain, type Route, type RouteContext } from '../http-types.ts'
import { pathText, pathU32 } from '../path-values.ts'
import { list, object, oneOf } from '../shape.ts'
import { viewOptionCatalogue } from '../topic-options.ts'
import { viewClient, viewClientDetails, viewCluster, viewStats } from '../views.ts'
import { readConsistency } from './consistency.ts'

/** By name; the place in the list + 1 is the number on the wire. */
const COMPRESSIONS = ['Stored', 'Deflated', 'Bzip2', 'Zstd', 'Lzma', 'Xz'] as const
const SNAPSHOT_TYPES = {
  FilesystemOverview: 1,
  ProcessList: 2,
  ResourceUsage: 3,
  Test: 4,
  ServerLogs: 5,
  ServerConfig: 6,
  All: 100,
} as const
const snapshotTypeNames = Object.keys(SNAPSHOT_TYPES) as (keyof typeof SNAPSHOT_TYPES)[]
const snapshotBody = object({
  compression: oneOf(...COMPRESSIONS),
  snapshot_types: list(oneOf(...snapshotTypeNames)),
})

export function systemRoutes({ broker, clock }: RouteContext): readonly Route[] {
  return [
    { method: 'GET', path: '/ping', access: 'public', handle: () => plain('pong') },
    {
      method: 'GET',
      path: '/stats',
      access: 'open-read',
      handle(request) {
        readConsistency(request)
        return json(viewStats(broker.stats(request.caller)))
      },
    },
    {
      method: 'GET',
      path: '/clients',
      access: 'token',
      handle: (request) => json(broker.clients(request.caller).map(viewClient)),
    },
    {
      method: 'GET',
      path: '/clients/{client_id}',
      access: 'token',
      handle(request) {
        const client = broker.client(request.caller, pathU32(request, 'client_id'))
        return client === undefined ? notFound() : json(viewClientDetails(client))
      },
    },
    {
      method: 'GET',
      path: '/cluster/metadata',
      access: 'token',
      handle: (request) => json(viewCluster(broker.cluster(request.caller))),
    },
    {
      method: 'GET',
      path: '/options/{scope}',
      access: 'token',
      handle(request) {
        const scope = pathText(request, 'scope')
        if (scope === 'topic') return json(viewOptionCatalogue(broker.topicDefaults))
        if (scope === 'stream' || scope === 'user') return json([])
        throw new EdgeError('EDGE_COMMAND_MALFORMED', `option scope: expected topic, stream or user, found ${scope}`)
      },
    },
    {
      method: 'POST',
      path: '/snapshot',
      access: 'token',
      async handle(request) {
        readConsistency(request)
        const body = await request.body(snapshotBody)
        const types = body.snapshot_types.map((name) => SNAPSHOT_TYPES[name])
        const compression = COMPRESSIONS.indexOf(body.compression) + 1
        const zipBytes = await broker.snapshot(request.caller, { compression, types })
        const stamp = new Date(Number(clock.wallUs() / 1000n))
          .toISOString()
          .replace(/[-:]/g, '')
          .replace('T', '_')
          .slice(0, 15)
        const headers = {
          'content-type': 'application/zip',
          'content-disposition': `attachment; filename="iggy_snapshot_${stamp}.zip"`,
        }
        return { status: 200, headers, body: zipBytes }
      },
    },
  ]
}
