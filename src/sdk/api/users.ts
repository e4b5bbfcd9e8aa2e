/** Users and what they may do. */
import { CODE } from '../wire/codes.ts'
import { USER_ACTIVE, USER_INACTIVE } from '../wire/commands/users.ts'
import { NO_OPTIONS } from '../wire/options.ts'
import type { Permissions } from '../wire/permissions.ts'
import type { Identifier } from '../wire/primitives.ts'
import type { UserDetails, UserRecord } from '../wire/records.ts'
import type { Requester } from './requester.ts'

export interface NewUser {
  readonly username: string
  readonly password: string
  /** Default true. */
  readonly isActive?: boolean
  readonly permissions?: Permissions | null
}

export class UsersApi {
  readonly #requester: Requester

  constructor(requester: Requester) {
    this.#requester = requester
  }

  async list(): Promise<readonly UserRecord[]> {
    return (await this.#requester.request(CODE.getUsers, null)).users
  }

  async get(user: Identifier): Promise<UserDetails | null> {
    return await this.#requester.request(CODE.getUser, { user })
  }

  /** @throws {EdgeError} EDGE_USER_NAME_TAKEN, EDGE_USERNAME_INVALID, EDGE_PASSWORD_INVALID. */
  async create(user: NewUser): Promise<UserDetails> {
    const { username, password, isActive = true, permissions = null } = user
    const status = isActive ? USER_ACTIVE : USER_INACTIVE
    return await this.#requester.request(CODE.createUser, {
      username,
      password,
      status,
      permissions,
      options: NO_OPTIONS,
    })
  }

  async delete(user: Identifier): Promise<void> {
    await this.#requester.request(CODE.deleteUser, { user })
  }

  async update(user: Identifier, change: { readonly username?: string; readonly isActive?: boolean }): Promise<void> {
    const status = change.isActive === undefined ? null : change.isActive ? USER_ACTIVE : USER_INACTIVE
    const username = change.username ?? null
    await this.#requester.request(CODE.updateUser, { user, username, status, options: NO_OPTIONS })
  }

  async setPermissions(user: Identifier, permissions: Permissions | null): Promise<void> {
    await this.#requester.request(CODE.updatePermissions, { user, permissions })
  }

  async changePassword(user: Identifier, currentPassword: string, newPassword: string): Promise<void> {
    await this.#requester.request(CODE.changePassword, { user, currentPassword, newPassword })
  }
}
