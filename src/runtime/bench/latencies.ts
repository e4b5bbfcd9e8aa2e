/** Latencies of one measurement, and the two figures that are told of them. Pure. */

/** Enough for a 99th percentile, bounded for long measurements: the newest are kept. */
const MAX_SAMPLES = 200_000

export class Latencies {
  readonly #samplesUs = new Float64Array(MAX_SAMPLES)
  #count = 0

  get count(): number {
    return this.#count
  }

  add(us: number): void {
    this.#samplesUs[this.#count % MAX_SAMPLES] = us
    this.#count++
  }

  clear(): void {
    this.#count = 0
  }

  /** @returns rounded µs of each share, 0 to 1 in `shares`; the smallest sample that so many are not above. */
  percentilesUs<const S extends readonly number[]>(shares: S): { readonly [K in keyof S]: number } {
    const sorted = this.#samplesUs.slice(0, Math.min(this.#count, MAX_SAMPLES)).sort()
    const at = (share: number) => Math.round(sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0)
    return shares.map(at) as { readonly [K in keyof S]: number }
  }
}
