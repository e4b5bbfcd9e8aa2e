/** Personal access tokens of the user who is logged in. */
import { CODE } from '../wire/codes.ts'
import type { Requester } from './requester.ts'

export interface TokenInfo {
  readonly name: string
  /** µs since the Unix epoch; null = never. */
  readonly expiresAtUs: bigint | null
}

export class TokensApi {
  readonly #requester: Requester

  constructor(requester: Requester) {
    this.#requester = requester
  }

  async list(): Promise<readonly TokenInfo[]> {
    const { tokens } = await this.#requester.request(CODE.getPersonalAccessTokens, null)
    return tokens.map(({ name, expiryAtUs }) => ({ name, expiresAtUs: expiryAtUs === 0n ? null : expiryAtUs }))
  }

  /**
   * @param lifetimeUs null = it never expires.
   * @returns the token's text: the server shows it this once.
   */
  async create(name: string, lifetimeUs: bigint | null): Promise<string> {
    const { token } = await this.#requester.request(CODE.createPersonalAccessToken, {
      name,
      expiryUs: lifetimeUs ?? 0n,
    })
    return token
  }

  async delete(name: string): Promise<void> {
    await this.#requester.request(CODE.deletePersonalAccessToken, { name })
  }
}
