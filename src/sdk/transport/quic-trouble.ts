/**
 * Where QUIC did not get through lately: networks that block UDP, or lose packets of its size in silence. Each connect would
 * wait for it again there. Kept for a while only, since nobody tells when that ends. Pure.
 */
const KEPT_US = 3_600_000_000
/** Servers and networks; the oldest goes. */
const MAX_KEPT = 32

export class QuicTrouble {
  readonly #untilUs = new Map<string, number>()

  remember(place: string, nowUs: number): void {
    this.#untilUs.delete(place)
    this.#untilUs.set(place, nowUs + KEPT_US)
    const [oldest] = this.#untilUs.keys()
    if (this.#untilUs.size > MAX_KEPT && oldest !== undefined) this.#untilUs.delete(oldest)
  }

  forget(place: string): void {
    this.#untilUs.delete(place)
  }

  isKnown(place: string, nowUs: number): boolean {
    const untilUs = this.#untilUs.get(place)
    return untilUs !== undefined && nowUs < untilUs
  }
}
