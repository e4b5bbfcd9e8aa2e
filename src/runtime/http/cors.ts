/** Headers that let pages of other origins call the API. Pure. */
import type { ValuesOf } from '../../setting.ts'
import type { HTTP_CORS_SETTINGS } from './settings.ts'

export type CorsRules = ValuesOf<typeof HTTP_CORS_SETTINGS>

/** What a request says of the page that makes it. */
export interface CorsRequest {
  readonly origin?: string | undefined
  readonly 'access-control-request-private-network'?: string | string[] | undefined
}

export const ANY = '*'

/** Of every answer but to a preflight. */
export function corsHeaders(rules: CorsRules, request: CorsRequest): Readonly<Record<string, string>> {
  return rules.enabled
    ? { ...originHeaders(rules, request), ...listed('access-control-expose-headers', rules.exposed_headers) }
    : {}
}

/** Any `OPTIONS` is answered before it is looked who asks, also for paths that are not there. */
export function preflightHeaders(
  rules: CorsRules,
  request: CorsRequest,
  allow: string | undefined,
): Readonly<Record<string, string>> {
  const isForPrivate = rules.allow_private_network && request['access-control-request-private-network'] === 'true'
  return {
    ...originHeaders(rules, request),
    ...listed('access-control-allow-methods', rules.allowed_methods),
    ...listed('access-control-allow-headers', rules.allowed_headers),
    ...(isForPrivate ? { 'access-control-allow-private-network': 'true' } : {}),
    ...(allow === undefined ? {} : { allow }),
  }
}

/** A page that may not call is told nothing: then its browser keeps the answer from it. */
function originHeaders(rules: CorsRules, { origin }: CorsRequest): Readonly<Record<string, string>> {
  const { allowed_origins: origins, allow_credentials } = rules
  if (origins[0] === ANY) return { 'access-control-allow-origin': ANY }
  const vary = { vary: 'origin' }
  if (origin === undefined || !origins.includes(origin)) return vary
  return {
    ...vary,
    'access-control-allow-origin': origin,
    ...(allow_credentials ? { 'access-control-allow-credentials': 'true' } : {}),
  }
}

const listed = (header: string, values: readonly string[]): Readonly<Record<string, string>> =>
  values.length === 0 ? {} : { [header]: values.join(',') }
