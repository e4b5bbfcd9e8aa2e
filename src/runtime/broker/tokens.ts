/** Personal access tokens and device tokens: made once, kept as hashes, refused from the moment they expire. */
import { createHash, randomBytes } from 'node:crypto'
import { EdgeError } from '../../errors.ts'
import type { TokenRow } from '../../log/index.ts'
import type { Broker, Caller } from './api.ts'
import type { BrokerContext } from './context.ts'

/** 68 characters of base64, as Iggy's. */
const TOKEN_BYTES = 50
const NAME_BYTES = { min: 3, max: 30 }
/** One token may serve a whole fleet; a token each for more devices than a gateway can hold is no use. */
const MAX_DEVICE_TOKENS = 4096

type Tokens = Pick<
  Broker,
  | 'authenticateToken'
  | 'authenticateDevice'
  | 'tokens'
  | 'createToken'
  | 'deleteToken'
  | 'createDeviceToken'
  | 'deviceTokens'
  | 'deleteDeviceToken'
>

export function createTokens(context: BrokerContext): Tokens {
  const { rights, clock, serial, settings } = context
  const { metadata } = context.log
  return {
    authenticateToken(token) {
      const row = rowOf(token)
      if (row.deviceJson !== null) throw unknownToken()
      return row.userId
    },

    authenticateDevice(token) {
      const row = rowOf(token)
      if (row.deviceJson === null) throw unknownToken()
      return row
    },

    tokens(caller) {
      const { id } = rights.userOf(caller)
      return metadata.tokensOf(id).filter((row) => row.deviceJson === null)
    },

    async createToken(caller, name, expiryUs) {
      return create(caller, { name, deviceJson: null }, expiryUs, (userId) => {
        const rows = metadata.tokensOf(userId)
        const count = rows.filter((row) => row.deviceJson === null).length
        const limit = settings.personalAccessToken.max_tokens_per_user
        if (rows.some((row) => row.name === name)) throw nameTaken(name)
        if (count >= limit) throw new EdgeError('EDGE_TOO_MANY_TOKENS', `tokens of a user: at most ${limit}`)
      })
    },

    async createDeviceToken(caller, name, expiryUs, deviceJson) {
      rights.allow(caller, 'manage-users')
      return create(caller, { name, deviceJson }, expiryUs, (userId) => {
        const rows = allDeviceTokens()
        if ([...rows, ...metadata.tokensOf(userId)].some((row) => row.name === name)) throw nameTaken(name)
        if (rows.length >= MAX_DEVICE_TOKENS)
          throw new EdgeError('EDGE_TOO_MANY_TOKENS', `device tokens: at most ${MAX_DEVICE_TOKENS}`)
      })
    },

    deviceTokens(caller) {
      rights.allow(caller, 'manage-users')
      return allDeviceTokens()
    },

    async deleteDeviceToken(caller, name) {
      rights.allow(caller, 'manage-users')
      return serial.run(async () => {
        const row = allDeviceTokens().find((each) => each.name === name)
        if (row === undefined) throw new EdgeError('EDGE_TOKEN_NOT_FOUND', `device token "${name}" is not there`)
        await metadata.deleteToken(row.userId, row.name)
      })
    },

    async deleteToken(caller, name) {
      return serial.run(async () => {
        const { id } = rights.userOf(caller)
        if (!metadata.tokensOf(id).some((row) => row.name === name && row.deviceJson === null)) {
          throw new EdgeError('EDGE_TOKEN_NOT_FOUND', `token "${name}" is not there`)
        }
        await metadata.deleteToken(id, name)
      })
    },
  }

  function rowOf(token: string): TokenRow {
    const row = metadata.tokenByHash(hashToken(token))
    if (row === undefined) throw unknownToken()
    if (isExpired(row, clock.wallUs())) throw new EdgeError('EDGE_TOKEN_EXPIRED', `token "${row.name}" has expired`)
    const user = metadata.users.get(row.userId)
    if (user === undefined) throw unknownToken()
    if (!user.isActive) throw new EdgeError('EDGE_USER_INACTIVE', `user "${user.username}" is inactive`)
    return row
  }

  function allDeviceTokens(): TokenRow[] {
    return [...metadata.users.keys()].flatMap((id) => metadata.tokensOf(id).filter((row) => row.deviceJson !== null))
  }

  /** @param check throws when there is no place for it; called when nothing else changes tokens or users. */
  async function create(
    caller: Caller,
    token: Pick<TokenRow, 'name' | 'deviceJson'>,
    expiryUs: bigint | null,
    check: (userId: number) => void,
  ): Promise<string> {
    rights.userOf(caller)
    checkName(token.name)
    return serial.run(async () => {
      // Not before: the user may be deleted while this waits, and another one have its number.
      const { id: userId } = rights.userOf(caller)
      check(userId)
      const text = randomBytes(TOKEN_BYTES).toString('base64')
      const expiresAtUs = expiryUs === null ? null : clock.wallUs() + expiryUs
      await metadata.putToken({ ...token, userId, hash: hashToken(text), expiresAtUs })
      return text
    })
  }
}

/**
 * Removes what has expired. A token that cannot be removed now is refused all the same, and removed another time. Before the
 * clock is set nothing goes: it may be years ahead, and a token is not found again.
 */
export async function removeExpiredTokens(context: BrokerContext): Promise<number> {
  if (!context.isClockTrusted()) return 0
  const { metadata } = context.log
  const nowUs = context.clock.wallUs()
  let removedCount = 0
  for (const userId of [...metadata.users.keys()]) {
    for (const row of metadata.tokensOf(userId).filter((each) => isExpired(each, nowUs))) {
      await context.serial.run(async () => {
        // Another one may have its name by now.
        if (metadata.tokenByHash(row.hash) === undefined) return
        await metadata.deleteToken(userId, row.name)
        removedCount++
      })
    }
  }
  return removedCount
}

/** The text is random, so one pass of a fast hash is enough; a slow one would let anybody keep the processor busy. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

function isExpired(row: TokenRow, nowUs: bigint): boolean {
  return row.expiresAtUs !== null && row.expiresAtUs <= nowUs
}

function checkName(name: string): void {
  const size = Buffer.byteLength(name)
  if (size >= NAME_BYTES.min && size <= NAME_BYTES.max) return
  const message = `token name: expected ${NAME_BYTES.min}..${NAME_BYTES.max} bytes, found ${size}`
  throw new EdgeError('EDGE_TOKEN_NAME_INVALID', message)
}

function nameTaken(name: string): EdgeError {
  return new EdgeError('EDGE_TOKEN_NAME_TAKEN', `token "${name}" exists`)
}

function unknownToken(): EdgeError {
  return new EdgeError('EDGE_TOKEN_INVALID', 'the token is not known')
}
