/**
 * The packets of one packet number space that ask for an acknowledgement and have none yet, and who wants to know what
 * becomes of them. Pure.
 *
 * Packets of acknowledgements alone are not kept: nobody waits for them, and a peer that only sends would make us
 * remember one for each two of its own.
 */

/** Something that a packet carries, as its owner sees it. */
export interface Carried {
  /** At most once. */
  acknowledged(): void
  /** The packet is lost, or so long under way that a probe carries it once more: send again what still matters. */
  lost(): void
}

export interface SentPacket {
  readonly number: number
  /** Counts the packets that are kept: neighbours have neighbouring ordinals, however many others lie between. */
  readonly ordinal: number
  readonly sentMs: number
  readonly size: number
  readonly carried: readonly Carried[]
  /** `lost` was called already, for a probe. */
  isRepeated: boolean
}

export class SentPackets {
  /** By number, ascending, since numbers are. */
  readonly #packets = new Map<number, SentPacket>()
  #nextOrdinal = 0
  #lastSentMs = 0

  get count(): number {
    return this.#packets.size
  }

  /** When the latest one was sent. */
  get lastSentMs(): number {
    return this.#lastSentMs
  }

  /** Oldest first. Packets may be removed on the way. */
  [Symbol.iterator](): IterableIterator<SentPacket> {
    return this.#packets.values()
  }

  add(number: number, sentMs: number, size: number, carried: readonly Carried[]): void {
    this.#packets.set(number, { number, ordinal: this.#nextOrdinal++, sentMs, size, carried, isRepeated: false })
    this.#lastSentMs = sentMs
  }

  remove(number: number): void {
    this.#packets.delete(number)
  }

  clear(): void {
    this.#packets.clear()
  }
}

/** Tells the owners that the packet is to be made up for; once. */
export function repeat(packet: SentPacket): void {
  if (packet.isRepeated) return
  packet.isRepeated = true
  for (const carried of packet.carried) carried.lost()
}
