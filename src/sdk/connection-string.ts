/**
 * Connection strings: `iggy://user:password@host:port?option=value`, as Iggy's SDKs take them, and ours beside them. Pure.
 *
 *   iggy, iggy+tcp   Iggy's binary protocol over TCP or TLS       iggy+http  its REST API
 *   iggy+wt          the binary protocol over WebTransport        edge+wt    the device protocol over WebTransport
 *
 * A single part before the `@` is a personal access token. Credentials may be percent-encoded; a `%` that begins no
 * escape stands for itself, so that strings written for Iggy's SDKs (which decode nothing) keep working. Unlike there, an
 * IPv6 address may stand in brackets, and the port may be left out.
 */
import { EdgeError } from '../errors.ts'
import { DAY_MS } from '../setting.ts'
import { SDK_DEFAULTS } from './defaults.ts'
import { parseDuration } from './duration.ts'

export type Scheme = 'tcp' | 'http' | 'webtransport' | 'device'
export type Generation = 'classic' | 'vsr' | 'auto'

export type ConnectionCredentials =
  | { readonly kind: 'password'; readonly username: string; readonly password: string }
  | { readonly kind: 'token'; readonly token: string }

export interface ConnectionTarget {
  readonly scheme: Scheme
  readonly host: string
  readonly port: number
  /** null: the caller logs in. */
  readonly credentials: ConnectionCredentials | null
  readonly options: ConnectionOptions
}

export interface ConnectionOptions {
  readonly generation: Generation
  readonly tls: boolean
  /** Name to expect in the certificate; '' = the host. */
  readonly tlsDomain: string
  /** Path of a file with trusted certificates; '' = the system's. */
  readonly tlsCaFile: string
  readonly tlsValidateCertificate: boolean
  /** SHA-256 of the server's certificate, hex: pins a self-signed one over WebTransport. */
  readonly certificateHash: string
  readonly nodelay: boolean
  /** null = unlimited. */
  readonly reconnectionRetries: number | null
  readonly reconnectionIntervalMs: number
  readonly reestablishAfterMs: number
  readonly heartbeatIntervalMs: number
  readonly connectTimeoutMs: number
  readonly requestTimeoutMs: number
  /** Name of the device, for `edge+wt`. */
  readonly device: string
}

const SCHEMES: Readonly<Record<string, Scheme>> = {
  iggy: 'tcp',
  'iggy+tcp': 'tcp',
  'iggy+http': 'http',
  'iggy+wt': 'webtransport',
  'edge+wt': 'device',
}
const DEFAULT_PORTS: Readonly<Record<Scheme, number>> = {
  tcp: SDK_DEFAULTS.port,
  http: SDK_DEFAULTS.httpPort,
  webtransport: SDK_DEFAULTS.webTransportPort,
  device: SDK_DEFAULTS.webTransportPort,
}

export const DEFAULT_CONNECTION_OPTIONS: ConnectionOptions = {
  generation: 'auto',
  tls: false,
  tlsDomain: '',
  tlsCaFile: '',
  tlsValidateCertificate: true,
  certificateHash: '',
  nodelay: true,
  reconnectionRetries: null,
  reconnectionIntervalMs: SDK_DEFAULTS.reconnectionIntervalMs,
  reestablishAfterMs: SDK_DEFAULTS.reestablishAfterMs,
  heartbeatIntervalMs: SDK_DEFAULTS.heartbeatIntervalMs,
  connectTimeoutMs: SDK_DEFAULTS.connectTimeoutMs,
  requestTimeoutMs: SDK_DEFAULTS.requestTimeoutMs,
  device: '',
}

/** No wait of a connection is longer: above 25 days a timer would fire at once. */
const MAX_DURATION_MS = DAY_MS
/** Nobody answers within less. */
const MIN_TIMEOUT_MS = 1
/** Shorter would be no pause at all: a server that is away would be dialed without end. */
const MIN_RECONNECTION_INTERVAL_MS = 10
/** Shorter would keep both sides busy with pings; zero means none. */
const MIN_HEARTBEAT_INTERVAL_MS = 10

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
type OptionReader = (options: Mutable<ConnectionOptions>, value: string) => void

const OPTION_READERS: Readonly<Record<string, OptionReader>> = {
  generation: (options, value) => {
    if (value !== 'classic' && value !== 'vsr' && value !== 'auto')
      throw bad('generation', 'classic, vsr or auto', value)
    options.generation = value
  },
  tls: (options, value) => {
    options.tls = readFlag('tls', value)
  },
  tls_domain: (options, value) => {
    options.tlsDomain = value
  },
  tls_ca_file: (options, value) => {
    options.tlsCaFile = value
  },
  tls_validate_certificate: (options, value) => {
    options.tlsValidateCertificate = readFlag('tls_validate_certificate', value)
  },
  validate_certificate: (options, value) => {
    options.tlsValidateCertificate = readFlag('validate_certificate', value)
  },
  certificate_hash: (options, value) => {
    const hash = value.replaceAll(':', '').toLowerCase()
    if (!/^[0-9a-f]{64}$/.test(hash)) throw bad('certificate_hash', '64 hex digits (SHA-256)', value)
    options.certificateHash = hash
  },
  nodelay: (options, value) => {
    options.nodelay = readFlag('nodelay', value)
  },
  reconnection_retries: readRetries,
  reconnection_max_retries: readRetries,
  reconnection_interval: (options, value) => {
    options.reconnectionIntervalMs = readDurationMs('reconnection_interval', value, MIN_RECONNECTION_INTERVAL_MS)
  },
  reestablish_after: readReestablishAfter,
  reconnection_reestablish_after: readReestablishAfter,
  heartbeat_interval: (options, value) => {
    const intervalMs = readDurationMs('heartbeat_interval', value)
    if (intervalMs > 0 && intervalMs < MIN_HEARTBEAT_INTERVAL_MS) {
      throw bad('heartbeat_interval', `0, or at least ${MIN_HEARTBEAT_INTERVAL_MS}ms`, value)
    }
    options.heartbeatIntervalMs = intervalMs
  },
  connect_timeout: (options, value) => {
    options.connectTimeoutMs = readDurationMs('connect_timeout', value, MIN_TIMEOUT_MS)
  },
  request_timeout: (options, value) => {
    options.requestTimeoutMs = readDurationMs('request_timeout', value, MIN_TIMEOUT_MS)
  },
  device: (options, value) => {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value)) {
      throw bad('device', '1 to 64 letters, digits, dots, dashes, underscores', value)
    }
    options.device = value
  },
}

