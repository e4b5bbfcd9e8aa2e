import { EdgeError } from '../../errors.ts'
import type { TokenRow, UserRow } from '../api.ts'
import { type Connection, toInteger } from './connection.ts'

/** Bounds of what lives in memory, and so of what may be configured. */
export const MAX_USERS = 10_000
const MAX_TOKENS = 100_000

interface SqlUser {
  id: bigint
  username: string
  password_hash: string
  is_active: bigint
  created_at_us: bigint
  permissions_json: string | null
}

interface SqlToken {
  hash: string
  user_id: bigint
  name: string
  expires_at_us: bigint | null
  device_json: string | null
}

/** Users and their tokens: all in memory, each change durable before memory shows it. */
export class Accounts {
  readonly users = new Map<number, UserRow>()
  readonly #tokensByHash = new Map<string, TokenRow>()
  readonly #tokensByUser = new Map<number, Map<string, TokenRow>>()
  readonly #connection: Connection
  readonly #putUser
  readonly #deleteUser
  readonly #putToken
  readonly #deleteToken
  readonly #deleteTokensOf

  constructor(connection: Connection) {
    this.#connection = connection
    this.#putUser = connection.statement(
      `INSERT INTO users (id, username, password_hash, is_active, created_at_us, permissions_json) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET username = excluded.username, password_hash = excluded.password_hash,
         is_active = excluded.is_active, permissions_json = excluded.permissions_json`,
    )
    this.#deleteUser = connection.statement('DELETE FROM users WHERE id = ?')
    this.#putToken = connection.statement(
      'INSERT OR REPLACE INTO tokens (hash, user_id, name, expires_at_us, device_json) VALUES (?, ?, ?, ?, ?)',
    )
    this.#deleteToken = connection.statement('DELETE FROM tokens WHERE user_id = ? AND name = ?')
    this.#deleteTokensOf = connection.statement('DELETE FROM tokens WHERE user_id = ?')
    this.#load()
  }

  /** @throws EDGE_USER_NAME_TAKEN, EDGE_TOO_MANY_USERS. */
  putUser(row: UserRow): void {
    for (const other of this.users.values()) {
      if (other.id === row.id || other.username !== row.username) continue
      throw new EdgeError('EDGE_USER_NAME_TAKEN', `user name ${JSON.stringify(row.username)} is taken`)
    }
    if (!this.users.has(row.id) && this.users.size >= MAX_USERS) {
      throw new EdgeError('EDGE_TOO_MANY_USERS', `no more than ${MAX_USERS} users are kept`)
    }
    const createdAtUs = this.users.get(row.id)?.createdAtUs ?? row.createdAtUs
    this.#connection.durably(() => {
      this.#putUser.run(
        row.id,
        row.username,
        row.passwordHash,
        row.isActive ? 1 : 0,
        toInteger(createdAtUs),
        row.permissionsJson,
      )
    })
    this.users.set(row.id, { ...row, createdAtUs })
  }

  /** With all tokens of the user. @throws EDGE_USER_NOT_FOUND. */
  deleteUser(id: number): void {
    if (!this.users.has(id)) throw new EdgeError('EDGE_USER_NOT_FOUND', `user ${id} does not exist`)
    this.#connection.durably(() => {
      this.#deleteTokensOf.run(id)
      this.#deleteUser.run(id)
    })
    this.users.delete(id)
    for (const token of this.#tokensByUser.get(id)?.values() ?? []) this.#tokensByHash.delete(token.hash)
    this.#tokensByUser.delete(id)
  }

  tokensOf(userId: number): readonly TokenRow[] {
    return [...(this.#tokensByUser.get(userId)?.values() ?? [])]
  }

  tokenByHash(hash: string): TokenRow | undefined {
    return this.#tokensByHash.get(hash)
  }

  /** @throws EDGE_USER_NOT_FOUND, EDGE_TOKEN_NAME_TAKEN when the name stands for another token, EDGE_TOO_MANY_TOKENS. */
  putToken(row: TokenRow): void {
    if (!this.users.has(row.userId)) throw new EdgeError('EDGE_USER_NOT_FOUND', `user ${row.userId} does not exist`)
    const named = this.#tokensByUser.get(row.userId)?.get(row.name)
    if (named !== undefined && named.hash !== row.hash) {
      throw new EdgeError('EDGE_TOKEN_NAME_TAKEN', `user ${row.userId} has a token ${JSON.stringify(row.name)} already`)
    }
    const replaced = this.#tokensByHash.get(row.hash)
    if (replaced === undefined && this.#tokensByHash.size >= MAX_TOKENS) {
      throw new EdgeError('EDGE_TOO_MANY_TOKENS', `no more than ${MAX_TOKENS} tokens are kept`)
    }
    const expiresAtUs = row.expiresAtUs === null ? null : toInteger(row.expiresAtUs)
    this.#connection.durably(() => {
      this.#putToken.run(row.hash, row.userId, row.name, expiresAtUs, row.deviceJson)
    })
    if (replaced !== undefined) this.#tokensByUser.get(replaced.userId)?.delete(replaced.name)
    this.#remember({ ...row, expiresAtUs })
  }

  /** @throws EDGE_TOKEN_NOT_FOUND. */
  deleteToken(userId: number, name: string): void {
    const tokens = this.#tokensByUser.get(userId)
    const token = tokens?.get(name)
    if (tokens === undefined || token === undefined) {
      throw new EdgeError('EDGE_TOKEN_NOT_FOUND', `user ${userId} has no token ${JSON.stringify(name)}`)
    }
    this.#connection.durably(() => {
      this.#deleteToken.run(userId, name)
    })
    this.#tokensByHash.delete(token.hash)
    tokens.delete(name)
    if (tokens.size === 0) this.#tokensByUser.delete(userId)
  }

  #load(): void {
    for (const row of this.#connection.bigStatement<[], SqlUser>('SELECT * FROM users ORDER BY id').iterate()) {
      this.users.set(Number(row.id), {
        id: Number(row.id),
        username: row.username,
        passwordHash: row.password_hash,
        isActive: row.is_active !== 0n,
        createdAtUs: row.created_at_us,
        permissionsJson: row.permissions_json,
      })
    }
    for (const row of this.#connection.bigStatement<[], SqlToken>('SELECT * FROM tokens ORDER BY name').iterate()) {
      this.#remember({
        userId: Number(row.user_id),
        name: row.name,
        hash: row.hash,
        expiresAtUs: row.expires_at_us,
        deviceJson: row.device_json,
      })
    }
  }

  #remember(token: TokenRow): void {
    let tokens = this.#tokensByUser.get(token.userId)
    if (tokens === undefined) {
      tokens = new Map()
      this.#tokensByUser.set(token.userId, tokens)
    }
    tokens.set(token.name, token)
    this.#tokensByHash.set(token.hash, token)
  }
}
