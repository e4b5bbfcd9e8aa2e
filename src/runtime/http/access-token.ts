/**
 * Access tokens: JSON web tokens signed with HMAC-SHA-256 and nothing else. Our own, because one algorithm with one key is
 * sixty lines, and a token that names another algorithm is refused before anything of it is believed.
 *
 * Clients of Iggy decode the payload and read `sub`, the user id as decimal text.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { parseJson } from '../../exact-json.ts'

export interface AccessClaims {
  /** Names this token among all: what a logout revokes. */
  readonly tokenId: string
  readonly userId: number
  /** null in a token of another server that signs with the same secret. */
  readonly holder: TokenHolder | null
  /** Seconds since the Unix epoch, as JSON web tokens count. */
  readonly issuedAt: number
  readonly expiresAt: number
}

/** Who had the user id when the token was made: a deleted user's is given to the next one. */
export interface TokenHolder {
  readonly username: string
  readonly createdAtUs: bigint
}

export interface TokenRules {
  readonly issuer: string
  readonly audience: string
  /** Seconds by which clocks may differ. */
  readonly clockSkew: number
}

export type Verdict =
  | { readonly type: 'valid'; readonly claims: AccessClaims }
  | { readonly type: 'expired' }
  | { readonly type: 'invalid' }

/** A token of ours has about 330 characters; longer text is not looked at. */
export const MAX_TOKEN_LENGTH = 4096
const INVALID: Verdict = { type: 'invalid' }
const HEADER = encode({ typ: 'JWT', alg: 'HS256' })

export function signAccessToken(claims: AccessClaims, rules: TokenRules, secret: string): string {
  const payload = encode({
    jti: claims.tokenId,
    iss: rules.issuer,
    aud: rules.audience,
    sub: String(claims.userId),
    ...(claims.holder === null ? {} : { usr: claims.holder.username, usr_at: String(claims.holder.createdAtUs) }),
    iat: claims.issuedAt,
    exp: claims.expiresAt,
    nbf: claims.issuedAt,
  })
  const signed = `${HEADER}.${payload}`
  return `${signed}.${signatureOf(signed, secret).toString('base64url')}`
}

/** @param nowSeconds since the Unix epoch. */
export function verifyAccessToken(token: string, rules: TokenRules, secret: string, nowSeconds: number): Verdict {
  if (token.length > MAX_TOKEN_LENGTH) return INVALID
  const [header, payload, signature, ...more] = token.split('.')
  if (header === undefined || payload === undefined || signature === undefined || more.length > 0) return INVALID
  const given = Buffer.from(signature, 'base64url')
  const expected = signatureOf(`${header}.${payload}`, secret)
  // Text with characters outside the alphabet decodes to the same bytes: the text itself must be the canonical one.
  const isGenuine = given.length === expected.length && timingSafeEqual(given, expected)
  if (!isGenuine || given.toString('base64url') !== signature || decodeTokenPart(header)?.alg !== 'HS256')
    return INVALID
  return judge(decodeTokenPart(payload) ?? {}, rules, nowSeconds)
}

function judge(claims: Readonly<Record<string, unknown>>, rules: TokenRules, nowSeconds: number): Verdict {
  const { jti, iss, aud, sub, iat, exp, nbf } = claims
  const audiences = Array.isArray(aud) ? aud : [aud]
  const areForUs = iss === rules.issuer && audiences.includes(rules.audience)
  if (!areForUs || typeof jti !== 'string' || typeof sub !== 'string' || !/^\d{1,10}$/.test(sub)) return INVALID
  if (typeof exp !== 'number' || typeof iat !== 'number') return INVALID
  if (typeof nbf === 'number' && nbf - rules.clockSkew > nowSeconds) return INVALID
  if (exp + rules.clockSkew <= nowSeconds) return { type: 'expired' }
  const holder = holderIn(claims)
  return { type: 'valid', claims: { tokenId: jti, userId: Number(sub), holder, issuedAt: iat, expiresAt: exp } }
}

function holderIn({ usr, usr_at }: Readonly<Record<string, unknown>>): TokenHolder | null {
  if (typeof usr !== 'string' || typeof usr_at !== 'string' || !/^\d{1,20}$/.test(usr_at)) return null
  return { username: usr, createdAtUs: BigInt(usr_at) }
}

const signatureOf = (signed: string, secret: string): Buffer => createHmac('sha256', secret).update(signed).digest()

function encode(value: Readonly<Record<string, unknown>>): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** One part of a token as it stands there: nothing of it is to be believed yet. */
export function decodeTokenPart(part: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parseJson(Buffer.from(part, 'base64url').toString('utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
