/** Personal access tokens and device tokens: made once, kept as hashes, refused from the moment they expire. */
import { createHash, randomBytes } from 'node:crypto'
import { EdgeError } from '../../errors.ts'
import type { TokenRow } from '../../log/index.ts'
import type { Broker } from './api.ts'
import type { BrokerContext } from './context.ts'

/** 68 characters of base64, as Iggy's. */
const TOKEN_BYTES = 50
const NAME_BYTES = { min: 3, max: 30 }

type Tokens = Pick<
  Broker,
  'authenticateToken' | 'authenticateDevice' | 'tokens' | 'createToken' | 'createDeviceToken' | 'deleteToken'
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
      return create(rights.userOf(caller).id, name, expiryUs, null)
    },

    async createDeviceToken(caller, name, expiryUs, deviceJson) {
      return create(rights.userOf(caller).id, name, expiryUs, deviceJson)
    },

    async deleteToken(caller, name) {
      const { id } = rights.userOf(caller)
      return serial.run(async () => {
        if (!metadata.tokensOf(id).some((row) => row.name === name)) {
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

  async function create(
    userId: number,
    name: string,
    expiryUs: bigint | null,
    deviceJson: string | null,
  ): Promise<string> {
    checkName(name)
    return serial.run(async () => {
      const rows = metadata.tokensOf(userId)
      const limit = settings.personalAccessToken.max_tokens_per_user
      if (rows.some((row) => row.name === name)) throw new EdgeError('EDGE_TOKEN_NAME_TAKEN', `token "${name}" exists`)
      if (rows.length >= limit) throw new EdgeError('EDGE_TOO_MANY_TOKENS', `tokens of a user: at most ${limit}`)
      const token = randomBytes(TOKEN_BYTES).toString('base64')
      const expiresAtUs = expiryUs === null ? null : clock.wallUs() + expiryUs
      await metadata.putToken({ userId, name, hash: hashToken(token), expiresAtUs, deviceJson })
      return token
    })
  }
}

/** Removes what has expired. A token that cannot be removed now is refused all the same, and removed another time. */
export async function removeExpiredTokens(context: BrokerContext): Promise<number> {
  const { metadata } = context.log
  const nowUs = context.clock.wallUs()
  let removedCount = 0
  for (const userId of [...metadata.users.keys()]) {
    for (const row of metadata.tokensOf(userId).filter((each) => isExpired(each, nowUs))) {
      await context.serial.run(() => metadata.deleteToken(userId, row.name))
      removedCount++
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

function unknownToken(): EdgeError {
  return new EdgeError('EDGE_TOKEN_INVALID', 'the token is not known')
}
