/**
 * Keys of application data and their updates (RFC 9001 section 6). Pure but for the keys it derives.
 *
 * Both directions change together: the phase bit of our packets says which keys sealed them, and so does that of the
 * peer's. After an update the keys before it stay for a while, for packets that were under way.
 */
import type { PacketKeys } from '../crypto/packet-keys.ts'
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import type { PacketSpace } from './packet-space.ts'

/** Part of the packets that one key may seal after which we take another. */
const UPDATE_AFTER_PART = 0.9
/** How many probe timeouts packets of the phase before may come late. */
const OLD_KEYS_TIMEOUTS = 3

/** The keys that a packet seems to be sealed with. */
export interface PhaseKeys {
  readonly keys: PacketKeys
  /** Whether opening with them would be the first sign of an update by the peer. */
  readonly isNext: boolean
}

export class KeyPhases {
  readonly #space: PacketSpace
  #phase: 0 | 1 = 0
  #next: PacketKeys | undefined
  #old: PacketKeys | undefined
  #oldUntilMs = Number.POSITIVE_INFINITY
  /** Lowest number of a packet that came in the current phase; `Infinity` after an update of ours that the peer has not followed. */
  #firstReceived = 0
  /** Of the packets sent in the current phase; one of them must be acknowledged before the next update. */
  #firstSent = 0
  updateCount = 0

  constructor(space: PacketSpace) {
    this.#space = space
  }

  /** Bit of the packets that we send. */
  get phase(): 0 | 1 {
    return this.#phase
  }

  /**
   * The handshake must be complete. It need not be confirmed: a server that is done may update before its client hears so.
   *
   * @returns undefined for a packet whose keys are gone.
   */
  keysFor(phase: 0 | 1, packetNumber: number): PhaseKeys | undefined {
    const current = this.#space.receiveKeys
    if (current === undefined) return undefined
    if (phase === this.#phase) return { keys: current, isNext: false }
    // The bit alone cannot tell the phase before from the one after; the number can.
    if (packetNumber < this.#firstReceived)
      return this.#old === undefined ? undefined : { keys: this.#old, isNext: false }
    this.#next ??= current.next()
    return { keys: this.#next, isNext: true }
  }

  /** A packet was opened with `keysFor` it. */
  opened(used: PhaseKeys, packetNumber: number, nowMs: number, probeTimeoutMs: number): void {
    if (used.isNext) this.#rotate(packetNumber)
    else if (used.keys !== this.#space.receiveKeys || packetNumber >= this.#firstReceived) return
    else this.#firstReceived = packetNumber
    if (this.#oldUntilMs === Number.POSITIVE_INFINITY) this.#oldUntilMs = nowMs + OLD_KEYS_TIMEOUTS * probeTimeoutMs
  }

  /** We update. @returns false when the peer has not acknowledged a packet of the current phase yet. */
  update(): boolean {
    if (this.#space.largestAcknowledged < this.#firstSent) return false
    this.#rotate(Number.POSITIVE_INFINITY)
    return true
  }

  /**
   * Keeps to what a key may be used for: updates in time.
   *
   * @throws QuicError AEAD_LIMIT_REACHED when the peer has not let us.
   */
  keepWithinLimit(mayUpdate: boolean): void {
    const keys = this.#space.sendKeys
    if (keys === undefined || keys.sealedCount < keys.suite.sealLimit * UPDATE_AFTER_PART) return
    if (mayUpdate && this.update()) return
    if (keys.sealedCount >= keys.suite.sealLimit) throw new QuicError(TRANSPORT_ERROR.aeadLimitReached, 'keys used up')
  }

  dropOld(nowMs: number): void {
    if (nowMs < this.#oldUntilMs) return
    this.#old = undefined
    this.#oldUntilMs = Number.POSITIVE_INFINITY
  }

  #rotate(firstReceived: number): void {
    const space = this.#space
    this.#old = space.receiveKeys
    this.#oldUntilMs = Number.POSITIVE_INFINITY
    space.receiveKeys = this.#next ?? space.receiveKeys?.next()
    this.#next = undefined
    space.sendKeys = space.sendKeys?.next()
    this.#firstReceived = firstReceived
    this.#firstSent = space.nextNumber
    this.#phase = this.#phase === 0 ? 1 : 0
    this.updateCount++
  }
}
