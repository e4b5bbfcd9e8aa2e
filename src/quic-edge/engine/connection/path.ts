/**
 * One network path to the peer: how much came and went, and whether the peer has shown that it can read there (RFC 9000
 * section 8). Pure.
 */

import type { PeerAddress } from './api.ts'
import { areEqualBytes } from './bytes.ts'

/** To an address that is not proven we send no more than so many times what came from there. */
const AMPLIFICATION = 3
/** With less room no packet is begun: the longest header, an acknowledgement and the tag fit. */
export const DATAGRAM_ROOM_MIN = 100
/** Random bytes of a PATH_CHALLENGE, which its answer repeats. */
export const CHALLENGE_SIZE = 8

export class Path {
  readonly peer: PeerAddress
  #isValidated: boolean
  #receivedBytes = 0
  #sentBytes = 0
  #challengeBytes: Uint8Array | undefined

  constructor(peer: PeerAddress, isValidated: boolean) {
    this.peer = peer
    this.#isValidated = isValidated
  }

  get isValidated(): boolean {
    return this.#isValidated
  }

  get receivedBytes(): number {
    return this.#receivedBytes
  }

  get sentBytes(): number {
    return this.#sentBytes
  }

  /** Bytes that may be sent to it now. */
  get allowance(): number {
    return this.#isValidated ? Number.POSITIVE_INFINITY : AMPLIFICATION * this.#receivedBytes - this.#sentBytes
  }

  get isBlocked(): boolean {
    return this.allowance < DATAGRAM_ROOM_MIN
  }

  /** What a PATH_CHALLENGE to it says, while it is not answered. */
  get challengeBytes(): Uint8Array | undefined {
    return this.#challengeBytes
  }

  received(sizeBytes: number): void {
    this.#receivedBytes += sizeBytes
  }

  sent(sizeBytes: number): void {
    this.#sentBytes += sizeBytes
  }

  validate(): void {
    this.#isValidated = true
  }

  challenge(randomBytes: Uint8Array): void {
    this.#challengeBytes = randomBytes
  }

  giveUpChallenge(): void {
    this.#challengeBytes = undefined
  }

  /** @returns whether the data of a PATH_RESPONSE answers the challenge to this path. */
  answered(dataView: Uint8Array): boolean {
    const isAnswer = this.#challengeBytes !== undefined && areEqualBytes(this.#challengeBytes, dataView)
    if (isAnswer) {
      this.#isValidated = true
      this.#challengeBytes = undefined
    }
    return isAnswer
  }
}
