/** Headers that let pages of other origins call the API. Pure. */
export interface CorsRules {
  readonly isEnabled: boolean
  /** `*` or one origin. */
  readonly allowedOrigin: string
}

export function corsHeaders(rules: CorsRules): Readonly<Record<string, string>> {
  if (!rules.isEnabled) return {}
  const headers = {
    'access-control-allow-origin': rules.allowedOrigin,
    'access-control-expose-headers': 'iggy-durability',
  }
  return rules.allowedOrigin === '*' ? headers : { ...headers, vary: 'origin' }
}

/** Any `OPTIONS` is answered before it is looked who asks, also for paths that are not there. */
export function preflightHeaders(rules: CorsRules, allow: string | undefined): Readonly<Record<string, string>> {
  return {
    'access-control-allow-origin': rules.allowedOrigin,
    'access-control-allow-methods': 'GET,POST,PUT,DELETE',
    'access-control-allow-headers': 'content-type,authorization',
    ...(allow === undefined ? {} : { allow }),
  }
}
