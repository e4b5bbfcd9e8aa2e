/** Asks a running edge for its health and its overview, and says both in sentences. */
import { stringifyExact } from '../http/json.ts'
import { type CommandContext, EXIT } from './command.ts'
import type { EdgeHttp } from './edge-http.ts'
import type { Values } from './grammar.ts'
import { connectHttp } from './server-client.ts'
import { formatStatus, type HealthView, type OverviewView } from './status-text.ts'

/** @returns 0 when all is well, 1 when it is not ready or degraded. @throws {EdgeError} EDGE_UPSTREAM_UNREACHABLE .. */
export async function showStatus(values: Values, context: CommandContext): Promise<number> {
  const http = await connectHttp(values, context)
  const health = (await http.succeed({ method: 'GET', path: '/health' })) as HealthView
  const overview = http.hasCredentials ? await overviewOf(http) : null
  const code = health.status === 'ready' ? EXIT.ok : EXIT.failed
  if (values.has('quiet') && code === EXIT.ok) return code
  const isJson = values.has('json') || values.text('output') === 'json'
  if (isJson) context.print(stringifyExact(overview ?? { health }))
  else context.print(formatStatus(http.url, health, overview))
  return code
}

async function overviewOf(http: EdgeHttp): Promise<OverviewView> {
  return (await http.succeed({ method: 'GET', path: '/edge/overview' })) as OverviewView
}
