/**
 * Access tokens of other issuers: JSON web tokens signed with a key that the issuer publishes. Pure, but for the signature.
 *
 * Decides: whether a token is genuine, for us and in its time. Relies on: the caller has found the issuer by `iss` and the key
 * by `kid`. Never: takes the algorithm's word for the key. A key says itself which algorithms it serves, or a public key could
 * be passed off as the secret of another algorithm.
 */
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { decodeTokenPart, MAX_TOKEN_LENGTH } from './access-token.ts'

export interface ExternalToken {
  readonly algorithm: string
  readonly keyId: string
  readonly issuer: string
  readonly claims: Readonly<Record<string, unknown>>
  readonly signedText: string
  readonly signatureBytes: Uint8Array
}

export interface IssuerKey {
  readonly key: KeyObject
  /** JSON web algorithms this key may verify. */
  readonly algorithms: readonly string[]
}

/** NIST's curves by the names that Node has for them. */
const CURVE_ALGORITHMS: Readonly<Record<string, string>> = {
  prime256v1: 'ES256',
  secp384r1: 'ES384',
  secp521r1: 'ES512',
}
const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512']
const MIN_RSA_BITS = 2048

/** @returns what the token says of itself; undefined when it is none of this kind. Nothing of it is verified. */
export function readExternalToken(token: string): ExternalToken | undefined {
  if (token.length > MAX_TOKEN_LENGTH) return undefined
  const [header, payload, signature, ...more] = token.split('.')
  if (header === undefined || payload === undefined || signature === undefined || more.length > 0) return undefined
  const { alg, kid } = decodeTokenPart(header) ?? {}
  const claims = decodeTokenPart(payload) ?? {}
  if (typeof alg !== 'string' || typeof kid !== 'string' || typeof claims.iss !== 'string') return undefined
  return {
    algorithm: alg,
    keyId: kid,
    issuer: claims.iss,
    claims,
    signedText: `${header}.${payload}`,
    signatureBytes: Buffer.from(signature, 'base64url'),
  }
}

/** @param clockSkew seconds by which clocks may differ. @param nowSeconds since the Unix epoch. */
export function isValidExternalToken(
  token: ExternalToken,
  issuerKey: IssuerKey,
  { audience, clockSkew, nowSeconds }: { audience: string; clockSkew: number; nowSeconds: number },
): boolean {
  const { algorithm, claims } = token
  if (!issuerKey.algorithms.includes(algorithm)) return false
  const { aud, exp, nbf } = claims
  const audiences = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(audience) || typeof exp !== 'number' || exp + clockSkew <= nowSeconds) return false
  if (nbf !== undefined && (typeof nbf !== 'number' || nbf - clockSkew > nowSeconds)) return false
  const key = { key: issuerKey.key, dsaEncoding: 'ieee-p1363' } as const
  return verify(`sha${algorithm.slice(2)}`, Buffer.from(token.signedText), key, token.signatureBytes)
}

/** @param jwk one entry of a JSON web key set. @returns undefined for a key of another kind, or too weak a one. */
export function importIssuerKey(jwk: Readonly<Record<string, unknown>>): IssuerKey | undefined {
  if (jwk.use !== undefined && jwk.use !== 'sig') return undefined
  let key: KeyObject
  try {
    key = createPublicKey({ key: jwk, format: 'jwk' })
  } catch {
    return undefined
  }
  const algorithms = algorithmsOf(key).filter((each) => jwk.alg === undefined || jwk.alg === each)
  return algorithms.length === 0 ? undefined : { key, algorithms }
}

function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): readonly string[] {
  const { modulusLength = 0, namedCurve = '' } = asymmetricKeyDetails
  if (asymmetricKeyType === 'rsa') return modulusLength >= MIN_RSA_BITS ? RSA_ALGORITHMS : []
  const ofCurve = asymmetricKeyType === 'ec' ? CURVE_ALGORITHMS[namedCurve] : undefined
  return ofCurve === undefined ? [] : [ofCurve]
}
