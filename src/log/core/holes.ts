/** Offset ranges that are not there: taken by damage, or never given. Bounded: beyond it the closest ones are merged. */

import { earlier, later } from './offset.ts'

export interface Hole {
  readonly from: bigint
  /** Exclusive. */
  readonly end: bigint
  readonly reason: 'damage' | 'jump'
  /** Offsets of it that are missing, where ranges were merged; else all of them are. */
  readonly missing?: number
}

/** Enough for every realistic history of one partition; merging makes ranges coarser, and their count stays what it was. */
export const MAX_HOLES = 64

export class Holes {
  /** In order, and none over another. */
  #list: Hole[] = []

  get list(): readonly Hole[] {
    return this.#list
  }

  /** Messages that are missing at or above `start`. */
  countFrom(start: bigint): number {
    const above = this.#list.filter(({ end }) => end > start)
    return above.reduce((sum, hole) => sum + missingIn(cutAt(hole, start)), 0)
  }

  /** @returns whether it was not known before. */
  add(hole: Hole): boolean {
    if (hole.end <= hole.from) return false
    const parts = this.#list.reduce((left, known) => left.flatMap((part) => without(part, known)), [hole])
    if (parts.length === 0) return false
    const all = [...this.#list, ...parts].sort((a, b) => (a.from < b.from ? -1 : 1))
    this.#list = []
    for (const each of all) {
      const before = this.#list.at(-1)
      if (before?.end === each.from && before.reason === each.reason) this.#list.splice(-1, 1, union(before, each))
      else this.#list.push(each)
    }
    if (this.#list.length > MAX_HOLES) this.#mergeClosest()
    return true
  }

  /** What lies below is gone anyhow. */
  dropBelow(offset: bigint): void {
    this.#list = this.#list.filter(({ end }) => end > offset).map((hole) => cutAt(hole, offset))
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

const spanOf = ({ from, end }: Hole): number => Number(end - from)

const missingIn = (hole: Hole): number => hole.missing ?? spanOf(hole)

/** In one that was merged nobody knows which offsets are missing: as many as fit. */
function cutAt(hole: Hole, offset: bigint): Hole {
  if (hole.from >= offset) return hole
  const { missing, ...range } = { ...hole, from: offset }
  return missing === undefined || missing >= spanOf(range) ? range : { ...range, missing }
}

/** What of `hole` lies outside of `known`. */
function without(hole: Hole, known: Hole): Hole[] {
  if (known.end <= hole.from || hole.end <= known.from) return [hole]
  const { reason } = hole
  const parts = [
    { from: hole.from, end: known.from, reason },
    { from: known.end, end: hole.end, reason },
  ]
  return parts.filter(({ from, end }) => from < end)
}

/** Damage is the word when both meet: it is what an operator must know. */
function union(a: Hole, b: Hole): Hole {
  const missing = missingIn(a) + missingIn(b)
  const range = {
    from: earlier(a.from, b.from),
    end: later(a.end, b.end),
    reason: a.reason === 'damage' ? a.reason : b.reason,
  }
  return missing >= spanOf(range) ? range : { ...range, missing }
}
