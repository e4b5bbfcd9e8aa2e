/**
 * Which server a command means and who asks: from options, then the environment, then the defaults. Pure.
 *
 * Words of Iggy's own command line (`--tcp-server-address`, `--http-api-url`) and of guides (`IGGY_URL`) mean the same as
 * ours. A URL of HTTP names the machine; the binary protocol's port is asked for there.
 */
import { messageOf } from '../../errors.ts'
import {
  type ConnectionCredentials,
  type ConnectionTarget,
  DEFAULT_CONNECTION_OPTIONS,
  parseConnectionString,
} from '../../sdk/index.ts'
import type { CommandContext } from './command.ts'
import { usageError, type Values } from './grammar.ts'
import { DEFAULT_HTTP_URL } from './server-arguments.ts'

const DEFAULT_HTTP_PORT = 3000

export interface ServerAddress {
  /** Null when only the HTTP address is known: the edge tells where TCP listens. */
  readonly target: ConnectionTarget | null
  /** Without a slash at the end. */
  readonly httpUrl: string
  readonly credentials: ConnectionCredentials | null
  /** A user was named and no password: to be asked for. */
  readonly userWithoutPassword: string | null
}

/** @throws {EdgeError} a usage error that names the option. */
export function serverAddressOf(values: Values, { environment }: Pick<CommandContext, 'environment'>): ServerAddress {
  const transport = values.text('transport') ?? 'tcp'
  if (transport !== 'tcp')
    throw usageError(`transport: found "${transport}", expected tcp; other ways in are named by --url iggy+wt://..`)
  const text = values.text('url') ?? values.text('tcp-server-address') ?? environment.IGGY_URL ?? ''
  const http = httpUrlOf(text)
  const target = http === null ? withTls(parseTarget(text), values) : null
  const given = credentialsOf(values, environment)
  const found = given.credentials ?? http?.credentials ?? target?.credentials ?? fromEnvironment(environment)
  const ownHttpUrl = values.text('http-url') ?? http?.url ?? httpBeside(target, text)
  return {
    target,
    httpUrl: trimSlash(/^https?:\/\//.test(ownHttpUrl) ? ownHttpUrl : `http://${ownHttpUrl}`),
    credentials: given.userWithoutPassword === null ? found : null,
    userWithoutPassword: given.userWithoutPassword,
  }
}

/** On the machine that was named: `status --url gateway:8090` must not show the edge of this one. */
function httpBeside(target: ConnectionTarget | null, text: string): string {
  return target === null || text === '' ? DEFAULT_HTTP_URL : httpUrlAt(target.host, DEFAULT_HTTP_PORT)
}

const httpUrlAt = (host: string, port: number): string => `http://${host.includes(':') ? `[${host}]` : host}:${port}`

function parseTarget(text: string): ConnectionTarget {
  const whole = text === '' ? 'iggy+tcp://127.0.0.1:8090' : text.includes('://') ? text : `iggy+tcp://${text}`
  const target = connectionTargetOf(whole)
  if (target.scheme === 'device') throw usageError('url: edge+wt:// is for devices; expected iggy:// or iggy+wt://')
  return target
}

/** It came from the command line or from IGGY_URL: the words are wrong, not the configuration. */
function connectionTargetOf(text: string): ConnectionTarget {
  try {
    return parseConnectionString(text)
  } catch (error) {
    throw usageError(`url: ${messageOf(error)}`)
  }
}

/** The address of an HTTP URL, also of Iggy's `iggy+http://`; null for all others. */
function httpUrlOf(text: string): { url: string; credentials: ConnectionCredentials | null } | null {
  if (text.startsWith('iggy+http://')) {
    const { host, port, credentials } = connectionTargetOf(text)
    return { url: httpUrlAt(host, port), credentials }
  }
  if (!/^https?:\/\//.test(text)) return null
  const url = URL.parse(text)
  if (url === null) throw usageError(`url: found "${text}", expected http://host:${DEFAULT_HTTP_PORT}`)
  const [username, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)]
  return { url: url.origin, credentials: username === '' ? null : { kind: 'password', username, password } }
}

function withTls(target: ConnectionTarget, values: Values): ConnectionTarget {
  const { tls, tlsDomain, tlsCaFile } = target.options
  const options = {
    ...target.options,
    tls: tls || values.has('tcp-tls-enabled'),
    tlsDomain: values.text('tcp-tls-domain') ?? tlsDomain,
    tlsCaFile: values.text('tcp-tls-ca-file') ?? tlsCaFile,
  }
  return { ...target, options }
}

/** What was given by hand for this call; it wins over what a URL or the environment says. */
function credentialsOf(
  values: Values,
  environment: CommandContext['environment'],
): Pick<ServerAddress, 'credentials' | 'userWithoutPassword'> {
  const token = values.text('token')
  if (token !== undefined) return { credentials: { kind: 'token', token }, userWithoutPassword: null }
  const username = values.text('username')
  if (username === undefined) return { credentials: null, userWithoutPassword: null }
  const password = values.text('password') ?? environment.IGGY_PASSWORD
  if (password === undefined) return { credentials: null, userWithoutPassword: username }
  return { credentials: { kind: 'password', username, password }, userWithoutPassword: null }
}

function fromEnvironment({
  IGGY_USERNAME,
  IGGY_PASSWORD,
}: CommandContext['environment']): ConnectionCredentials | null {
  // Empty is how a shell says that there is none.
  if (!IGGY_USERNAME || !IGGY_PASSWORD) return null
  return { kind: 'password', username: IGGY_USERNAME, password: IGGY_PASSWORD }
}

/** A target on the same machine as the HTTP address, with the port that the edge named. */
export function targetBeside(httpUrl: string, port: number): ConnectionTarget {
  const { hostname } = new URL(httpUrl)
  const host = hostname.replace(/^\[|\]$/g, '')
  return { scheme: 'tcp', host, port, credentials: null, options: DEFAULT_CONNECTION_OPTIONS }
}

const trimSlash = (url: string): string => url.replace(/\/+$/, '')
