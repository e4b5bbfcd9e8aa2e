/** Devices whose sequence numbers are remembered: our own routes. The user needs `manage_users`. */
import { json, NO_CONTENT, type Route, type RouteContext } from '../http-types.ts'
import { exact } from '../json.ts'
import { pathText } from '../path-values.ts'

const PATH = '/edge/devices'

export function deviceRoutes({ broker }: Pick<RouteContext, 'broker'>): readonly Route[] {
  return [
    {
      method: 'GET',
      path: PATH,
      access: 'token',
      handle: ({ caller }) =>
        json(
          broker
            .devices(caller)
            .map(({ name, lastSeenUs }) => ({ name, last_seen_at: lastSeenUs === null ? null : exact(lastSeenUs) })),
        ),
    },
    {
      method: 'DELETE',
      path: `${PATH}/{name}`,
      access: 'token',
      async handle(request) {
        await broker.forgetDevice(request.caller, pathText(request, 'name'))
        return NO_CONTENT
      },
    },
  ]
}
