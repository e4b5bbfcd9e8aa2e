/**
 * A set of whole numbers as ascending ranges that neither overlap nor touch: packet numbers received, bytes acknowledged.
 * Pure.
 *
 * Kept flat, `[first, last, first, last, ...]`, both inclusive. Numbers mostly come in order, so additions look at the end
 * first. Whoever lets a peer decide what is added bounds it with `keepHighest`.
 */
export class RangeSet {
  readonly #bounds: number[] = []

  get isEmpty(): boolean {
    return this.#bounds.length === 0
  }

  /** Ranges, not numbers. */
  get count(): number {
    return this.#bounds.length / 2
  }

  /** First number of the range at `index`, counted from the lowest one. */
  firstOf(index: number): number {
    return this.#bounds[index * 2] ?? Number.NaN
  }

  /** Last number of the range at `index`, inclusive. */
  lastOf(index: number): number {
    return this.#bounds[index * 2 + 1] ?? Number.NaN
  }

  /** Adds `first` to `last`, both inclusive. */
  add(first: number, last: number): void {
    const bounds = this.#bounds
    const highest = bounds.at(-1)
    if (highest === undefined || first > highest + 1) {
      bounds.push(first, last)
      return
    }
    let from = bounds.length
    while (from > 0 && (bounds[from - 1] ?? 0) + 1 >= first) from -= 2
    let to = from
    let [low, high] = [first, last]
    while (to < bounds.length && (bounds[to] ?? 0) <= last + 1) {
      low = Math.min(low, bounds[to] ?? low)
      high = Math.max(high, bounds[to + 1] ?? high)
      to += 2
    }
    if (to === from + 2) {
      bounds[from] = low
      bounds[from + 1] = high
    } else {
      bounds.splice(from, to - from, low, high)
    }
  }

  has(value: number): boolean {
    return this.covers(value, value)
  }

  /** @returns whether all of `first` to `last` is in the set. */
  covers(first: number, last: number): boolean {
    const bounds = this.#bounds
    for (let at = bounds.length - 2; at >= 0; at -= 2) {
      if (first >= (bounds[at] ?? 0)) return last <= (bounds[at + 1] ?? -1)
    }
    return false
  }

  /** Takes out everything below `value`. */
  dropBelow(value: number): void {
    const bounds = this.#bounds
    let gone = 0
    while (gone < bounds.length && (bounds[gone + 1] ?? 0) < value) gone += 2
    if (gone > 0) bounds.splice(0, gone)
    if (bounds.length > 0 && (bounds[0] ?? 0) < value) bounds[0] = value
  }

  /** Takes out the lowest ranges until at most `count` are left. */
  keepHighest(count: number): void {
    const excess = this.#bounds.length - count * 2
    if (excess > 0) this.#bounds.splice(0, excess)
  }
}
