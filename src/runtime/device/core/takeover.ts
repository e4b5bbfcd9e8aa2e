/** Tells one device that reconnects from two devices with one name. Pure. */
const WINDOW_MS = 60_000
const MAX_TAKEOVERS = 3

export class TakeoverGuard {
  readonly #byName = new Map<string, { readonly atMs: number; readonly epoch: number }[]>()

  /**
   * A session with this name is about to replace another one.
   *
   * @returns false when that happened too often lately with differing epochs: somebody else bears the name.
   */
  mayTakeOver(name: string, epoch: number, nowMs: number): boolean {
    const recent = (this.#byName.get(name) ?? []).filter(({ atMs }) => nowMs - atMs < WINDOW_MS)
    const epochs = new Set([...recent.map((one) => one.epoch), epoch])
    if (recent.length >= MAX_TAKEOVERS && epochs.size > 1) {
      this.#byName.set(name, recent)
      return false
    }
    this.#byName.set(name, [...recent.slice(1 - MAX_TAKEOVERS), { atMs: nowMs, epoch }])
    this.#forgetOld(nowMs)
    return true
  }

  #forgetOld(nowMs: number): void {
    for (const [name, takeovers] of this.#byName) {
      if (takeovers.every(({ atMs }) => nowMs - atMs >= WINDOW_MS)) this.#byName.delete(name)
    }
  }
}
