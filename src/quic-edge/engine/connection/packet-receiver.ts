/**
 * Takes datagrams apart: packets, their keys, their numbers (RFC 9000 sections 12 and 17, RFC 9001 section 5). Pure but for
 * opening what is sealed.
 *
 * What does not authenticate leaves no trace but a count: anybody can send it. What does is the peer's, and must be right.
 */
import { type PacketKeys, PROTECTED_SIZE_MIN, unprotectHeader } from '../crypto/packet-keys.ts'
import { LEVEL } from '../tls/api.ts'
import {
  expandPacketNumber,
  hasFixedBit,
  hasReservedBits,
  INITIAL_DATAGRAM_SIZE_MIN,
  isLongHeader,
  keyPhaseOf,
  type LongHeader,
  PACKET_TYPE,
  readLongHeader,
  truncatedPacketNumber,
} from '../wire/packet-header.ts'
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import { STATELESS_RESET_SIZE_MIN } from '../wire/transport-parameters.ts'
import { areEqualBytes } from './bytes.ts'
import type { PhaseKeys } from './key-phases.ts'
import { LOCAL_ID_SIZE } from './local-ids.ts'
import type { PacketSpace } from './packet-space.ts'
import type { ConnectionParts } from './parts.ts'

/** One packet, opened. */
export interface OpenedPacket {
  readonly space: PacketSpace
  readonly number: number
  readonly payloadView: Uint8Array
  readonly destinationIdView: Uint8Array
  /** Of a long header. */
  readonly sourceIdView: Uint8Array | undefined
}

/** What the receiver tells the connection. */
export interface PacketHost {
  /** A packet of the peer's that was not seen before. @throws QuicError for what it says. */
  packetOpened(packet: OpenedPacket): void
  /** The peer has lost the connection. */
  statelessReset(): void
}

/** Where a packet lies in its datagram. */
interface PacketPlace {
  readonly datagram: Uint8Array
  readonly start: number
  readonly packetNumberAt: number
  readonly end: number
}

export class PacketReceiver {
  readonly #parts: ConnectionParts
  readonly #host: PacketHost
  /** Over all keys (RFC 9001 section 6.6). */
  #failureCount = 0

  constructor(parts: ConnectionParts, host: PacketHost) {
    this.#parts = parts
    this.#host = host
  }

  /** @param datagram is altered. @throws QuicError when an authenticated packet breaks a rule. */
  receive(datagram: Uint8Array, nowMs: number): void {
    let firstIdView: Uint8Array | undefined
    let start = 0
    while (start < datagram.length) {
      if (!isLongHeader(datagram[start] ?? 0)) {
        this.#short(datagram, start, firstIdView, nowMs)
        return
      }
      const header = readLongHeader(datagram, start)
      if (header === undefined || header.type === PACKET_TYPE.retry) return
      firstIdView ??= header.destinationIdView
      // Packets for others do not travel in one datagram with ours.
      if (areEqualBytes(firstIdView, header.destinationIdView)) this.#long(datagram, start, header)
      start = header.end
    }
  }

  #long(datagram: Uint8Array, start: number, header: LongHeader): void {
    const space = this.#spaceOf(header, datagram.length)
    const keys = space?.receiveKeys
    const { packetNumberAt, end } = header
    if (space === undefined || keys === undefined || end - packetNumberAt < PROTECTED_SIZE_MIN) return
    const place: PacketPlace = { datagram, start, packetNumberAt, end }
    const numberSize = unprotectHeader(keys, datagram, start, packetNumberAt)
    const number = numberOf(space, place, numberSize)
    const payloadView = this.#open(keys, place, number, numberSize)
    if (payloadView === undefined || this.#isDuplicate(space, number)) return
    const { destinationIdView, sourceIdView } = header
    this.#host.packetOpened({ space, number, payloadView, destinationIdView, sourceIdView })
  }

