/** An issuer of access tokens with a key of its own, as another party would run it. */
import { generateKeyPairSync, sign } from 'node:crypto'

export type IssuerKeyKind = 'rsa' | 'ec'

export class TestIssuer {
  readonly keyId: string
  readonly algorithm: string
  /** Its published key, as one entry of a JSON web key set. */
  readonly jwk: Readonly<Record<string, unknown>>
  readonly #privateKey

  constructor(keyId: string, kind: IssuerKeyKind = 'ec', rsaBits = 2048) {
    const pair =
      kind === 'rsa'
        ? generateKeyPairSync('rsa', { modulusLength: rsaBits })
        : generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.keyId = keyId
    this.algorithm = kind === 'rsa' ? 'RS256' : 'ES256'
    this.#privateKey = pair.privateKey
    this.jwk = { ...pair.publicKey.export({ format: 'jwk' }), kid: keyId }
  }

  /** @param header what differs from an honest one. */
  token(claims: Readonly<Record<string, unknown>>, header: Readonly<Record<string, unknown>> = {}): string {
    const parts = [{ alg: this.algorithm, kid: this.keyId, ...header }, claims]
    const signed = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
    const signature = sign('sha256', Buffer.from(signed), { key: this.#privateKey, dsaEncoding: 'ieee-p1363' })
    return `${signed}.${signature.toString('base64url')}`
  }
}

export const keySetOf = (...issuers: readonly TestIssuer[]): string =>
  JSON.stringify({ keys: issuers.map(({ jwk }) => jwk) })
