/** Ranges of offsets that were given up since the start of this process: ascending, joined, bounded. Pure. */

/** The oldest ranges are forgotten beyond it: after a restart of the upstream their records are offered once more. */
const MAX_RANGES = 256

export class OffsetRanges {
  readonly #ranges: { from: bigint; end: bigint }[] = []

  /** @param from at or above all ranges there are, as a forwarder only moves on. */
  add(from: bigint, end: bigint): void {
    const last = this.#ranges.at(-1)
    if (last !== undefined && from <= last.end) last.end = end > last.end ? end : last.end
    else this.#ranges.push({ from, end })
    if (this.#ranges.length > MAX_RANGES) this.#ranges.shift()
  }

  covers(from: bigint, end: bigint): boolean {
    return this.#ranges.some((range) => range.from <= from && end <= range.end)
  }
}