/**
 * @throws {EdgeError} EDGE_CONFIG_INVALID; the message never holds the credentials.
 */
export function parseConnectionString(text: string): ConnectionTarget {
  const schemeEnd = text.indexOf('://')
  const schemeName = schemeEnd < 0 ? '' : text.slice(0, schemeEnd)
  const scheme = Object.hasOwn(SCHEMES, schemeName) ? SCHEMES[schemeName] : undefined
  if (scheme === undefined) {
    const found = schemeName === '' ? 'none' : `${schemeName}://`
    throw bad('scheme', `one of ${Object.keys(SCHEMES).join(', ')}`, found)
  }
  const rest = text.slice(schemeEnd + 3)
  // A raw token may hold a slash, never an @ or a ?: so the last @ before the first ? ends the credentials.
  const queryStart = rest.indexOf('?')
  const authority = queryStart < 0 ? rest : rest.slice(0, queryStart)
  const at = authority.lastIndexOf('@')
  const credentials = at < 0 ? null : parseCredentials(authority.slice(0, at))
  const { host, port } = parseHost(authority.slice(at + 1), DEFAULT_PORTS[scheme])
  const options = parseOptions(queryStart < 0 ? '' : rest.slice(queryStart + 1))
  return { scheme, host, port, credentials, options }
}

/** @returns the target without credentials, for logs and pages. */
export function describeTarget(target: ConnectionTarget): string {
  const scheme = { tcp: 'iggy+tcp', http: 'iggy+http', webtransport: 'iggy+wt', device: 'edge+wt' }[target.scheme]
  const host = target.host.includes(':') ? `[${target.host}]` : target.host
  return `${scheme}://${host}:${target.port}`
}

function parseCredentials(text: string): ConnectionCredentials {
  const colon = text.indexOf(':')
  if (colon < 0) {
    if (text === '') throw bad('credentials', 'user:password or a token before the @', 'nothing')
    return { kind: 'token', token: decodePercent(text) }
  }
  const username = decodePercent(text.slice(0, colon))
  if (username === '') throw bad('credentials', 'a user name before the colon', 'nothing')
  return { kind: 'password', username, password: decodePercent(text.slice(colon + 1)) }
}

function parseHost(text: string, defaultPort: number): { host: string; port: number } {
  const trimmed = text.endsWith('/') ? text.slice(0, -1) : text
  const match = /^(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^:[\]/]+))(?::(\d{1,5}))?$/.exec(trimmed)
  const host = match?.[1] ?? match?.[2]
  const port = match?.[3] === undefined ? defaultPort : Number(match[3])
  if (host === undefined || port < 1 || port > 65_535) {
    throw bad('address', 'host:port, an IPv6 address in brackets, a port of 1 to 65535', trimmed)
  }
  return { host, port }
}

function parseOptions(query: string): ConnectionOptions {
  const options = { ...DEFAULT_CONNECTION_OPTIONS }
  for (const pair of query.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = equals < 0 ? pair : pair.slice(0, equals)
    const read = Object.hasOwn(OPTION_READERS, name) ? OPTION_READERS[name] : undefined
    if (read === undefined) throw bad('option', `one of ${Object.keys(OPTION_READERS).join(', ')}`, name)
    read(options, decodePercent(equals < 0 ? '' : pair.slice(equals + 1)))
  }
  return options
}

/** Decodes whole runs of valid escapes and leaves everything else as it is. */
function decodePercent(text: string): string {
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (run) => {
    try {
      return decodeURIComponent(run)
    } catch {
      return run
    }
  })
}

function readRetries(options: Mutable<ConnectionOptions>, value: string): void {
  if (value !== 'unlimited' && !/^\d{1,9}$/.test(value))
    throw bad('reconnection_retries', 'unlimited or a number', value)
  options.reconnectionRetries = value === 'unlimited' ? null : Number(value)
}

function readReestablishAfter(options: Mutable<ConnectionOptions>, value: string): void {
  options.reestablishAfterMs = readDurationMs('reestablish_after', value)
}

function readFlag(name: string, value: string): boolean {
  if (value === 'true' || value === 'false') return value === 'true'
  throw bad(name, 'true or false', value)
}

function readDurationMs(name: string, value: string, minMs = 0): number {
  const durationUs = parseDuration(value)
  if (durationUs === undefined) throw bad(name, 'a duration such as 5s or 500ms', value)
  const durationMs = durationUs / 1000
  if (durationMs < minMs || durationMs > MAX_DURATION_MS) {
    throw bad(name, `${minMs}ms to ${MAX_DURATION_MS / DAY_MS}d`, value)
  }
  return durationMs
}

function bad(what: string, expected: string, found: string): EdgeError {
  return new EdgeError('EDGE_CONFIG_INVALID', `connection string: ${what}: expected ${expected}, found ${found}`)
}
