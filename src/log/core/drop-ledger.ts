/**
 * Books of what was given up: how many messages, of which partition, for which reason and with which offsets. Pure.
 *
 * Stored + dropped = accepted, over the life of the store. Totals are exact and small; the list of ranges is bounded and
 * keeps the newest.
 */
import type { EvictionReason } from './retention.ts'

/** `drop-newest`: a full topic did not take it; such messages never had an offset. */
export type DropReason = EvictionReason | 'drop-newest'

const RECENT_RANGES = 256

export interface Drop {
  readonly key: number
  readonly reason: DropReason
  /** End exclusive; empty at the next offset for `drop-newest`. */
  readonly fromOffset: bigint
  readonly endOffset: bigint
  readonly messageCount: number
  readonly sizeBytes: number
}

export interface DropSum {
  readonly messageCount: number
  readonly sizeBytes: number
}

export class DropLedger {
  /** Per partition and reason: sums, lowest and highest offset. */
  readonly #totals = new Map<string, Drop>()
  readonly #changed = new Set<string>()
  #recent: Drop[] = []

  /** Takes over a total of an earlier run. */
  load(total: Drop): void {
    this.#totals.set(nameOf(total), total)
  }

  record(drop: Drop): void {
    if (drop.messageCount === 0) return
    const name = nameOf(drop)
    const before = this.#totals.get(name)
    this.#totals.set(name, before === undefined ? drop : joined(before, drop))
    this.#changed.add(name)
    this.#remember(drop)
  }

  /** Newest last; neighbours of one partition and reason are one range. */
  recent(): readonly Drop[] {
    return this.#recent
  }

  /** Sums over all partitions. */
  byReason(): ReadonlyMap<DropReason, DropSum> {
    const sums = new Map<DropReason, DropSum>()
    for (const { reason, messageCount, sizeBytes } of this.#totals.values()) {
      const sum = sums.get(reason) ?? { messageCount: 0, sizeBytes: 0 }
      sums.set(reason, { messageCount: sum.messageCount + messageCount, sizeBytes: sum.sizeBytes + sizeBytes })
    }
    return sums
  }

  totalMessages(): number {
    let count = 0
    for (const { messageCount } of this.#totals.values()) count += messageCount
    return count
  }

  /** Totals that changed since `saved`. */
  changed(): readonly Drop[] {
    return [...this.#changed].flatMap((name) => this.#totals.get(name) ?? [])
  }

  saved(): void {
    this.#changed.clear()
  }

  /** Forgets partitions that are not there any more. */
  retain(isKnown: (key: number) => boolean): void {
    for (const [name, { key }] of this.#totals) {
      if (isKnown(key)) continue
      this.#totals.delete(name)
      this.#changed.delete(name)
    }
  }

  #remember(drop: Drop): void {
    const last = this.#recent.at(-1)
    if (last !== undefined && nameOf(last) === nameOf(drop) && last.endOffset === drop.fromOffset) {
      this.#recent[this.#recent.length - 1] = joined(last, drop)
      return
    }
    this.#recent.push(drop)
    if (this.#recent.length > RECENT_RANGES) this.#recent = this.#recent.slice(-RECENT_RANGES)
  }
}

function nameOf({ key, reason }: Drop): string {
  return `${key}/${reason}`
}

function joined(a: Drop, b: Drop): Drop {
  return {
    ...a,
    fromOffset: lower(a.fromOffset, b.fromOffset),
    endOffset: a.endOffset + b.endOffset - lower(a.endOffset, b.endOffset),
    messageCount: a.messageCount + b.messageCount,
    sizeBytes: a.sizeBytes + b.sizeBytes,
  }
}

function lower(a: bigint, b: bigint): bigint {
  if (a < b) return a
  return b
}