  #spaceOf(header: LongHeader, datagramSize: number): PacketSpace | undefined {
    const [initial, handshake] = this.#parts.spaces
    if (header.type === PACKET_TYPE.handshake) return handshake
    if (header.type !== PACKET_TYPE.initial) return undefined
    return this.#parts.role === 'server' && datagramSize < INITIAL_DATAGRAM_SIZE_MIN ? undefined : initial
  }

  #short(datagram: Uint8Array, start: number, firstIdView: Uint8Array | undefined, nowMs: number): void {
    const packetNumberAt = start + 1 + LOCAL_ID_SIZE
    const place: PacketPlace = { datagram, start, packetNumberAt, end: datagram.length }
    const destinationIdView = datagram.subarray(start + 1, packetNumberAt)
    if (firstIdView !== undefined && !areEqualBytes(firstIdView, destinationIdView)) return
    if (this.#openShort(place, destinationIdView, nowMs)) return
    // Looked at only when nothing else explains the packet, and it did not travel behind another.
    if (start > 0 || datagram.length < STATELESS_RESET_SIZE_MIN) return
    if (this.#parts.peerIds.isStatelessReset(datagram)) this.#host.statelessReset()
  }

  /** @returns whether the packet was the peer's, or could not be told from one. */
  #openShort(place: PacketPlace, destinationIdView: Uint8Array, nowMs: number): boolean {
    const { datagram, start, packetNumberAt, end } = place
    const { spaces, handshake, keyPhases, recovery } = this.#parts
    const space = spaces[LEVEL.application]
    const current = space.receiveKeys
    // Before TLS is done, nobody has shown that the peer is the one whose keys these are.
    if (current === undefined || !handshake.isComplete) return true
    if (!hasFixedBit(datagram[start] ?? 0) || end - packetNumberAt < PROTECTED_SIZE_MIN) return false
    const numberSize = unprotectHeader(current, datagram, start, packetNumberAt)
    const number = numberOf(space, place, numberSize)
    const used: PhaseKeys | undefined = keyPhases.keysFor(keyPhaseOf(datagram[start] ?? 0), number)
    if (used === undefined) return false
    const payloadView = this.#open(used.keys, place, number, numberSize)
    if (payloadView === undefined) return false
    if (this.#isDuplicate(space, number)) return true
    keyPhases.opened(used, number, nowMs, recovery.probeTimeoutMs)
    this.#host.packetOpened({ space, number, payloadView, destinationIdView, sourceIdView: undefined })
    return true
  }

  #open(keys: PacketKeys, place: PacketPlace, number: number, numberSize: number): Uint8Array | undefined {
    const { datagram, start, packetNumberAt, end } = place
    const payloadAt = packetNumberAt + numberSize
    const payloadView = keys.open(number, datagram.subarray(start, payloadAt), datagram.subarray(payloadAt, end))
    if (payloadView === undefined) {
      this.#parts.counters.rejectedPackets++
      if (++this.#failureCount <= keys.suite.openFailureLimit) return undefined
      throw new QuicError(TRANSPORT_ERROR.aeadLimitReached, 'too many packets that do not authenticate')
    }
    if (hasReservedBits(datagram[start] ?? 0)) throw violation('reserved bits are set')
    if (payloadView.length === 0) throw violation('packet without frames')
    return payloadView
  }

  #isDuplicate(space: PacketSpace, number: number): boolean {
    const isKnown = space.received.isKnown(number)
    if (isKnown) this.#parts.counters.duplicatePackets++
    return isKnown
  }
}

function numberOf(space: PacketSpace, place: PacketPlace, size: number): number {
  return expandPacketNumber(
    truncatedPacketNumber(place.datagram, place.packetNumberAt, size),
    size,
    space.received.largest,
  )
}

function violation(reason: string): QuicError {
  return new QuicError(TRANSPORT_ERROR.protocolViolation, reason)
}
