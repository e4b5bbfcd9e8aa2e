/** Commands on users and personal access tokens. Logins are handled where sessions are. */
import { EdgeError } from '../../../errors.ts'
import { CODE } from '../../../sdk/wire/codes.ts'
import type { Handlers } from './handler.ts'
import { userDetailsOf } from './records.ts'
import { refuseOptions } from './streams.ts'

const ACTIVE = 1
const INACTIVE = 2
const NEVER = 0xffff_ffff_ffff_ffffn

export const USER_HANDLERS = {
  [CODE.getUser]({ broker, caller }, { user }) {
    const found = broker.user(caller, user)
    return found === undefined ? null : userDetailsOf(found)
  },
  [CODE.getUsers]: ({ broker, caller }) => ({ users: broker.users(caller).map(userDetailsOf) }),
  async [CODE.createUser]({ broker, caller }, request) {
    refuseOptions(request.options)
    const { username, password, permissions } = request
    const isActive = isActiveStatus(request.status)
    return userDetailsOf(await broker.createUser(caller, { username, password, isActive, permissions }))
  },
  async [CODE.updateUser]({ broker, caller }, request) {
    refuseOptions(request.options)
    const name = request.username === null ? {} : { username: request.username }
    const status = request.status === null ? {} : { isActive: isActiveStatus(request.status) }
    await broker.updateUser(caller, request.user, { ...name, ...status })
    return null
  },
  async [CODE.deleteUser]({ broker, caller }, { user }) {
    await broker.deleteUser(caller, user)
    return null
  },
  async [CODE.updatePermissions]({ broker, caller }, { user, permissions }) {
    await broker.setPermissions(caller, user, permissions)
    return null
  },
  async [CODE.changePassword]({ broker, caller }, { user, currentPassword, newPassword }) {
    await broker.changePassword(caller, user, currentPassword, newPassword)
    return null
  },
  [CODE.getPersonalAccessTokens]({ broker, caller }) {
    const tokens = broker.tokens(caller)
    return { tokens: tokens.map(({ name, expiresAtUs }) => ({ name, expiryAtUs: expiresAtUs ?? 0n })) }
  },
  async [CODE.createPersonalAccessToken]({ broker, caller }, { name, expiryUs }) {
    const expiry = expiryUs === 0n || expiryUs === NEVER ? null : expiryUs
    return { token: await broker.createToken(caller, name, expiry) }
  },
  async [CODE.deletePersonalAccessToken]({ broker, caller }, { name }) {
    await broker.deleteToken(caller, name)
    return null
  },
} satisfies Partial<Handlers>

function isActiveStatus(status: number): boolean {
  if (status === ACTIVE || status === INACTIVE) return status === ACTIVE
  throw new EdgeError('EDGE_USER_STATUS_INVALID', `user status: expected 1 or 2, found ${status}`)
}
