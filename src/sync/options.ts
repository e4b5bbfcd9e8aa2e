/** Settings of store-and-forward, as configured and as filled up with defaults. Pure. */
import { EdgeError, messageOf } from '../errors.ts'
import { type ConnectionTarget, parseConnectionString } from '../sdk/index.ts'
import { parseRoute, type Route, type RouteSpec } from './core/route.ts'
import { SYNC_DEFAULTS, type SyncDefaults } from './defaults.ts'

export interface SyncOptions {
  readonly upstreams: readonly UpstreamSpec[]
  readonly routes: readonly RouteSpec[]
}

/** One `[[sync.upstreams]]`; what is absent takes the default. */
export interface UpstreamSpec extends Partial<SyncDefaults> {
  readonly name: string
  /** `iggy+tcp://user:password@host:port`, `iggy+http://..`, `iggy+wt://..`; options as in `docs/sdk.md`. */
  readonly url: string
}

export interface UpstreamSettings extends SyncDefaults {
  readonly name: string
  readonly target: ConnectionTarget
}

export interface SyncSettings {
  readonly upstreams: readonly UpstreamSettings[]
  readonly routes: readonly Route[]
}

/** @throws {EdgeError} EDGE_CONFIG_INVALID with all problems, before anything is touched. */
export function readSyncOptions(options: SyncOptions): SyncSettings {
  const problems: string[] = []
  const attempt = <T>(read: () => T): T[] => {
    try {
      return [read()]
    } catch (error) {
      problems.push(messageOf(error))
      return []
    }
  }
  const upstreams = options.upstreams.flatMap((spec) => attempt(() => readUpstream(spec)))
  const routes = options.routes.flatMap((spec) => attempt(() => parseRoute(spec)))
  const names = options.upstreams.map(({ name }) => name)
  for (const name of new Set(names.filter((one, index) => names.indexOf(one) !== index))) {
    problems.push(`sync upstream "${name}": expected one of that name, found more`)
  }
  for (const route of routes) {
    if (!names.includes(route.upstreamName)) {
      problems.push(`sync route "${route.name}": expected an upstream named "${route.upstreamName}", found none`)
    }
  }
  if (problems.length > 0) throw new EdgeError('EDGE_CONFIG_INVALID', problems.join('; '), { details: { problems } })
  return { upstreams, routes }
}

function targetOf(name: string, url: string): ConnectionTarget {
  try {
    return parseConnectionString(url)
  } catch (cause) {
    const reason = messageOf(cause)
    throw new EdgeError('EDGE_CONFIG_INVALID', `sync upstream "${name}": ${reason}`, { cause })
  }
}

function readUpstream(spec: UpstreamSpec): UpstreamSettings {
  const { name, url, ...given } = spec
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name)) {
    throw new EdgeError('EDGE_CONFIG_INVALID', `sync upstream name: expected letters, digits and ._-, found "${name}"`)
  }
  const target = targetOf(name, url)
  if (target.scheme === 'device') {
    throw new EdgeError('EDGE_CONFIG_INVALID', `sync upstream "${name}": expected an iggy url, found edge+wt`)
  }
  if (target.credentials === null) {
    throw new EdgeError('EDGE_CONFIG_INVALID', `sync upstream "${name}": expected user:password@ or token@ in its url`)
  }
  const settings = { ...SYNC_DEFAULTS, ...given, name, target }
  if (target.scheme !== 'http') return settings
  // Base64 and JSON around the records must fit the body limit of the server.
  return { ...settings, maxBatchBytes: Math.min(settings.maxBatchBytes, settings.maxHttpBatchBytes) }
}
