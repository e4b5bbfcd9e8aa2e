/**
 * One packet number space (RFC 9000 section 12.3): Initial, Handshake or application data. Pure but for the keys it holds.
 *
 * A number is given once. When the space is discarded, its keys are gone and nothing is sent or awaited in it any more.
 */
import { assert } from '../../../assert.ts'
import type { PacketKeys } from '../crypto/packet-keys.ts'
import { LEVEL, type Level } from '../tls/api.ts'
import { packetNumberSizeFor } from '../wire/packet-header.ts'
import { TRANSPORT_ERROR } from '../wire/quic-error.ts'
import { GapBudget, ReceiveBuffer } from './receive-buffer.ts'
import { ReceivedPackets } from './received-packets.ts'
import { SendBuffer } from './send-buffer.ts'
import { SentPackets } from './sent-packets.ts'

/** Bytes of handshake messages that a peer may send ahead of a gap, or of what TLS could take. */
export const CRYPTO_BUFFER_SIZE = 64 * 1024
/** Some clients shuffle their hello into many small pieces on purpose. */
export const CRYPTO_GAPS_MAX = 256

/** What a discarded space has to send. */
const NOTHING = new SendBuffer()

/** One number in so many packets, at random, is left out: whoever acknowledges it acknowledges what it did not get. */
const SKIP_DISTANCE_MIN = 16

export class PacketSpace {
  readonly level: Level
  readonly received: ReceivedPackets
  readonly sent = new SentPackets()
  cryptoOut = new SendBuffer()
  readonly cryptoIn = new ReceiveBuffer(new GapBudget(CRYPTO_GAPS_MAX, TRANSPORT_ERROR.cryptoBufferExceeded))
  /** Of application data the keys of the current phase; `KeyPhases` has the rest. */
  sendKeys: PacketKeys | undefined
  receiveKeys: PacketKeys | undefined
  largestAcknowledged = -1
  /** When the oldest packet counts as lost without further news; `Infinity` when none is in doubt. */
  lossMs = Number.POSITIVE_INFINITY
  /** Packets that must go out whatever the congestion window says, because a probe timeout ran out. */
  probeCount = 0
  readonly #random: ((size: number) => Uint8Array) | undefined
  #nextNumber = 0
  #skipAt = Number.POSITIVE_INFINITY
  #skippedNumber = -1
  #isDiscarded = false

  /** @param random chooses the numbers that are left out; without it none are. */
  constructor(level: Level, maxAckDelayMs: number, random?: (size: number) => Uint8Array) {
    this.level = level
    this.received = new ReceivedPackets(level === LEVEL.application ? maxAckDelayMs : 0)
    this.#random = random
    this.#planSkip()
  }

  get isDiscarded(): boolean {
    return this.#isDiscarded
  }

  get canSend(): boolean {
    return this.sendKeys !== undefined
  }

  get nextNumber(): number {
    return this.#nextNumber
  }

  /** Bytes that the next packet's number takes on the wire. */
  get nextNumberSize(): number {
    return packetNumberSizeFor(this.#nextNumber, this.largestAcknowledged)
  }

  takeNumber(): number {
    assert(!this.#isDiscarded, 'a discarded packet number space sends nothing')
    if (this.#nextNumber === this.#skipAt) {
      this.#skippedNumber = this.#nextNumber++
      this.#planSkip()
    }
    return this.#nextNumber++
  }

  /** Whether packets `first` to `last` can all have arrived (RFC 9000 section 21.4): they were given, and none left out. */
  wasSent(first: number, last: number): boolean {
    return last < this.#nextNumber && (this.#skippedNumber < first || this.#skippedNumber > last)
  }

  discard(): void {
    this.#isDiscarded = true
    this.sendKeys = undefined
    this.receiveKeys = undefined
    this.sent.clear()
    this.cryptoOut = NOTHING
    this.cryptoIn.skip(0, false)
    this.lossMs = Number.POSITIVE_INFINITY
    this.probeCount = 0
  }

  #planSkip(): void {
    const [distance] = this.#random?.(1) ?? []
    if (distance !== undefined) this.#skipAt = this.#nextNumber + SKIP_DISTANCE_MIN + distance
  }
}
