/**
 * The ids of a topic's newest messages, so that a message sent again is not stored again. Pure.
 *
 * Decides: whether an id was seen, and where its message lies. Relies on: ids that were not stored after all are taken back.
 * Never: grows past its bound. One window serves all partitions of a topic, because a resend may be routed to another one.
 *
 * Entries lie in columns of typed arrays, 44 bytes each: as objects they took 220 of V8's heap. They are a ring in order of
 * arrival, found by a table of open places; one that is forgotten in the middle leaves a gap until it is the oldest.
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

const FIRST_CAPACITY = 16
/** 32-bit words of an id. */
const ID_WORDS = 4
/** Slots of the table for a place: half of them stay open, so that a search is short. */
const SLOTS_PER_PLACE = 2
/** What stands in the column of partitions where an entry was forgotten. No partition has this number. */
const GONE = 0xffff_ffff

export class DedupWindow {
  readonly #seed: number
  #maxEntries = 0
  #expiryUs = 0
  #capacity = 0
  #ids = new Uint32Array(0)
  #partitionIds = new Uint32Array(0)
  /** Offsets, and times in µs, lie below 2^53. */
  #offsets = new Float64Array(0)
  #timesUs = new Float64Array(0)
  /** Place + 1 of an entry; 0 is open. */
  #slots = new Uint32Array(0)
  /** Place of the oldest entry, and how many places from there on are taken, gaps included. */
  #first = 0
  #taken = 0
  #size = 0
  /** Time of the oldest entry when a full window was put in order last. What is loaded since can only raise it. */
  #fullFromUs: bigint | undefined
  readonly #wanted = new Uint32Array(ID_WORDS)
  readonly #wantedHalves = new BigUint64Array(this.#wanted.buffer)

  /** @param seed so that nobody can choose ids that all search for each other. */
  constructor(limits: DedupLimits, seed: number) {
    this.#seed = seed
    this.resize(limits)
  }

  get size(): number {
    return this.#size
  }

  /** What the columns take of memory. */
  get capacityBytes(): number {
    return this.#capacity * (ID_WORDS * 4 + 4 + 8 + 8 + SLOTS_PER_PLACE * 4)
  }

  /** While entries are loaded into a full window: nothing older would find a place. */
  get oldestUs(): bigint | undefined {
    return this.#size < this.#maxEntries ? undefined : this.#fullFromUs
  }

  resize(limits: DedupLimits): void {
    this.#fullFromUs = undefined
    this.#maxEntries = limits.maxEntries
    this.#expiryUs = Number(limits.expiryUs)
    this.keepNewest(limits.maxEntries)
  }

