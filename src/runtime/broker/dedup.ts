/**
 * The ids of a topic's newest messages, so that a message sent again is not stored again. Pure.
 *
 * Decides: whether an id was seen, and where its message lies. Relies on: ids that were not stored after all are taken back.
 * Never: grows past its bound. One window serves all partitions of a topic, because a resend may be routed to another one.
 */

export interface DedupLimits {
  readonly maxEntries: number
  readonly expiryUs: bigint
}

/** Where the message with that id lies. */
export interface SeenMessage {
  readonly partitionId: number
  readonly offset: bigint
}

interface Entry extends SeenMessage {
  readonly atUs: bigint
}

export class DedupWindow {
  private limits: DedupLimits
  /** In order of arrival: the first one is the oldest. */
  private readonly entries = new Map<bigint, Entry>()

  constructor(limits: DedupLimits) {
    this.limits = limits
  }

  get size(): number {
    return this.entries.size
  }

  resize(limits: DedupLimits): void {
    this.limits = limits
    this.trim()
  }

  /** @param id u128, never 0: a message without an id is new by definition. */
  find(id: bigint, nowUs: bigint): SeenMessage | undefined {
    const entry = this.entries.get(id)
    if (entry === undefined) return undefined
    if (nowUs - entry.atUs < this.limits.expiryUs) return entry
    this.entries.delete(id)
    return undefined
  }

  /** @param atUs time of the append, by the clock of `find`; entries are added in the order of their times. */
  add(id: bigint, message: SeenMessage, atUs: bigint): void {
    this.entries.delete(id)
    this.entries.set(id, { partitionId: message.partitionId, offset: message.offset, atUs })
    this.expire(atUs)
    this.trim()
  }

  /** The message was not stored after all, or is gone: a resend is new. */
  forget(id: bigint): void {
    this.entries.delete(id)
  }

  /** What lay in the partitions from that number on is gone. */
  forgetPartitions(from: number): void {
    for (const [id, { partitionId }] of this.entries) if (partitionId >= from) this.entries.delete(id)
  }

  clear(): void {
    this.entries.clear()
  }

  /** Drops what is too old from the front; stops at the first entry that is not. */
  private expire(nowUs: bigint): void {
    for (const [id, entry] of this.entries) {
      if (nowUs - entry.atUs < this.limits.expiryUs) return
      this.entries.delete(id)
    }
  }

  private trim(): void {
    for (const id of this.entries.keys()) {
      if (this.entries.size <= this.limits.maxEntries) return
      this.entries.delete(id)
    }
  }
}
