/**
 * Readings of one lane that the edge has not disposed of: numbered once, encoded once, sent again byte for byte. Pure.
 *
 * Sequences start at 1 and have no gaps: what is given up to make room leaves a `skip` in its place. Entries before
 * `sent` are on their way; a resume or a refusal with a pause moves it back.
 */
export interface LaneEntry {
  readonly first: number
  readonly count: number
  /** The frame as it goes on the wire; a skip is encoded when it is sent. */
  readonly frameBytes: Uint8Array | null
  /** Null for a skip. */
  readonly alias: number | null
  /** Set for a skip: 0 overflow, 3 lost by the edge. */
  readonly why: number
}

export interface LaneBounds {
  readonly maxReadings: number
  readonly maxBytes: number
}

const SKIP_BYTES = 16

export class LaneQueue {
  readonly lane: number
  readonly #bounds: LaneBounds
  readonly #entries: LaneEntry[] = []
  #sentCount = 0
  #next = 1
  #acked = 0
  #readings = 0
  #bytes = 0
  #unackedBytes = 0
  #unackedReadings = 0
  /** After a refusal with a pause nothing of the lane is sent before this. */
  holdUntilUs = 0
  /** What it is held for when the topic of one alias is not there. */
  heldAlias: number | null = null

  constructor(lane: number, bounds: LaneBounds) {
    this.lane = lane
    this.#bounds = bounds
  }

  /** Sequence of the next reading. */
  get nextSequence(): number {
    return this.#next
  }

  get acked(): number {
    return this.#acked
  }

  get queuedReadings(): number {
    return this.#readings
  }

  get queuedBytes(): number {
    return this.#bytes
  }

  get unackedBytes(): number {
    return this.#unackedBytes
  }

  get unackedReadings(): number {
    return this.#unackedReadings
  }

  hasRoomFor(count: number, sizeBytes: number): boolean {
    return this.#fit(this.#readings + count, this.#bytes + sizeBytes)
  }

  /** @returns the alias of the reading with that sequence; null when it is none, or has gone. */
  aliasAt(sequence: number): number | null {
    const entry = this.#entries.find(({ first, count }) => first <= sequence && sequence < first + count)
    return entry?.alias ?? null
  }

  add(alias: number, count: number, frameBytes: Uint8Array): void {
    this.#entries.push({ first: this.#next, count, frameBytes, alias, why: 0 })
    this.#next += count
    this.#readings += count
    this.#bytes += frameBytes.length
  }

  /**
   * Gives up the oldest entries that are not on their way, for newer ones.
   *
   * @returns their ranges; null, and nothing is given up, when all of them would not make room enough.
   */
  makeRoomFor(count: number, sizeBytes: number): { first: number; count: number }[] | null {
    const sent = this.#entries.slice(0, this.#sentCount).filter(({ frameBytes }) => frameBytes !== null)
    const sentReadings = sent.reduce((sum, entry) => sum + entry.count, 0)
    const sentBytes = sent.reduce((sum, entry) => sum + sizeOf(entry), 0)
    if (!this.#fit(sentReadings + count, sentBytes + sizeBytes)) return null
    const ranges: { first: number; count: number }[] = []
    while (!this.hasRoomFor(count, sizeBytes)) {
      const range = this.#dropOldestUnsent()
      if (range === null) break
      ranges.push(range)
    }
    return ranges
  }

  /** @returns the next entry to send, which then counts as sent; null when all are on their way. */
  takeNext(fits: (sizeBytes: number, readings: number) => boolean): LaneEntry | null {
    const entry = this.#entries[this.#sentCount]
    if (entry === undefined || !fits(sizeOf(entry), readingsIn(entry))) return null
    this.#sentCount += 1
    this.#unackedBytes += sizeOf(entry)
    this.#unackedReadings += readingsIn(entry)
    return entry
  }

  /** Everything up to and including `upTo` is disposed of. */
  ackedUpTo(upTo: number): void {
    while (this.#entries.length > 0) {
      const entry = this.#entries[0]
      if (entry === undefined || entry.first + entry.count - 1 > upTo) break
      this.#entries.shift()
      if (entry.frameBytes !== null) {
        this.#readings -= entry.count
        this.#bytes -= sizeOf(entry)
      }
      if (this.#sentCount > 0) {
        this.#sentCount -= 1
        this.#unackedBytes -= sizeOf(entry)
        this.#unackedReadings -= readingsIn(entry)
      }
    }
    this.#acked = Math.max(this.#acked, upTo)
    this.#next = Math.max(this.#next, upTo + 1)
  }

  /** Sends again from the entry that holds `sequence` on. */
  rewindTo(sequence: number): void {
    while (this.#sentCount > 0) {
      const entry = this.#entries[this.#sentCount - 1]
      if (entry === undefined || entry.first + entry.count - 1 < sequence) break
      this.#sentCount -= 1
      this.#unackedBytes -= sizeOf(entry)
      this.#unackedReadings -= readingsIn(entry)
    }
  }

  /** The edge holds up to `have`; on a new session everything after it is sent again. */
  resume(have: number): void {
    this.rewindTo(0)
    if (have < this.#acked) {
      // Acknowledged once, lost by the edge, and no longer held here: the edge is told, so that it counts the loss.
      const entry = { first: have + 1, count: this.#acked - have, frameBytes: null, alias: null, why: 3 }
      this.#acked = have
      this.#entries.unshift(entry)
    } else {
      this.ackedUpTo(have)
    }
  }

  /** @returns its range, or null when everything is on its way. */
  #dropOldestUnsent(): { first: number; count: number } | null {
    const index = this.#entries.findIndex((entry, at) => at >= this.#sentCount && entry.frameBytes !== null)
    const entry = this.#entries[index]
    if (entry === undefined) return null
    this.#readings -= entry.count
    this.#bytes -= sizeOf(entry)
    const before = this.#entries[index - 1]
    const joins = before !== undefined && before.frameBytes === null && index - 1 >= this.#sentCount
    if (joins) this.#entries.splice(index - 1, 2, { ...before, count: before.count + entry.count })
    else
      this.#entries.splice(index, 1, { first: entry.first, count: entry.count, frameBytes: null, alias: null, why: 0 })
    return { first: entry.first, count: entry.count }
  }

  #fit(readings: number, bytes: number): boolean {
    return readings <= this.#bounds.maxReadings && bytes <= this.#bounds.maxBytes
  }
}

/** What takes room in the window: numbers that were given up are no readings, however many they are. */
function readingsIn(entry: LaneEntry): number {
  return entry.frameBytes === null ? 0 : entry.count
}

function sizeOf(entry: LaneEntry): number {
  return entry.frameBytes?.length ?? SKIP_BYTES
}
