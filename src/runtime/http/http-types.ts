/** What passes between the listener and the routes: requests without sockets, replies as values. */
import type { Clock } from '../../clock.ts'
import type { Broker, Caller } from '../broker/api.ts'
import type { Authentication } from './authentication.ts'
import { type JsonValue, stringifyJson } from './json.ts'
import type { Query } from './query.ts'
import type { Shape } from './shape.ts'

export interface HttpRequest {
  readonly method: string
  /** Decoded variable segments of the path, by name. */
  readonly params: ReadonlyMap<string, string>
  readonly query: Query
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** No user on public routes. */
  readonly caller: Caller
  /** False for an anonymous caller on an open route. */
  readonly isKnown: boolean
  /** @throws {EdgeError} a rejection with 400, 413, 415 or 422. */
  body<T>(shape: Shape<T>): Promise<T>
}

export interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/**
 * - `public`: anybody.
 * - `token`: a known user.
 * - `open-read`: a known user, or anybody on this machine where the settings say so.
 * - `details`: anybody; a known user, or a caller on this machine, may see more.
 */
export type Access = 'public' | 'token' | 'open-read' | 'details'

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly access: Access
  handle(request: HttpRequest): Reply | Promise<Reply>
}

/** What the routes of Iggy's API work with. */
export interface RouteContext {
  readonly broker: Broker
  readonly authentication: Authentication
  readonly clock: Clock
}

export const NO_CONTENT: Reply = { status: 204 }

export function json(value: JsonValue, status = 200): Reply {
  return { status, headers: { 'content-type': 'application/json' }, body: stringifyJson(value) }
}

export function plain(text: string, status = 200): Reply {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: text }
}

/** A GET of one thing that is not there. */
export function notFound(): Reply {
  return json({ id: 404, code: 'not_found', reason: 'Resource not found', field: null }, 404)
}