  /** @param id u128, never 0: a message without an id is new by definition. */
  find(id: bigint, nowUs: bigint): SeenMessage | undefined {
    const place = this.#placeOf(id)
    if (place < 0) return undefined
    const isYoung = Number(nowUs) - (this.#timesUs[place] ?? 0) < this.#expiryUs
    if (isYoung) {
      return { partitionId: this.#partitionIds[place] ?? 0, offset: BigInt(this.#offsets[place] ?? 0) }
    }
    this.#forgetAt(place)
    return undefined
  }

  /** @param atUs time of the append, by the clock of `find`; entries are added in the order of their times. */
  add(id: bigint, message: SeenMessage, atUs: bigint): void {
    this.forget(id)
    this.#push(id, message, Number(atUs))
    this.expire(atUs)
    if (this.#size > this.#maxEntries) this.keepNewest(this.#maxEntries)
  }

  /** As `add`, in any order: `loaded` is to be called behind the last one. */
  load(id: bigint, message: SeenMessage, atUs: bigint): void {
    const known = this.#placeOf(id)
    if (known >= 0 && (this.#timesUs[known] ?? 0) > Number(atUs)) return
    this.forget(id)
    this.#push(id, message, Number(atUs))
    // Not for each partition: a sort of all entries takes as long as to load them.
    if (this.#size >= 2 * this.#maxEntries) this.loaded()
  }

  /** Puts the entries in the order of their times, and keeps the newest. */
  loaded(): void {
    const places = this.#places()
    const times = this.#timesUs
    places.sort((left, right) => (times[left] ?? 0) - (times[right] ?? 0))
    this.#rebuild(this.#capacity, places)
    this.keepNewest(this.#maxEntries)
    if (this.#size === this.#maxEntries) this.#fullFromUs = BigInt(this.#timesUs[this.#first] ?? 0)
  }

  /** The message was not stored after all, or is gone: a resend is new. */
  forget(id: bigint): void {
    const place = this.#placeOf(id)
    if (place >= 0) this.#forgetAt(place)
  }

  /** What lay in the partitions from that number on is gone. */
  forgetPartitions(from: number): void {
    for (const place of this.#places()) if ((this.#partitionIds[place] ?? 0) >= from) this.#forgetAt(place)
    this.#shrink()
  }

  clear(): void {
    this.#fullFromUs = undefined
    this.keepNewest(0)
  }

  /** Drops what is too old from the front; stops at the first entry that is not. */
  expire(nowUs: bigint): void {
    const now = Number(nowUs)
    const before = this.#taken
    while (this.#taken > 0) {
      const isGone = this.#partitionIds[this.#first] === GONE
      if (!isGone && now - (this.#timesUs[this.#first] ?? 0) < this.#expiryUs) break
      this.#dropFirst()
    }
    if (this.#taken < before) this.#shrink()
  }

  keepNewest(count: number): void {
    while (this.#size > count) this.#dropFirst()
    this.#shrink()
  }

  // ---- places --------------------------------------------------------------------------------------------------------

  /** Of all entries, the oldest first. */
  #places(): Uint32Array {
    const places = new Uint32Array(this.#size)
    let count = 0
    for (let step = 0; step < this.#taken; step++) {
      const place = (this.#first + step) & (this.#capacity - 1)
      if (this.#partitionIds[place] !== GONE) places[count++] = place
    }
    return places
  }

  #push(id: bigint, { partitionId, offset }: SeenMessage, atUs: number): void {
    // Gaps are closed before more memory is taken.
    if (this.#taken === this.#capacity) {
      const isHalfGone = this.#size <= this.#capacity / 2 && this.#capacity > 0
      this.#rebuild(isHalfGone ? this.#capacity : Math.max(FIRST_CAPACITY, this.#capacity * 2), this.#places())
    }
    const place = (this.#first + this.#taken) & (this.#capacity - 1)
    this.#want(id)
    this.#ids.set(this.#wanted, place * ID_WORDS)
    this.#partitionIds[place] = partitionId
    this.#offsets[place] = Number(offset)
    this.#timesUs[place] = atUs
    this.#link(place)
    this.#taken++
    this.#size++
  }

  #forgetAt(place: number): void {
    this.#unlink(place)
    this.#partitionIds[place] = GONE
    this.#size--
  }

  #dropFirst(): void {
    if (this.#partitionIds[this.#first] !== GONE) this.#forgetAt(this.#first)
    this.#first = (this.#first + 1) & (this.#capacity - 1)
    this.#taken--
  }

  /** What a burst took is given back. */
  #shrink(): void {
    let capacity = this.#capacity
    while (capacity > FIRST_CAPACITY && this.#size * 4 <= capacity) capacity /= 2
    if (this.#size === 0) capacity = 0
    if (capacity < this.#capacity) this.#rebuild(capacity, this.#places())
  }

  #rebuild(capacity: number, places: Uint32Array): void {
    const { length } = places
    const [ids, partitionIds, offsets, timesUs] = [this.#ids, this.#partitionIds, this.#offsets, this.#timesUs]
    this.#capacity = capacity
    this.#ids = new Uint32Array(capacity * ID_WORDS)
    this.#partitionIds = new Uint32Array(capacity)
    this.#offsets = new Float64Array(capacity)
    this.#timesUs = new Float64Array(capacity)
    this.#slots = new Uint32Array(capacity * SLOTS_PER_PLACE)
    this.#first = 0
    this.#taken = length
    for (let to = 0; to < length; to++) {
      const from = places[to] ?? 0
      for (let word = 0; word < ID_WORDS; word++) this.#ids[to * ID_WORDS + word] = ids[from * ID_WORDS + word] ?? 0
      this.#partitionIds[to] = partitionIds[from] ?? 0
      this.#offsets[to] = offsets[from] ?? 0
      this.#timesUs[to] = timesUs[from] ?? 0
      this.#link(to)
    }
  }

  // ---- the table -----------------------------------------------------------------------------------------------------

  #want(id: bigint): void {
    this.#wantedHalves[0] = id
    this.#wantedHalves[1] = id >> 64n
  }

  /** @returns -1 for an id that is not there. */
  #placeOf(id: bigint): number {
    if (this.#size === 0) return -1
    this.#want(id)
    const mask = this.#slots.length - 1
    for (let slot = this.#home(this.#wanted, 0); ; slot = (slot + 1) & mask) {
      const place = (this.#slots[slot] ?? 0) - 1
      if (place < 0 || this.#isWanted(place)) return place
    }
  }

  #isWanted(place: number): boolean {
    for (let word = 0; word < ID_WORDS; word++) {
      if (this.#ids[place * ID_WORDS + word] !== this.#wanted[word]) return false
    }
    return true
  }

  /** Where the search for the id at `at` of `words` begins. */
  #home(words: Uint32Array, at: number): number {
    let hash = this.#seed
    for (let word = 0; word < ID_WORDS; word++) {
      hash = Math.imul(hash ^ (words[at + word] ?? 0), 0x9e37_79b1)
      hash ^= hash >>> 15
    }
    hash = Math.imul(hash, 0x85eb_ca6b)
    return (hash ^ (hash >>> 13)) & (this.#slots.length - 1)
  }

  #link(place: number): void {
    const mask = this.#slots.length - 1
    let slot = this.#home(this.#ids, place * ID_WORDS)
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
    this.#slots[slot] = place + 1
  }

  /** Closes the gap, so that no search ends in it too early. */
  #unlink(place: number): void {
    const mask = this.#slots.length - 1
    let hole = this.#home(this.#ids, place * ID_WORDS)
    while (this.#slots[hole] !== place + 1) hole = (hole + 1) & mask
    for (let next = (hole + 1) & mask; this.#slots[next] !== 0; next = (next + 1) & mask) {
      const home = this.#home(this.#ids, ((this.#slots[next] ?? 0) - 1) * ID_WORDS)
      if (((next - home) & mask) < ((next - hole) & mask)) continue
      this.#slots[hole] = this.#slots[next] ?? 0
      hole = next
    }
    this.#slots[hole] = 0
  }
}

/**
 * Lets windows forget until all of them together hold no more than `maxEntries`: those that hold most, down to a common
 * size, so that a busy topic does not cost a quiet one its memory.
 */
export function keepTogether(windows: readonly DedupWindow[], maxEntries: number, nowUs: bigint): void {
  for (const window of windows) window.expire(nowUs)
  let left = maxEntries
  const bySize = [...windows].sort((a, b) => a.size - b.size)
  for (const [index, window] of bySize.entries()) {
    window.keepNewest(Math.floor(left / (bySize.length - index)))
    left -= window.size
  }
}
