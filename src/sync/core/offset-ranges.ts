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

  /** @returns where the last `count` offsets below `end` begin that were not given up; 0 where there are fewer. */
  back(end: bigint, count: bigint): bigint {
    let at = end
    let left = count
    for (const range of this.#ranges.toReversed()) {
      if (range.from >= at) continue
      const between = range.end < at ? at - range.end : 0n
      if (between >= left) break
      left -= between
      at = range.from
    }
    return at > left ? at - left : 0n
  }

  covers(from: bigint, end: bigint): boolean {
    return this.#ranges.some((range) => range.from <= from && end <= range.end)
  }
}
