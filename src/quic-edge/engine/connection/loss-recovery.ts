/**
 * Acknowledgements, losses and probes over the three packet number spaces (RFC 9002). Pure.
 *
 * It decides which packets arrived or are lost, tells those who had something in them, and when to ask the peer for a sign
 * of life. It writes nothing: a probe is a number of packets that a space may send whatever the congestion window says.
 */
import { LEVEL } from '../tls/api.ts'
import { FRAME } from '../wire/frame-type.ts'
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import { TRANSPORT_PARAMETER_DEFAULTS } from '../wire/transport-parameters.ts'
import type { AckFrame } from './ack-frame.ts'
import type { Role } from './api.ts'
import { NewReno } from './new-reno.ts'
import type { PacketSpace } from './packet-space.ts'
import { GRANULARITY_MS, RoundTrip } from './round-trip.ts'
import { type Carried, repeat, type SentPacket } from './sent-packets.ts'

/** A packet is lost when one sent that many later arrived. */
const REORDERING_PACKETS = 3
/** … or when it is out for longer than the slowest round trip and an eighth. */
const REORDERING_TIME = 9 / 8
/** Probe timeouts without any answer after which the window starts over. */
const PERSISTENT_TIMEOUTS = 3
const PACKETS_PER_PROBE = 2
/** Timeouts double until then. */
const BACKOFF_MAX_EXPONENT = 10
/** Packets of one space that are remembered: where small ones fill the window, nothing more is sent until some arrive. */
export const SENT_PACKETS_MAX = 8192

/** What recovery must know of the handshake. */
export interface HandshakeProgress {
  readonly isComplete: boolean
  /** The peer completed it too: Handshake packets are over. */
  readonly isConfirmed: boolean
  /** The peer is known to have accepted our address: it cannot wait for bytes of ours in order to answer. */
  readonly isAddressProven: boolean
}

/** Initial, Handshake, application data: by level. */
export type PacketSpaces = readonly [PacketSpace, PacketSpace, PacketSpace]

export class LossRecovery {
  readonly roundTrip = new RoundTrip()
  readonly congestion: NewReno
  peerMaxAckDelayMs = TRANSPORT_PARAMETER_DEFAULTS.maxAckDelayMs
  peerAckDelayExponent = TRANSPORT_PARAMETER_DEFAULTS.ackDelayExponent
  lostPacketCount = 0
  probeTimeoutCount = 0
  readonly #role: Role
  readonly #spaces: PacketSpaces
  readonly #handshake: HandshakeProgress
  /** Probe timeouts since the last answer. */
  #silentTimeouts = 0
  #lastSentMs = 0

  constructor(role: Role, spaces: PacketSpaces, handshake: HandshakeProgress, datagramSize: number) {
    this.#role = role
    this.#spaces = spaces
    this.#handshake = handshake
    this.congestion = new NewReno(datagramSize)
  }

  /** How long to wait for an answer to a packet of application data: also the measure of other timeouts. */
  get probeTimeoutMs(): number {
    return this.roundTrip.patienceMs + this.peerMaxAckDelayMs
  }

  /** New data may be sent in this space, as far as congestion and memory are concerned. */
  mayFill(space: PacketSpace): boolean {
    return this.congestion.hasRoom && this.canRemember(space)
  }

  /** One more packet can be kept until it is acknowledged: a peer may never do that. */
  canRemember(space: PacketSpace): boolean {
    return space.sent.count < SENT_PACKETS_MAX
  }

