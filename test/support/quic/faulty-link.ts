/** A network path that loses, delays, reorders, repeats and damages datagrams, all by one seed. */
import type { SeededRandom } from '../seeded-random.ts'
import type { VirtualTime } from './virtual-time.ts'

export interface LinkFaults {
  /** Chances per datagram. */
  readonly loss: number
  readonly repetition: number
  readonly damage: number
  readonly delayMs: number
  /** Added to the delay, at random: more than the distance of two datagrams reorders them. */
  readonly jitterMs: number
}

const REPETITION_DELAY_MAX_MS = 30

export class FaultyLink {
  readonly #time: VirtualTime
  readonly #random: SeededRandom
  readonly #faults: LinkFaults
  sentCount = 0
  lostCount = 0

  constructor(time: VirtualTime, random: SeededRandom, faults: LinkFaults) {
    this.#time = time
    this.#random = random
    this.#faults = faults
  }

  send(bytes: Uint8Array, arrive: (bytes: Uint8Array) => void): void {
    const { loss, repetition, delayMs, jitterMs } = this.#faults
    this.sentCount++
    if (this.#random.chance(loss)) {
      this.lostCount++
      return
    }
    const takesMs = delayMs + this.#random.next() * jitterMs
    this.#time.after(takesMs, () => arrive(this.#copy(bytes)))
    if (!this.#random.chance(repetition)) return
    this.#time.after(takesMs + this.#random.next() * REPETITION_DELAY_MAX_MS, () => arrive(this.#copy(bytes)))
  }

  #copy(bytes: Uint8Array): Uint8Array {
    const copy = new Uint8Array(bytes)
    if (this.#random.chance(this.#faults.damage)) {
      const at = this.#random.below(copy.length)
      copy[at] = (copy[at] ?? 0) ^ (1 << this.#random.below(8))
    }
    return copy
  }
}
