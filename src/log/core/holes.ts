/** Offset ranges that are not there: taken by damage, or never given. Bounded: beyond it the closest ones are merged. */

import { earlier, later } from './offset.ts'

export interface Hole {
  readonly from: bigint
  readonly end: bigint
  readonly reason: 'damage' | 'jump'
}

/** Enough for every realistic history of one partition; merging only makes ranges coarser. */
const MAX_HOLES = 64

export class Holes {
  #list: Hole[] = []

  get list(): readonly Hole[] {
    return this.#list
  }

  /** Messages that are missing at or above `start`. */
  countFrom(start: bigint): number {
    const above = this.#list.filter(({ end }) => end > start)
    return above.reduce((sum, { from, end }) => sum + Number(end - later(from, start)), 0)
  }

  /** @returns whether it was not known before. */
  add(hole: Hole): boolean {
    if (hole.end <= hole.from) return false
    if (this.#list.some(({ from, end }) => from <= hole.from && hole.end <= end)) return false
    const touching = this.#list.filter(({ from, end }) => from <= hole.end && hole.from <= end)
    const rest = this.#list.filter((each) => !touching.includes(each))
    const merged = touching.reduce(union, hole)
    this.#list = [...rest, merged].sort((a, b) => (a.from < b.from ? -1 : 1))
    if (this.#list.length > MAX_HOLES) this.#mergeClosest()
    return true
  }

  /** What lies below is gone anyhow. */
  dropBelow(offset: bigint): void {
    this.#list = this.#list
      .filter(({ end }) => end > offset)
      .map((hole) => (hole.from < offset ? { ...hole, from: offset } : hole))
  }

  #mergeClosest(): void {
    let closest = 1
    for (let index = 2; index < this.#list.length; index++) {
      if (this.#gapBefore(index) < this.#gapBefore(closest)) closest = index
    }
    const [before, after] = this.#list.slice(closest - 1, closest + 1)
    if (before !== undefined && after !== undefined) this.#list.splice(closest - 1, 2, union(before, after))
  }

  #gapBefore(index: number): bigint {
    return (this.#list[index]?.from ?? 0n) - (this.#list[index - 1]?.end ?? 0n)
  }
}

/** Damage is the word when both meet: it is what an operator must know. */
const union = (a: Hole, b: Hole): Hole => ({
  from: earlier(a.from, b.from),
  end: later(a.end, b.end),
  reason: a.reason === 'damage' ? a.reason : b.reason,
})
