import { EdgeError, type ErrorCode } from '../../../errors.ts'
import type { AccessToken } from '../authentication.ts'
import { type HttpRequest, json, NO_CONTENT, notFound, type Route, type RouteContext } from '../http-types.ts'
import type { JsonObject } from '../json.ts'
import { pathIdentifier, pathText } from '../path-values.ts'
import { permissions } from '../permission-shapes.ts'
import { entries, object, oneOf, optional, text } from '../shape.ts'
import { refuseOptions } from '../topic-options.ts'
import { viewUser, viewUserDetails } from '../views.ts'
import { readConsistency } from './consistency.ts'

const LOGIN_FAILURES: ReadonlySet<ErrorCode> = new Set([
  'EDGE_CREDENTIALS_INVALID',
  'EDGE_USERNAME_INVALID',
  'EDGE_PASSWORD_INVALID',
  'EDGE_USER_INACTIVE',
])
const status = oneOf('active', 'inactive')
const loginBody = object({ username: text, password: text, version: optional(text), context: optional(text) })
const tokenBody = object({ token: text })
const createBody = object({ username: text, password: text, status, permissions: optional(permissions) })
const updateBody = object({ username: optional(text), status: optional(status), options: optional(entries(text)) })
const passwordBody = object({ current_password: text, new_password: text })
/** An empty object clears the permissions like null does. */
const permissionsBody = object({ permissions: optional(permissions) })

export function viewAccessToken({ userId, token, expiresAt }: AccessToken): JsonObject {
  return { user_id: userId, access_token: { token, expiry: expiresAt } }
}

export function userRoutes({ broker, authentication }: RouteContext): readonly Route[] {
  const userOf = (request: HttpRequest) => pathIdentifier(request, 'user_id')

  const change = (method: 'PUT' | 'DELETE', path: string, act: (request: HttpRequest) => Promise<void>): Route => ({
    method,
    path,
    access: 'token',
    async handle(request) {
      await act(request)
      return NO_CONTENT
    },
  })

  /** One answer for all that can be wrong, so that nothing is learnt of names and states by trying. */
  async function userOfPassword(username: string, password: string): Promise<number> {
    try {
      return await broker.authenticate(username, password)
    } catch (cause) {
      if (!(cause instanceof EdgeError) || !LOGIN_FAILURES.has(cause.code)) throw cause
      throw new EdgeError('EDGE_CREDENTIALS_INVALID', 'Invalid credentials', { cause })
    }
  }

  return [
    {
      method: 'POST',
      path: '/users/login',
      access: 'public',
      async handle(request) {
        const { username, password } = await request.body(loginBody)
        return json(viewAccessToken(authentication.issue(await userOfPassword(username, password))))
      },
    },
    {
      method: 'POST',
      path: '/users/refresh-token',
      access: 'public',
      async handle(request) {
        const { token } = await request.body(tokenBody)
        return json(viewAccessToken(authentication.refresh(token)))
      },
    },
    {
      method: 'DELETE',
      path: '/users/logout',
      access: 'token',
      async handle(request) {
        const { authorization } = request.headers
        await authentication.revoke(typeof authorization === 'string' ? authorization : undefined)
        return NO_CONTENT
      },
    },
    {
      method: 'GET',
      path: '/users',
      access: 'token',
      handle(request) {
        readConsistency(request)
        return json(broker.users(request.caller).map(viewUser))
      },
    },
    {
      method: 'POST',
      path: '/users',
      access: 'token',
      async handle(request) {
        const body = await request.body(createBody)
        const { username, password } = body
        const isActive = body.status === 'active'
        const spec = { username, password, isActive, permissions: body.permissions ?? null }
        return json(viewUserDetails(await broker.createUser(request.caller, spec)))
      },
    },
    {
      method: 'GET',
      path: '/users/{user_id}',
      access: 'token',
      handle(request) {
        readConsistency(request)
        const isSelf = pathText(request, 'user_id') === 'me' && request.caller.userId !== null
        const user = broker.user(request.caller, isSelf ? (request.caller.userId ?? 0) : userOf(request))
        return user === undefined ? notFound() : json(viewUserDetails(user))
      },
    },
    change('PUT', '/users/{user_id}', async (request) => {
      const { username, status: given, options } = await request.body(updateBody)
      refuseOptions(options)
      await broker.updateUser(request.caller, userOf(request), {
        ...(username === undefined ? {} : { username }),
        ...(given === undefined ? {} : { isActive: given === 'active' }),
      })
    }),
    change('DELETE', '/users/{user_id}', (request) => broker.deleteUser(request.caller, userOf(request))),
    change('PUT', '/users/{user_id}/permissions', async (request) => {
      const body = await request.body(permissionsBody)
      await broker.setPermissions(request.caller, userOf(request), body.permissions ?? null)
    }),
    change('PUT', '/users/{user_id}/password', async (request) => {
      const { current_password: current, new_password: next } = await request.body(passwordBody)
      await broker.changePassword(request.caller, userOf(request), current, next)
    }),
  ]
}
