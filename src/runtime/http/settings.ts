/** Settings of the HTTP listener: `[http]`, `[http.cors]`, `[http.jwt]` with its trusted issuers, `[http.metrics]`, `[http.tls]`. */
import {
  address,
  boolean,
  choice,
  DAY_MS,
  duration,
  HOUR_MS,
  integer,
  KIB,
  MIB,
  MINUTE_MS,
  SECOND_MS,
  secret,
  size,
  text,
  texts,
  type ValuesOf,
} from '../../setting.ts'

export const HTTP_SETTINGS = {
  enabled: boolean(true, 'Whether the HTTP API and the inspection page are served.'),
  address: address('127.0.0.1:3000', 'Where HTTP listens; port 0 takes a free one.'),
  max_request_size: size(
    { default: 2_000_000, min: KIB, max: 64 * MIB },
    'Largest request body; a larger one is answered with 413.',
  ),
  max_held_bodies: size(
    { default: 16_000_000, min: KIB, max: 1024 * MIB },
    'Request bodies held in memory at the same time; beyond it requests are answered with 503.',
  ),
  max_connections: integer(
    { default: 256, min: 1, max: 65_536 },
    'Connections at the same time; more are closed as they come.',
  ),
  header_timeout: duration(
    { default: 10 * SECOND_MS, min: 100, max: 5 * MINUTE_MS },
    'The head of a request must be complete after this time.',
  ),
  request_timeout: duration(
    { default: MINUTE_MS, min: 100, max: HOUR_MS },
    'A whole request must have been received after this time.',
  ),
  idle_timeout: duration(
    { default: MINUTE_MS, min: 100, max: HOUR_MS },
    'A kept connection without a request is closed after this time.',
  ),
  open_reads_on_loopback: boolean(
    true,
    'Whether callers on this machine may read /stats, /metrics and the details of /health without a token.',
  ),
  basic_authentication: boolean(true, 'Whether user name and password are taken with every request (HTTP Basic).'),
  page: boolean(true, 'Whether browsers get the inspection page at /.'),
} as const

export const HTTP_CORS_SETTINGS = {
  enabled: boolean(true, 'Whether pages of other origins may call the API.'),
  allowed_origins: texts(['*'], 'Origins that may call, such as "https://example.org"; * in the first place for all.'),
  allowed_methods: texts(['GET', 'POST', 'PUT', 'DELETE'], 'Methods that such pages may use.'),
  allowed_headers: texts(['content-type', 'authorization'], 'Headers that such pages may send.'),
  exposed_headers: texts(['iggy-durability'], 'Headers of answers that such pages may read.'),
  allow_credentials: boolean(false, 'Whether browsers may send along what they keep for the API; not with a *.'),
  allow_private_network: boolean(
    false,
    'Whether pages of public networks may call where this address is a private one.',
  ),
} as const

export const HTTP_JWT_SETTINGS = {
  issuer: text('iggy.apache.org', 'Issuer written into access tokens and expected in them.'),
  audience: text('iggy.apache.org', 'Audience written into access tokens and expected in them.'),
  access_token_expiry: duration(
    { default: HOUR_MS, min: SECOND_MS, max: 3650 * DAY_MS },
    'Access tokens are valid this long.',
  ),
  clock_skew: duration(
    { default: 5 * SECOND_MS, min: 0, max: HOUR_MS },
    'Times in access tokens may be off by this much.',
  ),
  secret: secret('', 'Signs access tokens; empty makes one at first start and keeps it in the data folder.'),
} as const

export const TRUSTED_ISSUER_SETTINGS = {
  issuer: { ...text('', 'Issuer of the tokens: their claim `iss`.'), min: 1 },
  jwks_url: { ...text('', 'Where it publishes its keys, as a JSON web key set.'), min: 1 },
  audience: { ...text('', 'Audience expected in the tokens.'), min: 1 },
  user_id: integer(
    { default: 0, min: 0, max: 0xffff_ffff },
    'Who brings such a token acts as this user. Root (0) cannot be: then every token is refused.',
  ),
} as const

export const HTTP_METRICS_SETTINGS = {
  enabled: boolean(true, 'Whether metrics are served.'),
  endpoint: text('/metrics', 'Path of the metrics.'),
  access: choice('token', ['token', 'open'], 'Whether callers from other machines need a token for the metrics.'),
} as const

export const HTTP_TLS_SETTINGS = {
  enabled: boolean(false, 'Whether the listener speaks HTTPS.'),
  cert_file: text('', 'Certificate chain, PEM; replaced files are taken up without a restart.'),
  key_file: text('', 'Private key, PEM.'),
} as const

/** Sections by name, as the configuration takes them. */
export const HTTP_SECTIONS = {
  http: HTTP_SETTINGS,
  'http.cors': HTTP_CORS_SETTINGS,
  'http.jwt': HTTP_JWT_SETTINGS,
  'http.metrics': HTTP_METRICS_SETTINGS,
  'http.tls': HTTP_TLS_SETTINGS,
} as const

/** Sections that repeat. */
export const HTTP_LISTS = { 'http.jwt.trusted_issuers': TRUSTED_ISSUER_SETTINGS } as const

export type TrustedIssuerSettings = ValuesOf<typeof TRUSTED_ISSUER_SETTINGS>

export type HttpSettings = { readonly [S in keyof typeof HTTP_SECTIONS]: ValuesOf<(typeof HTTP_SECTIONS)[S]> } & {
  readonly [L in keyof typeof HTTP_LISTS]: readonly ValuesOf<(typeof HTTP_LISTS)[L]>[]
}