  /** A packet that asks for an acknowledgement went out. */
  packetSent(space: PacketSpace, number: number, size: number, carried: readonly Carried[], nowMs: number): void {
    space.sent.add(number, nowMs, size, carried)
    const { congestion } = this
    if (congestion.bytesInFlight === 0 && nowMs - this.#lastSentMs > this.probeTimeoutMs) congestion.restart()
    congestion.sent(size)
    this.#lastSentMs = nowMs
  }

  /** @throws QuicError PROTOCOL_VIOLATION when a packet is acknowledged that was never sent. */
  acknowledged(space: PacketSpace, ack: AckFrame, nowMs: number): void {
    for (let index = 0; index < ack.bounds.length; index += 2) {
      if (space.wasSent(ack.bounds[index] ?? 0, ack.bounds[index + 1] ?? 0)) continue
      throw new QuicError(TRANSPORT_ERROR.protocolViolation, 'acknowledged a packet that was not sent', FRAME.ack)
    }
    // A packet of ours that only acknowledged is not kept, and overtakes others all the same. So what is kept lies behind the
    // largest but for a few packets, and an acknowledgement that comes again does not look through all of it.
    const isLargest = ack.largest > space.largestAcknowledged
    if (isLargest) space.largestAcknowledged = ack.largest
    const arrived = takeAcknowledged(space, ack)
    const latest = arrived.at(-1)
    if (latest === undefined && !isLargest) return
    if (latest?.number === ack.largest) this.#measure(space, latest, ack, nowMs)
    const inFlightBytes = this.congestion.bytesInFlight
    for (const packet of arrived) this.congestion.acknowledged(packet.size, packet.sentMs, inFlightBytes)
    // Our own account is in order first: the owners may call back into the connection.
    for (const packet of arrived) for (const carried of packet.carried) carried.acknowledged()
    this.#detectLosses(space, nowMs)
    if (this.#handshake.isAddressProven) this.#silentTimeouts = 0
  }

  /** @param isBlocked nothing may be sent before the peer's address is proven: a probe could not go out. */
  deadlineMs(isBlocked: boolean): number {
    const [initial, handshake, application] = this.#spaces
    const lossMs = Math.min(initial.lossMs, handshake.lossMs, application.lossMs)
    if (lossMs !== Number.POSITIVE_INFINITY) return lossMs
    return isBlocked ? Number.POSITIVE_INFINITY : this.#probeMs()
  }

  /** Does what is due at `nowMs`, if anything is. */
  timeout(nowMs: number, isBlocked: boolean): void {
    if (nowMs < this.deadlineMs(isBlocked)) return
    const doubtful = this.#spaces.filter((space) => space.lossMs <= nowMs)
    for (const space of doubtful) this.#detectLosses(space, nowMs)
    if (doubtful.length === 0) this.#probe()
  }

  /** The keys of the space are gone: its packets are neither lost nor acknowledged. */
  discard(space: PacketSpace): void {
    if (space.isDiscarded) return
    for (const packet of space.sent) this.congestion.discarded(packet.size)
    space.discard()
    this.#silentTimeouts = 0
  }

  /** The peer is heard from another address: what went to the old one may be lost, and need not wait for a long timeout. */
  peerMoved(): void {
    this.#silentTimeouts = 0
  }

  /** Another host: nothing is known of the way to it. */
  pathChanged(): void {
    this.roundTrip.reset()
    this.congestion.reset()
  }

  #measure(space: PacketSpace, packet: SentPacket, ack: AckFrame, nowMs: number): void {
    const toldMs = space.level === LEVEL.application ? (ack.encodedDelay * 2 ** this.peerAckDelayExponent) / 1000 : 0
    // Until the handshake is confirmed, the peer may have been without our keys, and no promise binds it.
    const delayMs = this.#handshake.isConfirmed ? Math.min(toldMs, this.peerMaxAckDelayMs) : toldMs
    this.roundTrip.sample(nowMs - packet.sentMs, delayMs)
  }

  #detectLosses(space: PacketSpace, nowMs: number): void {
    space.lossMs = Number.POSITIVE_INFINITY
    const delayMs = Math.max(this.roundTrip.slowestMs * REORDERING_TIME, GRANULARITY_MS)
    const lost: SentPacket[] = []
    for (const packet of space.sent) {
      if (packet.number > space.largestAcknowledged) break
      // One sum for both questions: rounded in two ways, a timer could be due and find nothing to do, for ever.
      const lossMs = packet.sentMs + delayMs
      const isOvertaken = space.largestAcknowledged - packet.number >= REORDERING_PACKETS
      if (!isOvertaken && lossMs > nowMs) {
        space.lossMs = lossMs
        break
      }
      space.sent.remove(packet.number)
      lost.push(packet)
    }
    if (lost.length > 0) this.#lose(lost, nowMs)
  }

