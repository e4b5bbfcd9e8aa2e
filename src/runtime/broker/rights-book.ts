/** Compiled rights of the users who are at work, and the check that every operation starts with. */
import { EdgeError } from '../../errors.ts'
import type { MetadataStore, UserRow } from '../../log/index.ts'
import type { Caller } from './api.ts'
import {
  type Action,
  ALL_PERMISSIONS,
  compileRights,
  isAllowed,
  isAllowedSomewhere,
  type Rights,
} from './permissions.ts'
import { decodePermissions } from './permissions-json.ts'

export const ROOT_USER_ID = 0

interface Entry {
  /** The row the rights were compiled from: another one, another compilation. */
  readonly row: UserRow
  readonly rights: Rights
}

export class RightsBook {
  private readonly metadata: MetadataStore
  private readonly entries = new Map<number, Entry>()

  constructor(metadata: MetadataStore) {
    this.metadata = metadata
  }

  /**
   * Returns when the caller may do `action`.
   *
   * @throws {EdgeError} as `userOf`, and EDGE_FORBIDDEN.
   */
  allow(caller: Caller, action: Action, streamId?: number, topicId?: number): void {
    if (isAllowed(this.rightsOf(this.userOf(caller)), action, streamId, topicId)) return
    throw new EdgeError('EDGE_FORBIDDEN', `user ${caller.userId} may not ${action}`, { details: { action } })
  }

  /** Whether the user may do `action`; a user that is gone or inactive may nothing. */
  isAllowed(userId: number, action: Action, streamId: number, topicId: number): boolean {
    const row = this.metadata.users.get(userId)
    return row?.isActive === true && isAllowed(this.rightsOf(row), action, streamId, topicId)
  }

  /** Whether there may be a stream or a topic in which the user may do `action`. */
  isAllowedSomewhere(userId: number, action: Action): boolean {
    const row = this.metadata.users.get(userId)
    return row?.isActive === true && isAllowedSomewhere(this.rightsOf(row), action)
  }

  /**
   * The user the caller acts for. An inactive one keeps living connections, and may nothing on them.
   *
   * @throws {EdgeError} EDGE_UNAUTHENTICATED (nobody, or a user that is gone), EDGE_FORBIDDEN (inactive).
   */
  userOf({ userId, userSinceUs }: Caller): UserRow {
    const row = userId === null ? undefined : this.metadata.users.get(userId)
    if (row === undefined || (userSinceUs ?? row.createdAtUs) !== row.createdAtUs)
      throw new EdgeError('EDGE_UNAUTHENTICATED', 'log in first')
    if (!row.isActive) throw new EdgeError('EDGE_FORBIDDEN', `user "${row.username}" is inactive`)
    return row
  }

  private rightsOf(row: UserRow): Rights {
    const known = this.entries.get(row.id)
    if (known?.row === row) return known.rights
    const rights = compile(row)
    this.entries.set(row.id, { row, rights })
    return rights
  }

  forget(userId: number): void {
    this.entries.delete(userId)
  }
}

function compile({ id, permissionsJson }: UserRow): Rights {
  return compileRights(id === ROOT_USER_ID ? ALL_PERMISSIONS : decodePermissions(permissionsJson))
}
