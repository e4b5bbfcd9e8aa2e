/** Users: who may log in, and their passwords. */
import { EdgeError } from '../../errors.ts'
import type { UserRow } from '../../log/index.ts'
import type { Identifier } from '../../sdk/wire/primitives.ts'
import type { Broker, Caller, UserView } from './api.ts'
import { type BrokerContext, quoted } from './context.ts'
import { ALL_PERMISSIONS } from './permissions.ts'
import { decodePermissions, encodePermissions } from './permissions-json.ts'
import { ROOT_USER_ID } from './rights-book.ts'

const USERNAME_BYTES = { min: 3, max: 50 }
const PASSWORD_BYTES = { min: 3, max: 100 }

type Users = Pick<
  Broker,
  'authenticate' | 'users' | 'user' | 'createUser' | 'updateUser' | 'deleteUser' | 'setPermissions' | 'changePassword'
>

export function createUsers(context: BrokerContext): Users {
  const { rights, hasher, clock, serial, logger } = context
  const { metadata } = context.log
  return {
    async authenticate(username, password) {
      checkUsername(username)
      checkPassword(password)
      const row = find(username)
      const isRight = await hasher.verify(password, row?.passwordHash)
      if (row === undefined || !isRight) {
        // Whoever tries passwords shows. Not the name that was sent: it may be a password, typed into the wrong field.
        logger.warn('broker.login.refused', { user_id: row?.id ?? null })
        throw wrongCredentials()
      }
      // The hash took its time: the user may be gone or inactive by now.
      const now = metadata.users.get(row.id)
      if (now === undefined || now.passwordHash !== row.passwordHash) throw wrongCredentials()
      if (!now.isActive) throw new EdgeError('EDGE_USER_INACTIVE', `user "${username}" is inactive`)
      return now.id
    },

    users(caller) {
      rights.allow(caller, 'read-users')
      return [...metadata.users.values()].sort((left, right) => left.id - right.id).map(viewOf)
    },

    user(caller, id) {
      const row = find(id)
      if (row === undefined || row.id !== rights.userOf(caller).id) rights.allow(caller, 'read-users')
      return row === undefined ? undefined : viewOf(row)
    },

    async createUser(caller, spec) {
      rights.allow(caller, 'manage-users')
      checkUsername(spec.username)
      checkPassword(spec.password)
      checkNameFree(spec.username)
      const passwordHash = await hasher.hash(spec.password)
      return serial.run(async () => {
        // The hash took its time: the caller may be gone or have lost the right by now.
        rights.allow(caller, 'manage-users')
        checkNameFree(spec.username)
        const limit = context.settings.broker.max_users
        if (metadata.users.size >= limit) throw new EdgeError('EDGE_TOO_MANY_USERS', `users: at most ${limit}`)
        const row: UserRow = {
          id: lowestFreeId(metadata.users),
          username: spec.username,
          passwordHash,
          isActive: spec.isActive,
          createdAtUs: clock.wallUs(),
          permissionsJson: encodePermissions(spec.permissions),
        }
        await metadata.putUser(row)
        return viewOf(row)
      })
    },

    async updateUser(caller, id, change) {
      rights.allow(caller, 'manage-users')
      if (change.username !== undefined) checkUsername(change.username)
      return serial.run(async () => {
        const row = get(id)
        if (change.username !== undefined && change.username !== row.username) checkNameFree(change.username)
        if (row.id === ROOT_USER_ID && change.isActive === false) throw rootProtected('deactivated')
        const username = change.username ?? row.username
        await metadata.putUser({ ...row, username, isActive: change.isActive ?? row.isActive })
        context.rightsChanged(row.id)
      })
    },

    async deleteUser(caller, id) {
      rights.allow(caller, 'manage-users')
      return serial.run(async () => {
        const row = get(id)
        if (row.id === ROOT_USER_ID) throw rootProtected('deleted')
        await metadata.deleteUser(row.id)
        rights.forget(row.id)
        context.endSessionsOf(row.id)
      })
    },

    async setPermissions(caller, id, permissions) {
      rights.allow(caller, 'manage-users')
      return serial.run(async () => {
        const row = get(id)
        if (row.id === ROOT_USER_ID) {
          throw new EdgeError('EDGE_ROOT_PERMISSIONS_PROTECTED', 'the rights of the root user cannot be changed')
        }
        await metadata.putUser({ ...row, permissionsJson: encodePermissions(permissions) })
        context.rightsChanged(row.id)
      })
    },

    async changePassword(caller, id, currentPassword, newPassword) {
      allowChangeOf(caller, id)
      const row = get(id)
      checkPassword(newPassword)
      const isRight = await hasher.verify(currentPassword, row.passwordHash)
      if (!isRight) throw wrongCredentials()
      const passwordHash = await hasher.hash(newPassword)
      await serial.run(async () => {
        // The hashes took their time: the caller may be gone, another password be set, another user have the number.
        allowChangeOf(caller, row.id)
        const now = metadata.users.get(row.id)
        if (now?.passwordHash !== row.passwordHash) throw wrongCredentials()
        await metadata.putUser({ ...now, passwordHash })
      })
    },
  }

  /** Of the password: everybody has a right to the own one. */
  function allowChangeOf(caller: Caller, id: Identifier): void {
    if (find(id)?.id !== rights.userOf(caller).id) rights.allow(caller, 'manage-users')
  }

  function find(id: Identifier): UserRow | undefined {
    if (typeof id === 'number') return metadata.users.get(id)
    for (const row of metadata.users.values()) if (row.username === id) return row
    return undefined
  }

  function get(id: Identifier): UserRow {
    const row = find(id)
    if (row === undefined) throw new EdgeError('EDGE_USER_NOT_FOUND', `user ${quoted(id)} is not there`)
    return row
  }

  function checkNameFree(username: string): void {
    if (find(username) !== undefined) throw new EdgeError('EDGE_USER_NAME_TAKEN', `user "${username}" exists`)
  }
}

export function checkUsername(username: string): void {
  checkLength(username, USERNAME_BYTES, 'EDGE_USERNAME_INVALID', 'user name')
}

export function checkPassword(password: string): void {
  checkLength(password, PASSWORD_BYTES, 'EDGE_PASSWORD_INVALID', 'password')
}

function checkLength(
  text: string,
  bounds: { min: number; max: number },
  code: 'EDGE_USERNAME_INVALID' | 'EDGE_PASSWORD_INVALID',
  subject: string,
): void {
  const size = Buffer.byteLength(text)
  if (size >= bounds.min && size <= bounds.max) return
  throw new EdgeError(code, `${subject}: expected ${bounds.min}..${bounds.max} bytes, found ${size}`)
}

function viewOf(row: UserRow): UserView {
  const permissions = row.id === ROOT_USER_ID ? ALL_PERMISSIONS : decodePermissions(row.permissionsJson)
  return { id: row.id, createdAtUs: row.createdAtUs, username: row.username, isActive: row.isActive, permissions }
}

function lowestFreeId(users: ReadonlyMap<number, UserRow>): number {
  let id = ROOT_USER_ID + 1
  while (users.has(id)) id++
  return id
}

/** One error for everything that may be wrong, so that nobody learns which names exist. */
function wrongCredentials(): EdgeError {
  return new EdgeError('EDGE_CREDENTIALS_INVALID', 'user name or password is wrong')
}

function rootProtected(what: string): EdgeError {
  return new EdgeError('EDGE_ROOT_PROTECTED', `the root user cannot be ${what}`)
}