  #lose(lost: readonly SentPacket[], nowMs: number): void {
    this.lostPacketCount += lost.length
    for (const packet of lost) {
      this.congestion.lost(packet.size)
      repeat(packet)
    }
    this.congestion.congested(lost.at(-1)?.sentMs ?? 0, nowMs)
    if (this.#isPersistent(lost)) this.congestion.persistentlyCongested()
  }

  /** Neighbouring packets, none of them acknowledged, over more than a few probe timeouts. */
  #isPersistent(lost: readonly SentPacket[]): boolean {
    if (!this.roundTrip.hasSample) return false
    const limitMs = this.probeTimeoutMs * PERSISTENT_TIMEOUTS
    let start = lost[0]
    let previous = start
    for (const packet of lost) {
      if (previous !== undefined && packet.ordinal > previous.ordinal + 1) start = packet
      if (start !== undefined && packet.sentMs - start.sentMs > limitMs) return true
      previous = packet
    }
    return false
  }

  /** When the next probe is due. */
  #probeMs(): number {
    const backoff = 2 ** Math.min(this.#silentTimeouts, BACKOFF_MAX_EXPONENT)
    const patienceMs = this.roundTrip.patienceMs
    const [initial, handshake, application] = this.#spaces
    let dueMs = Number.POSITIVE_INFINITY
    if (initial.sent.count > 0) dueMs = initial.sent.lastSentMs + patienceMs * backoff
    if (handshake.sent.count > 0) dueMs = Math.min(dueMs, handshake.sent.lastSentMs + patienceMs * backoff)
    // Before, the peer may have no keys to answer with; what it needs for them comes first.
    if (application.sent.count > 0 && (this.#handshake.isConfirmed || handshake.sent.count === 0)) {
      dueMs = Math.min(dueMs, application.sent.lastSentMs + this.probeTimeoutMs * backoff)
    }
    const mayPeerWait = dueMs === Number.POSITIVE_INFINITY && !this.#handshake.isAddressProven
    return mayPeerWait ? this.#lastSentMs + patienceMs * backoff : dueMs
  }

  #probe(): void {
    this.#silentTimeouts++
    this.probeTimeoutCount++
    const [initial, handshake, application] = this.#spaces
    const waiting = this.#spaces.filter((space) => space.sent.count > 0)
    for (const space of waiting) {
      space.probeCount = PACKETS_PER_PROBE
      repeatOldest(space)
    }
    if (this.#role === 'server') return
    // The server may wait for our bytes before it may send more of its own.
    if (waiting.length === 0) (handshake.canSend ? handshake : initial).probeCount = 1
    // It may have confirmed the handshake, and answer to an address that is no longer ours: only application data shows it
    // the new one.
    if (this.#handshake.isComplete && !this.#handshake.isConfirmed) application.probeCount ||= 1
  }
}

/** Takes out what the frame acknowledges, oldest first: one pass over what is kept, whatever ranges the peer names. */
function takeAcknowledged(space: PacketSpace, ack: AckFrame): SentPacket[] {
  const arrived: SentPacket[] = []
  let range = ack.bounds.length - 2
  for (const packet of space.sent) {
    while (range >= 0 && (ack.bounds[range + 1] ?? 0) < packet.number) range -= 2
    if (range < 0) break
    if (packet.number < (ack.bounds[range] ?? 0)) continue
    space.sent.remove(packet.number)
    arrived.push(packet)
  }
  return arrived
}

/** What the probes are to carry. Packets that were repeated before have their content in later ones. */
function repeatOldest(space: PacketSpace): void {
  let count = 0
  for (const packet of space.sent) {
    if (packet.isRepeated) continue
    repeat(packet)
    if (++count === PACKETS_PER_PROBE) return
  }
}
