/**
 * Who asks: the `Authorization` header becomes a caller of the broker.
 *
 *   Bearer <JWT>                    an access token of ours, from a login, or one of an issuer that the configuration trusts
 *   Bearer <personal access token>  as Iggy's newest server takes it; a JWT has dots, a personal access token never
 *   Basic <base64 of user:password> our own extension, for the calls that guides show
 *
 * A logout revokes its token, over restarts (as Iggy 0.8 does); a refresh leaves the old token valid until it ends (as
 * the newest server does), so that a client that lost the answer can ask again.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { EdgeError } from '../../errors.ts'
import type { Logger } from '../../logger.ts'
import type { Broker } from '../broker/api.ts'
import {
  type AccessClaims,
  signAccessToken,
  type TokenHolder,
  type TokenRules,
  verifyAccessToken,
} from './access-token.ts'
import { Revocations } from './revocations.ts'
import type { HttpSettings } from './settings.ts'
import { TrustedIssuers } from './trusted-issuers.ts'

/** Small texts that survive a restart, and the users there are; the log's metadata store is one. */
export interface AccountStore {
  readonly users: ReadonlyMap<number, TokenHolder & { readonly isActive: boolean }>
  setting(name: string): string | undefined
  setSetting(name: string, value: string): Promise<void>
}

export interface AccessToken {
  readonly userId: number
  readonly token: string
  /** Seconds since the Unix epoch. */
  readonly expiresAt: number
}

const SECRET_NAME = 'http.jwt_secret'
const REVOKED_NAME = 'http.revoked_tokens'
const SECRET_BYTES = 48

type Checks = Pick<Broker, 'authenticate' | 'authenticateToken'>

export interface AuthenticationParts {
  readonly broker: Checks
  readonly store: AccountStore
  readonly clock: Clock
  readonly settings: HttpSettings
  readonly logger: Logger
}

export class Authentication {
  private readonly broker: Checks
  private readonly store: AccountStore
  private readonly clock: Clock
  private readonly settings: HttpSettings
  private readonly secret: string
  private readonly rules: TokenRules
  private readonly revocations: Revocations
  private readonly issuers: TrustedIssuers

  private constructor(parts: AuthenticationParts, secret: string) {
    const { broker, store, clock, settings, logger } = parts
    this.broker = broker
    this.store = store
    this.clock = clock
    this.settings = settings
    this.secret = secret
    const { issuer, audience, clock_skew } = settings['http.jwt']
    this.rules = { issuer, audience, clockSkew: clock_skew / 1000 }
    this.issuers = new TrustedIssuers(settings['http.jwt.trusted_issuers'], {
      clock,
      clockSkew: this.rules.clockSkew,
      logger,
    })
    this.revocations = Revocations.parse(store.setting(REVOKED_NAME), this.nowSeconds())
  }

  /** Takes the signing secret from the settings or the store; makes and keeps one when there is none. */
  static async open(parts: AuthenticationParts): Promise<Authentication> {
    const { settings, store } = parts
    let secret = settings['http.jwt'].secret === '' ? store.setting(SECRET_NAME) : settings['http.jwt'].secret
    if (secret === undefined) {
      secret = randomBytes(SECRET_BYTES).toString('base64url')
      await store.setSetting(SECRET_NAME, secret)
    }
    return new Authentication(parts, secret)
  }

  /**
   * @param header value of `Authorization`.
   * @returns the user id.
   * @throws {EdgeError} EDGE_TOKEN_MISSING without usable credentials, EDGE_UNAUTHENTICATED with wrong ones.
   */
  async userOf(header: string | undefined): Promise<number> {
    if (header?.startsWith('Bearer ') && header.length > 'Bearer '.length)
      return await this.userOfToken(header.slice(7))
    if (header?.startsWith('Basic ') && this.settings.http.basic_authentication) return await this.userOfBasic(header)
    throw new EdgeError('EDGE_TOKEN_MISSING', 'Access token is missing')
  }

  /** When the user of that number was made, µs; undefined when there is none. */
  madeAtUs(userId: number): bigint | undefined {
    return this.store.users.get(userId)?.createdAtUs
  }

  /** @throws {EdgeError} EDGE_UNAUTHENTICATED when the user is gone. */
  issue(userId: number): AccessToken {
    const holder = this.store.users.get(userId)
    if (holder === undefined) throw unauthenticated()
    const issuedAt = Math.floor(this.nowSeconds())
    const expiresAt = issuedAt + Math.ceil(this.settings['http.jwt'].access_token_expiry / 1000)
    const claims = { tokenId: randomUUID(), userId, holder, issuedAt, expiresAt }
    return { userId, token: signAccessToken(claims, this.rules, this.secret), expiresAt }
  }

  /** @throws {EdgeError} EDGE_UNAUTHENTICATED when `token` is no valid access token (any more). */
  refresh(token: string): AccessToken {
    const claims = this.claimsOf(token)
    if (claims === undefined) throw unauthenticated()
    return this.issue(claims.userId)
  }

  /** Ends the access token of a request for good; other credentials have nothing to end. */
  async revoke(header: string | undefined): Promise<void> {
    const claims = header?.startsWith('Bearer ') ? this.claimsOf(header.slice(7)) : undefined
    if (claims === undefined) return
    const nowSeconds = this.nowSeconds()
    this.revocations.add(claims.tokenId, claims.expiresAt + this.rules.clockSkew, nowSeconds)
    await this.store.setSetting(REVOKED_NAME, this.revocations.serialize())
  }

  private async userOfToken(token: string): Promise<number> {
    const claims = this.claimsOf(token)
    if (claims !== undefined) return claims.userId
    if (token.includes('.')) {
      const userId = await this.issuers.userOf(token)
      if (userId === undefined || this.store.users.get(userId)?.isActive !== true) throw unauthenticated()
      return userId
    }
    try {
      return this.broker.authenticateToken(token)
    } catch (cause) {
      // Which of unknown, expired and inactive it was is nobody's business.
      throw unauthenticated(cause)
    }
  }

  private claimsOf(token: string): AccessClaims | undefined {
    const verdict = verifyAccessToken(token, this.rules, this.secret, this.nowSeconds())
    if (verdict.type !== 'valid' || this.revocations.has(verdict.claims.tokenId)) return undefined
    return this.isStillHeld(verdict.claims) ? verdict.claims : undefined
  }

  /** A user may have another name by now, and one of that name on another server was made at another time: not both. */
  private isStillHeld({ userId, holder }: AccessClaims): boolean {
    const user = this.store.users.get(userId)
    if (user === undefined || !user.isActive) return false
    if (holder === null) return true
    return user.username === holder.username || user.createdAtUs === holder.createdAtUs
  }

  private async userOfBasic(header: string): Promise<number> {
    const [username, password] = splitCredentials(header.slice('Basic '.length))
    try {
      return await this.broker.authenticate(username, password)
    } catch (cause) {
      throw unauthenticated(cause)
    }
  }

  private nowSeconds(): number {
    return Number(this.clock.wallUs() / 1000n) / 1000
  }
}

function splitCredentials(encoded: string): [username: string, password: string] {
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const colon = text.indexOf(':')
  if (colon < 0) throw unauthenticated()
  return [text.slice(0, colon), text.slice(colon + 1)]
}

function unauthenticated(cause?: unknown): EdgeError {
  return new EdgeError('EDGE_UNAUTHENTICATED', 'Unauthenticated', { cause })
}
