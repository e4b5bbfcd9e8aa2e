/**
 * One request from its route to its reply: who asks, what may be read without a token, what an error looks like. Knows
 * `node:http`'s request and response, no sockets.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { type EdgeError, toEdgeError } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import type { Caller } from '../broker/api.ts'
import type { Authentication } from './authentication.ts'
import type { BodyReader } from './body.ts'
import { type CorsRules, corsHeaders, preflightHeaders } from './cors.ts'
import type { HttpRequest, Reply, Route } from './http-types.ts'
import { Query } from './query.ts'
import { errorReply } from './reply.ts'
import type { Router } from './router.ts'

/** Acts for callers on this machine that read without a token: the root user, whose id is 0. */
const LOOPBACK_READER = 0

export interface HandlerOptions {
  readonly router: Router<Route>
  readonly authentication: Authentication
  readonly bodies: BodyReader
  readonly cors: CorsRules
  readonly areReadsOpenOnLoopback: boolean
  readonly logger: Logger
  /** Told of every request once it is answered. */
  readonly onAnswered: (status: number) => void
  /** So many bytes of answers more, or fewer, wait for their peers. */
  readonly onLeft: (changeBytes: number) => void
}

export class RequestHandler {
  private readonly options: HandlerOptions
  /** When the last request of a connection is answered, and the answer taken. */
  private readonly turns = new WeakMap<Socket, Promise<void>>()

  constructor(options: HandlerOptions) {
    this.options = options
  }

  /**
   * Never rejects: what goes wrong becomes a reply. Requests that were sent without waiting for answers are carried out one after
   * another, each when the answer before it was taken: hundreds fit into one packet, and each may ask for megabytes.
   */
  async handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const before = this.turns.get(incoming.socket)
    this.turns.set(incoming.socket, closeOf(response))
    await before
    if (response.destroyed) return
    const isHead = incoming.method === 'HEAD'
    let reply: Reply
    try {
      reply = await this.replyTo(incoming)
    } catch (error) {
      reply = this.failed(toEdgeError(error), incoming)
    }
    this.send(incoming, response, reply, isHead)
    this.options.onAnswered(reply.status)
  }

  private async replyTo(incoming: IncomingMessage): Promise<Reply> {
    const [path = '/', query = ''] = splitOnce(incoming.url ?? '/', '?')
    const { router, cors } = this.options
    if (incoming.method === 'OPTIONS' && cors.enabled)
      return { status: 200, headers: preflightHeaders(cors, incoming.headers, router.allow(path)) }
    const match = router.match(incoming.method ?? 'GET', path)
    if (match.type === 'not-found') return { status: 404 }
    if (match.type === 'method-not-allowed') return { status: 405, headers: { allow: match.allow } }
    const { route, params } = match
    const { caller, isKnown } = await this.admit(route, incoming)
    const request: HttpRequest = {
      method: incoming.method ?? 'GET',
      params,
      query: new Query(query),
      headers: incoming.headers,
      caller,
      isKnown,
      body: (shape) => this.options.bodies.readJson(incoming, shape, isKnown),
    }
    return await route.handle(request)
  }

  /** @throws {EdgeError} EDGE_TOKEN_MISSING, EDGE_UNAUTHENTICATED where the route asks for more than was shown. */
  private async admit(route: Route, incoming: IncomingMessage): Promise<{ caller: Caller; isKnown: boolean }> {
    if (route.access === 'public') return { caller: callerOf(null), isKnown: false }
    const { authorization } = incoming.headers
    if (authorization === undefined && route.access !== 'token') {
      const isOpen = this.options.areReadsOpenOnLoopback && isFromThisMachine(incoming)
      if (isOpen) return { caller: callerOf(LOOPBACK_READER), isKnown: true }
      if (route.access === 'details') return { caller: callerOf(null), isKnown: false }
    }
    const { authentication } = this.options
    const userId = await authentication.userOf(authorization)
    return { caller: callerOf(userId, authentication.madeAtUs(userId)), isKnown: true }
  }

  private failed(error: EdgeError, incoming: IncomingMessage): Reply {
    if (error.code === 'EDGE_INTERNAL') {
      const fields = { method: incoming.method, error_code: error.code, reason: error.message }
      this.options.logger.error('http.request.failed', fields)
    }
    return errorReply(error)
  }

  private send(incoming: IncomingMessage, response: ServerResponse, reply: Reply, isHead: boolean): void {
    if (response.destroyed || response.headersSent) return
    const cors = incoming.method === 'OPTIONS' ? {} : corsHeaders(this.options.cors, incoming.headers)
    const headers: Record<string, string | number> = { ...cors, ...reply.headers }
    const body = reply.body ?? ''
    if (reply.status !== 204 && reply.status !== 304) headers['content-length'] = Buffer.byteLength(body)
    // An unread body would be taken for the next request: whoever sent too much is cut off after the answer.
    if (!incoming.complete && hasBody(incoming)) headers.connection = 'close'
    response.writeHead(reply.status, headers)
    if (isHead) response.end()
    else response.end(body)
    const leftBytes = response.writableLength
    if (leftBytes === 0) return
    this.options.onLeft(leftBytes)
    response.once('close', () => this.options.onLeft(-leftBytes))
  }
}

/** A body takes its time to come: the user may be deleted meanwhile, and another one have its number. */
const callerOf = (userId: number | null, userSinceUs?: bigint): Caller => ({
  dialect: 'http',
  userId,
  userSinceUs,
  client: null,
})

/**
 * Not every connection over loopback comes from here: a proxy speaks for others and says so, and a web page of another
 * origin speaks through the browser of whoever looks at it. Such a page needs no `Origin` once the name it came from
 * resolves to this machine (DNS rebinding), but then it asks for that name.
 */
function isFromThisMachine({ socket, headers }: IncomingMessage): boolean {
  const isForAnother = 'forwarded' in headers || 'x-forwarded-for' in headers || 'origin' in headers
  return !isForAnother && isLoopback(socket.remoteAddress) && isOwnName(headers.host ?? '')
}

/** An address, or a name without a dot, such as `localhost` or the host's: nobody else can make these resolve to here. */
function isOwnName(host: string): boolean {
  const name = host.replace(/:\d+$/, '')
  return !name.includes('.') || isIP(name) === 4
}

export function isLoopback(address: string | undefined): boolean {
  if (address === undefined) return false
  return address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.')
}

function closeOf(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => response.once('close', resolve))
}

function hasBody(incoming: IncomingMessage): boolean {
  return incoming.headers['transfer-encoding'] !== undefined || Number(incoming.headers['content-length'] ?? 0) > 0
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}
