/** Tells one device that reconnects from two devices with one name. Pure. */
const WINDOW_MS = 60_000
const MAX_TAKEOVERS = 3
/** Names that are watched, some 200 bytes each; beyond it the ones that were taken over longest ago are not. */
export const MAX_WATCHED_NAMES = 4096

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
    // Behind all others: the last takeover of each is older the further in front it stands.
    this.#byName.delete(name)
    this.#byName.set(name, [...recent.slice(1 - MAX_TAKEOVERS), { atMs: nowMs, epoch }])
    this.#forgetOld(nowMs)
    return true
  }

  get watchedCount(): number {
    return this.#byName.size
  }

  #forgetOld(nowMs: number): void {
    for (const [name, takeovers] of this.#byName) {
      const isOld = takeovers.every(({ atMs }) => nowMs - atMs >= WINDOW_MS)
      if (!isOld && this.#byName.size <= MAX_WATCHED_NAMES) return
      this.#byName.delete(name)
    }
  }
}
