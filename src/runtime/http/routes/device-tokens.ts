/** Tokens that let devices in: our own routes, as Iggy knows no devices. The user needs `manage_users`. */
import type { TokenRow } from '../../../log/index.ts'
import type { Broker } from '../../broker/api.ts'
import { formatDevicePolicy, parseDevicePolicy } from '../../device/device-policy.ts'
import { json, NO_CONTENT, type Route, type RouteContext } from '../http-types.ts'
import { exact, type JsonObject } from '../json.ts'
import { pathText } from '../path-values.ts'
import { boolean, list, object, optional, text, u64 } from '../shape.ts'
import { U64_MAX } from '../views.ts'

const PATH = '/edge/device-tokens'

/** `expiry` in µs from now; absent, 0 and 2^64 - 1: never. */
const createBody = object({
  name: text,
  device: text,
  publish: optional(list(text)),
  subscribe: optional(list(text)),
  any_key: optional(boolean),
  expiry: optional(u64('a microsecond expiry as a u64')),
})

export function deviceTokenRoutes({ broker }: Pick<RouteContext, 'broker'>): readonly Route[] {
  return [
    {
      method: 'GET',
      path: PATH,
      access: 'token',
      handle({ caller }) {
        const users = new Map<number, string>()
        return json(broker.deviceTokens(caller).map((row) => viewDeviceToken(row, nameOf(broker, caller, row, users))))
      },
    },
    {
      method: 'POST',
      path: PATH,
      access: 'token',
      async handle(request) {
        const { name, expiry = 0n, ...fields } = await request.body(createBody)
        const policy = parseDevicePolicy(fields)
        const expiryUs = expiry === 0n || expiry === U64_MAX ? null : expiry
        const token = await broker.createDeviceToken(request.caller, name, expiryUs, formatDevicePolicy(policy))
        return json({ token })
      },
    },
    {
      method: 'DELETE',
      path: `${PATH}/{name}`,
      access: 'token',
      async handle(request) {
        await broker.deleteDeviceToken(request.caller, pathText(request, 'name'))
        return NO_CONTENT
      },
    },
  ]
}

function nameOf(
  broker: Broker,
  caller: Parameters<Broker['user']>[0],
  { userId }: TokenRow,
  known: Map<number, string>,
): string {
  const name = known.get(userId) ?? broker.user(caller, userId)?.username ?? String(userId)
  known.set(userId, name)
  return name
}

/** Never the token: only its hash is kept. */
function viewDeviceToken(row: TokenRow, user: string): JsonObject {
  const { device, publish, subscribe, anyKey } = parseDevicePolicy(JSON.parse(row.deviceJson ?? '{}'))
  return {
    name: row.name,
    user,
    device,
    publish,
    subscribe,
    any_key: anyKey,
    expires_at: row.expiresAtUs === null ? null : exact(row.expiresAtUs),
  }
}
