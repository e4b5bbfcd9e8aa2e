/** Users, permissions, login and logout (protocol section 7.3). */
import {
  type Codec,
  listToEnd,
  name,
  nothing,
  onlyIn,
  optional,
  orEmpty,
  secret,
  sized,
  struct,
  text,
  u8,
  u32,
  u64,
} from '../codec.ts'
import { CODE } from '../codes.ts'
import { NO_OPTIONS, optionsToEnd } from '../options.ts'
import { permissions } from '../permissions.ts'
import { identifier } from '../primitives.ts'
import { userDetails, userRecord } from '../records.ts'
import { command } from './command.ts'

export const USER_ACTIVE = 1
export const USER_INACTIVE = 2

const options = onlyIn('vsr', optionsToEnd, NO_OPTIONS)
const optionalPermissions = optional(sized(permissions))

export const getUser = command(CODE.getUser, struct({ user: identifier }), orEmpty(userDetails))
export const getUsers = command(CODE.getUsers, nothing, struct({ users: listToEnd(userRecord) }))

/** Lengths of name and password and the status are checked by the broker: each has an error of its own. */
export const createUser = command(
  CODE.createUser,
  struct({ username: name, password: secret, status: u8, permissions: optionalPermissions, options }),
  userDetails,
)

export const deleteUser = command(CODE.deleteUser, struct({ user: identifier }), nothing)

/** null: stays as it is. */
export const updateUser = command(
  CODE.updateUser,
  struct({ user: identifier, username: optional(name), status: optional(u8), options }),
  nothing,
)

export const updatePermissions = command(
  CODE.updatePermissions,
  struct({ user: identifier, permissions: optionalPermissions }),
  nothing,
)

export const changePassword = command(
  CODE.changePassword,
  struct({ user: identifier, currentPassword: secret, newPassword: secret }),
  nothing,
)

/** Classic only. `version` and `context` are empty when the client does not tell. */
export const loginUser = command(
  CODE.loginUser,
  struct({ username: name, password: secret, version: text, context: text }),
  struct({ userId: u32 }),
)

export const logoutUser = command(CODE.logoutUser, nothing, nothing)

export type Credentials =
  | { readonly kind: 'password'; readonly username: string; readonly password: string }
  | { readonly kind: 'token'; readonly token: string }

export interface LoginRegisterRequest {
  /** Packed, see `packVersion`. */
  readonly protocolVersion: number
  readonly sdkName: string
  readonly sdkVersion: string
  readonly credentials: Credentials
  /** Empty in every SDK. */
  readonly context: string
}

const clientVersion = struct({ protocolVersion: u32, sdkName: name, sdkVersion: name })
const passwordLogin = struct({ username: name, password: filled('password'), context: text })
const tokenLogin = struct({ token: filled('token'), context: text })

/**
 * VSR only: the body of the operation `register`. Passwords and tokens are told apart by the body alone: a token body
 * whose context is shorter than 256 bytes never decodes as a password body (three bytes are left where four are needed).
 */
export const loginRegister = command(
  CODE.loginRegister,
  {
    read(reader, dialect): LoginRegisterRequest {
      const version = clientVersion.read(reader, dialect)
      const body = reader.restView()
      try {
        const { username, password, context } = passwordLogin.read(reader.over(body), dialect)
        return { ...version, credentials: { kind: 'password', username, password }, context }
      } catch {
        const { token, context } = tokenLogin.read(reader.over(body), dialect)
        return { ...version, credentials: { kind: 'token', token }, context }
      }
    },
    write(writer, value: LoginRegisterRequest, dialect) {
      clientVersion.write(writer, value, dialect)
      const { credentials, context } = value
      if (credentials.kind === 'password') passwordLogin.write(writer, { ...credentials, context }, dialect)
      else tokenLogin.write(writer, { ...credentials, context }, dialect)
    },
  },
  /** `session` is above zero; clients take zero for an error. */
  struct({ userId: u32, session: u64, protocolVersion: u32, serverVersion: name }),
)

/** A secret that may not be empty: an empty one tells that the body is of the other form. */
function filled(what: string): Codec<string> {
  return {
    read(reader) {
      const value = reader.shortText()
      if (value === '') throw reader.fail('EDGE_FORMAT_INVALID', `${what} of 1..255 bytes`, '0')
      return value
    },
    write: (writer, value) => writer.shortText(value),
  }
}
