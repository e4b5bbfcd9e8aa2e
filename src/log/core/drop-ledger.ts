/**
 * Books of what was given up: how many messages, of which partition, for which reason and with which offsets. Pure.
 *
 * Stored + dropped = accepted, over the life of the store. Totals are exact and small; the list of ranges is bounded and
 * keeps the newest.
 */
import type { DropRange as Drop, DropReason, DropReport } from '../api.ts'

const RECENT_RANGES = 256
/** No partition has this key: it stands for all that were deleted. */
const GONE_KEY = 0

export class DropLedger {
  /** Per partition and reason: sums, lowest and highest offset. */
  readonly #totals = new Map<string, Drop>()
  readonly #changed = new Set<string>()
  readonly #removedKeys = new Set<number>()
  #recent: Drop[] = []

  /** Takes over a total of an earlier run. */
  load(total: Drop): void {
    this.#totals.set(nameOf(total), total)
  }

  record(drop: Drop): void {
    if (drop.messageCount === 0) return
    this.#add(drop)
    this.#remember(drop)
  }

  /** Sums over all partitions; the newest ranges, where neighbours of one partition and reason are one. */
  report(): DropReport {
    const sums = new Map<DropReason, { messageCount: number; sizeBytes: number }>()
    for (const { reason, messageCount, sizeBytes } of this.#totals.values()) {
      const sum = sums.get(reason) ?? { messageCount: 0, sizeBytes: 0 }
      sums.set(reason, { messageCount: sum.messageCount + messageCount, sizeBytes: sum.sizeBytes + sizeBytes })
    }
    return { byReason: sums, recent: this.#recent }
  }

  totalMessages(): number {
    let count = 0
    for (const { messageCount } of this.#totals.values()) count += messageCount
    return count
  }

  /** What the disk does not have yet: totals that changed, and keys whose totals are to be removed. */
  unsaved(): { readonly changed: readonly Drop[]; readonly removedKeys: readonly number[] } {
    const changed = [...this.#changed].flatMap((name) => this.#totals.get(name) ?? [])
    return { changed, removedKeys: [...this.#removedKeys] }
  }

  /** `unsaved` is on the disk; call it in the same turn. */
  saved(): void {
    this.#changed.clear()
    this.#removedKeys.clear()
  }

  /** Adds the totals of deleted partitions to those of `GONE_KEY`: the sums never fall. */
  retain(isKnown: (key: number) => boolean): void {
    for (const [name, total] of [...this.#totals]) {
      if (total.key === GONE_KEY || isKnown(total.key)) continue
      this.#totals.delete(name)
      this.#changed.delete(name)
      this.#removedKeys.add(total.key)
      this.#add({ ...total, key: GONE_KEY })
    }
  }

  #add(drop: Drop): void {
    const name = nameOf(drop)
    const before = this.#totals.get(name)
    this.#totals.set(name, before === undefined ? drop : joined(before, drop))
    this.#changed.add(name)
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
