/**
 * Access tokens that were logged out before they ended. Bounded, and kept over a restart: a logout that a restart undoes
 * would be none. Pure; the caller keeps the text.
 */

/** About 60 bytes each. */
export const MAX_REVOKED_TOKENS = 4096

export class Revocations {
  /** Token id -> end of its validity, seconds since the Unix epoch. */
  private readonly endings = new Map<string, number>()

  /** @param text as `serialize` gave it; anything else counts as empty. */
  static parse(text: string | undefined, nowSeconds: number): Revocations {
    const revocations = new Revocations()
    for (const line of (text ?? '').split('\n')) {
      const [tokenId, ending, ...more] = line.split(' ')
      const expiresAt = Number(ending)
      if (tokenId === undefined || more.length > 0 || !Number.isSafeInteger(expiresAt)) continue
      if (expiresAt > nowSeconds) revocations.endings.set(tokenId, expiresAt)
    }
    return revocations
  }

  get size(): number {
    return this.endings.size
  }

  has(tokenId: string): boolean {
    return this.endings.has(tokenId)
  }

  /** Forgets what has ended anyway; over the bound, the token that would have ended first. */
  add(tokenId: string, expiresAt: number, nowSeconds: number): void {
    for (const [id, ending] of this.endings) if (ending <= nowSeconds) this.endings.delete(id)
    this.endings.set(tokenId, expiresAt)
    if (this.endings.size <= MAX_REVOKED_TOKENS) return
    const [first] = [...this.endings].reduce((a, b) => (b[1] < a[1] ? b : a))
    this.endings.delete(first)
  }

  serialize(): string {
    return [...this.endings].map(([tokenId, ending]) => `${tokenId} ${ending}`).join('\n')
  }
}
