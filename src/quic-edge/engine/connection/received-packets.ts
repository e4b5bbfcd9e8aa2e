/**
 * What came in one packet number space: finds duplicates, and says when and what to acknowledge (RFC 9000 section 13.2).
 * Pure.
 *
 * Numbers below the floor are all taken as known. It rises as the peer learns of our acknowledgements, and when there are
 * too many gaps; a packet that comes later than that is dropped, and its content sent again.
 */
import { RangeSet } from '../wire/range-set.ts'
import type { Writer } from '../wire/writer.ts'
import { writeAckFrame } from './ack-frame.ts'
import type { Carried } from './sent-packets.ts'

/** Ranges of numbers that a peer can make us remember by leaving gaps. */
export const RECEIVED_RANGES_MAX = 64
/** Packets that ask for an acknowledgement until there is one. */
const PACKETS_PER_ACK = 2
/** Units of our delays, as `ack_delay_exponent` says by default: 8 µs. */
const DELAY_UNITS_PER_MS = 1000 / 8

export class ReceivedPackets {
  readonly #numbers = new RangeSet()
  /** How long an acknowledgement may wait for another packet; 0 before the handshake is done. */
  readonly #maxDelayMs: number
  #floor = 0
  #largest = -1
  #largestReceivedMs = 0
  /** Packets since the last acknowledgement that ask for one. */
  #waitingCount = 0
  #ackDueMs = Number.POSITIVE_INFINITY

  constructor(maxDelayMs: number) {
    this.#maxDelayMs = maxDelayMs
  }

  /** -1 before the first. */
  get largest(): number {
    return this.#largest
  }

  get rangeCount(): number {
    return this.#numbers.count
  }

  /** When an acknowledgement must go out even alone; `Infinity` when none is owed. */
  get ackDueMs(): number {
    return this.#ackDueMs
  }

  isKnown(number: number): boolean {
    return number < this.#floor || this.#numbers.has(number)
  }

  /** @returns whether the number is the highest so far. */
  add(number: number, asksForAck: boolean, nowMs: number): boolean {
    const isInOrder = number === this.#largest + 1
    const isLargest = number > this.#largest
    this.#numbers.add(number, number)
    if (isLargest) {
      this.#largest = number
      this.#largestReceivedMs = nowMs
    }
    if (this.#numbers.count > RECEIVED_RANGES_MAX) {
      this.#numbers.keepHighest(RECEIVED_RANGES_MAX)
      this.#floor = this.#numbers.firstOf(0)
    }
    if (asksForAck) this.#owe(isInOrder, nowMs)
    return isLargest
  }

  /** @returns whether an ACK frame should go into a packet that is sent anyway (or, if due, into one of its own). */
  isAckWanted(nowMs: number, hasOtherFrames: boolean): boolean {
    if (this.#numbers.isEmpty) return false
    return this.#ackDueMs <= nowMs || (hasOtherFrames && this.#waitingCount > 0)
  }

  /** Writes an ACK frame: nothing is owed afterwards. @returns what its packet carries, or null when it did not fit. */
  writeAck(writer: Writer, nowMs: number): Carried | null {
    const heldMs = Math.max(0, nowMs - this.#largestReceivedMs)
    const delay = this.#maxDelayMs === 0 ? 0 : Math.floor(heldMs * DELAY_UNITS_PER_MS)
    if (!writeAckFrame(writer, this.#numbers, delay)) return null
    this.#waitingCount = 0
    this.#ackDueMs = Number.POSITIVE_INFINITY
    const toldUpTo = this.#largest
    return { acknowledged: () => this.#forgetBelow(toldUpTo), lost: () => {} }
  }

  #owe(isInOrder: boolean, nowMs: number): void {
    this.#waitingCount++
    const isDue = !isInOrder || this.#waitingCount >= PACKETS_PER_ACK
    this.#ackDueMs = Math.min(this.#ackDueMs, isDue ? nowMs : nowMs + this.#maxDelayMs)
  }

  /** The peer knows of everything up to `number`. The largest stays, so that there is always something to say. */
  #forgetBelow(number: number): void {
    this.#floor = Math.max(this.#floor, number)
    this.#numbers.dropBelow(this.#floor)
  }
}
