import { EdgeError } from '../../../errors.ts'
import { json, NO_CONTENT, type Route, type RouteContext } from '../http-types.ts'
import { pathText } from '../path-values.ts'
import { object, text, u64 } from '../shape.ts'
import { U64_MAX, viewToken } from '../views.ts'
import { viewAccessToken } from './users.ts'

const createBody = object({ name: text, expiry: u64('a microsecond expiry as a u64') })
const loginBody = object({ token: text })

export function personalAccessTokenRoutes({ broker, authentication }: RouteContext): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/personal-access-tokens',
      access: 'token',
      handle: (request) => json(broker.tokens(request.caller).map(viewToken)),
    },
    {
      method: 'POST',
      path: '/personal-access-tokens',
      access: 'token',
      async handle(request) {
        const { name, expiry } = await request.body(createBody)
        const expiryUs = expiry === 0n || expiry === U64_MAX ? null : expiry
        return json({ token: await broker.createToken(request.caller, name, expiryUs) })
      },
    },
    {
      method: 'DELETE',
      path: '/personal-access-tokens/{name}',
      access: 'token',
      async handle(request) {
        await broker.deleteToken(request.caller, pathText(request, 'name'))
        return NO_CONTENT
      },
    },
    {
      method: 'POST',
      path: '/personal-access-tokens/login',
      access: 'public',
      async handle(request) {
        const { token } = await request.body(loginBody)
        return json(viewAccessToken(authentication.issue(userOfToken(token))))
      },
    },
  ]

  /** Unknown, expired or of an inactive user: one answer for all, so that nothing is learnt by trying. */
  function userOfToken(token: string): number {
    try {
      return broker.authenticateToken(token)
    } catch (cause) {
      throw new EdgeError('EDGE_TOKEN_INVALID', 'Invalid personal access token', { cause })
    }
  }
}
