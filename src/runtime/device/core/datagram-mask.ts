/**
 * Which datagrams of one alias were taken. A late one is taken if it is among the newest 64 numbers and was not seen: one
 * bit each, the highest number in bit 0. Pure.
 */
import { DATAGRAM_MASK_BITS } from '../../../sdk/wire/edge/index.ts'

const ALL_BITS = (1n << BigInt(DATAGRAM_MASK_BITS)) - 1n

export class DatagramMask {
  #highest = 0
  #seen = 0n
  #takenCount = 0
  #reportedCount = 0
  #reportedHighest = 0

  /** Numbers begin at 1. */
  isNew(number: number): boolean {
    if (number < 1) return false
    const distance = this.#highest - number
    return distance < 0 || (distance < DATAGRAM_MASK_BITS && ((this.#seen >> BigInt(distance)) & 1n) === 0n)
  }

  /** A new one was stored. */
  take(number: number): void {
    if (number > this.#highest) {
      const distance = number - this.#highest
      this.#seen = distance >= DATAGRAM_MASK_BITS ? 1n : ((this.#seen << BigInt(distance)) & ALL_BITS) | 1n
      this.#highest = number
    } else this.#seen |= 1n << BigInt(this.#highest - number)
    this.#takenCount++
  }

  /** @returns counts since the session began, or undefined when nothing changed since the last report. */
  report(): { taken: number; highest: number; missing: number } | undefined {
    if (this.#takenCount === this.#reportedCount && this.#highest === this.#reportedHighest) return undefined
    this.#reportedCount = this.#takenCount
    this.#reportedHighest = this.#highest
    return { taken: this.#takenCount, highest: this.#highest, missing: this.#highest - this.#takenCount }
  }
}
