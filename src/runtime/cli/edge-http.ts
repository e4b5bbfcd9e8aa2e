/** Asks a running edge over HTTP: for what Iggy's binary protocol has no command. */
import { EdgeError } from '../../errors.ts'
import { parseJson } from '../../exact-json.ts'
import type { ConnectionCredentials } from '../../sdk/index.ts'
import { stringifyExact } from '../http/json.ts'
import { refuseAborted } from './unless-aborted.ts'

const TIMEOUT_MS = 10_000

export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly body?: unknown
}

export interface HttpAnswer {
  readonly status: number
  /** Parsed JSON; null when there is none. */
  readonly body: unknown
}

export class EdgeHttp {
  readonly url: string
  #credentials: ConnectionCredentials | null
  readonly #signal: AbortSignal | undefined

  /** @param signal of an interrupt: what is asked then is given up, EDGE_SHUTTING_DOWN. */
  constructor(url: string, credentials: ConnectionCredentials | null, signal?: AbortSignal) {
    this.url = url
    this.#credentials = credentials
    this.#signal = signal
  }

  get hasCredentials(): boolean {
    return this.#credentials !== null
  }

  /** @throws {EdgeError} EDGE_UPSTREAM_UNREACHABLE, EDGE_UPSTREAM_REFUSED for what does not speak JSON. */
  async call(call: HttpCall): Promise<HttpAnswer> {
    const answer = await this.#ask(call)
    if (answer.status !== 401 || this.#credentials?.kind !== 'password') return answer
    // Not every server takes user and password with each request.
    const token = await this.#logIn(this.#credentials)
    if (token === null) return answer
    this.#credentials = { kind: 'token', token }
    return await this.#ask(call)
  }

  /** @returns an access token, or null of a server that gives none. @throws {EdgeError} EDGE_CREDENTIALS_INVALID. */
  async #logIn({ username, password }: { username: string; password: string }): Promise<string | null> {
    const { status, body } = await this.#ask(
      { method: 'POST', path: '/users/login', body: { username, password } },
      false,
    )
    if (status === 400 || status === 401)
      throw new EdgeError('EDGE_CREDENTIALS_INVALID', `${this.url} refuses user or password`)
    const { access_token: given } = (body ?? {}) as { access_token?: { token?: unknown } }
    return typeof given?.token === 'string' ? given.token : null
  }

  async #ask({ method, path, body }: HttpCall, isAuthorized = true): Promise<HttpAnswer> {
    const { status, text } = await this.#fetch(path, {
      method,
      headers: {
        ...(isAuthorized ? this.#authorization() : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: stringifyExact(body) }),
    })
    try {
      return { status, body: text === '' ? null : parseJson(text) }
    } catch (cause) {
      throw new EdgeError('EDGE_UPSTREAM_REFUSED', `${this.url}${path} answers ${status} and no JSON`, { cause })
    }
  }

  /** As `call`, for what must succeed. @throws {EdgeError} also for each status that is no success. */
  async succeed(call: HttpCall): Promise<unknown> {
    const { status, body } = await this.call(call)
    if (status >= 200 && status < 300) return body
    throw refusal(`${this.url}${call.path}`, status, body)
  }

  #authorization(): Record<string, string> {
    const credentials = this.#credentials
    if (credentials === null) return {}
    if (credentials.kind === 'token') return { authorization: `Bearer ${credentials.token}` }
    const pair = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')
    return { authorization: `Basic ${pair}` }
  }

  /** With its body, which may break off as well. */
  async #fetch(path: string, init: RequestInit): Promise<{ status: number; text: string }> {
    const limit = AbortSignal.timeout(TIMEOUT_MS)
    const signal = this.#signal === undefined ? limit : AbortSignal.any([this.#signal, limit])
    try {
      const response = await fetch(this.url + path, { ...init, signal })
      return { status: response.status, text: await response.text() }
    } catch (cause) {
      if (this.#signal !== undefined) refuseAborted(this.#signal)
      const { cause: inner } = cause instanceof Error ? cause : { cause }
      const reason = inner instanceof Error ? inner.message || inner.name : String(cause)
      throw new EdgeError('EDGE_UPSTREAM_UNREACHABLE', `${this.url} cannot be reached over HTTP: ${reason}`, { cause })
    }
  }
}

function refusal(what: string, status: number, body: unknown): EdgeError {
  const reason = typeof body === 'object' && body !== null && 'reason' in body ? String(body.reason) : ''
  const text = `${what} answers ${status}${reason === '' ? '' : `: ${reason}`}`
  if (status === 401) return new EdgeError('EDGE_UNAUTHENTICATED', text)
  if (status === 403) return new EdgeError('EDGE_FORBIDDEN', text)
  if (status === 404 && reason === '')
    return new EdgeError('EDGE_FEATURE_UNAVAILABLE', `${text}; is it an iggy-edge of this version?`)
  return new EdgeError('EDGE_UPSTREAM_REFUSED', text)
}
