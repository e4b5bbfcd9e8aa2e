/**
 * Puts together what goes out next: which packet number spaces have something to say, which frames go into their packets,
 * and several packets into one datagram (RFC 9000 section 12.2). Pure but for sealing.
 *
 * Order within a packet: acknowledgements, handshake bytes, what keeps the connection going, data. Acknowledgements,
 * probes and the handshake do not wait for the congestion window: the window could then never open again.
 */
import { LEVEL } from '../tls/api.ts'
import { FRAME } from '../wire/frame-type.ts'
import { INITIAL_DATAGRAM_SIZE_MIN } from '../wire/packet-header.ts'
import { CLOSE_FRAME_SIZE_MAX } from './closing.ts'
import { PacketBuilder } from './packet-builder.ts'
import type { PacketSpace } from './packet-space.ts'
import type { ConnectionParts } from './parts.ts'
import { DATAGRAM_ROOM_MIN, type Path } from './path.ts'
import type { PathFrame } from './paths.ts'
import type { Carried } from './sent-packets.ts'

/** Type, offset and size of a CRYPTO frame, and a byte in it. */
const CRYPTO_FRAME_MIN_SIZE = 1 + 8 + 2 + 1
/** Larger ones are not sent: no path is asked what it takes. */
export const DATAGRAM_SIZE_MAX = 1500

/** The datagram under construction: copied out before the next one begins. */
const scratch = new Uint8Array(DATAGRAM_SIZE_MAX)

export interface BuilderOptions {
  /** Source id of long headers. */
  readonly ownIdBytes: Uint8Array
  /** Token of a client's Initial packets. */
  readonly tokenBytes: Uint8Array
  readonly datagramSize: number
}

export class DatagramBuilder {
  readonly #parts: ConnectionParts
  readonly #options: BuilderOptions
  #datagramSize: number

  constructor(parts: ConnectionParts, options: BuilderOptions) {
    this.#parts = parts
    this.#options = options
    this.#datagramSize = Math.min(options.datagramSize, DATAGRAM_SIZE_MAX)
  }

  limitDatagramSize(sizeBytes: number): void {
    this.#datagramSize = Math.min(this.#datagramSize, sizeBytes)
  }

  /** @returns the next datagram for the path in use, or null when there is nothing to send, or no leave to. */
  next(nowMs: number): Uint8Array | null {
    const room = Math.min(this.#datagramSize, this.#parts.paths.current.allowance)
    if (room < DATAGRAM_ROOM_MIN) return null
    const packets: PacketBuilder[] = []
    for (const space of this.#parts.spaces) {
      if (!this.#wantsToSend(space, nowMs)) continue
      const start = packets.at(-1)?.end ?? 0
      if (start > 0 && room - start < DATAGRAM_ROOM_MIN) break
      const packet = this.#begin(space, start, room)
      this.#fill(packet, nowMs)
      if (!packet.isEmpty) packets.push(packet)
    }
    return packets.length === 0 ? null : this.#finish(packets, room, nowMs)
  }

  /** A PATH_CHALLENGE or PATH_RESPONSE in a datagram of its own, as large as every path must take. */
  pathDatagram(type: number, frame: PathFrame, nowMs: number): Uint8Array | null {
    const space = this.#parts.spaces[LEVEL.application]
    const room = Math.min(INITIAL_DATAGRAM_SIZE_MIN, frame.path.allowance)
    if (!space.canSend || room < DATAGRAM_ROOM_MIN) return null
    const packet = this.#begin(space, 0, room)
    packet.frames.u8(type)
    packet.frames.bytes(frame.dataBytes)
    packet.asksForAck = true
    packet.carried.push(new CarriedPathFrame(this.#parts, type === FRAME.pathChallenge ? frame.path : undefined))
    packet.padTo(room)
    this.#seal(packet, nowMs)
    return scratch.slice(0, room)
  }

  /** CONNECTION_CLOSE at every level at which the peer may be able to read. */
  closeDatagram(): Uint8Array | null {
    const { spaces, paths, handshake, closing, role, counters } = this.#parts
    const room = Math.min(INITIAL_DATAGRAM_SIZE_MIN, paths.current.allowance)
    let end = 0
    let hasInitial = false
    const packets: PacketBuilder[] = []
    for (const space of spaces) {
      const isReadable = space.level !== LEVEL.application || role === 'server' || handshake.isComplete
      if (!space.canSend || !isReadable || room - end < CLOSE_FRAME_SIZE_MAX + DATAGRAM_ROOM_MIN) continue
      const packet = this.#begin(space, end, room)
      closing.writeFrame(packet.frames, space.level)
      packets.push(packet)
      end = packet.end
      hasInitial ||= space.level === LEVEL.initial
    }
    if (hasInitial) packets.at(-1)?.padTo(room)
    for (const packet of packets) packet.seal()
    counters.sentPackets += packets.length
    return packets.length === 0 ? null : scratch.slice(0, packets.at(-1)?.end ?? 0)
  }

  #wantsToSend(space: PacketSpace, nowMs: number): boolean {
    if (!space.canSend) return false
    if (space.level !== LEVEL.application) {
      return space.received.ackDueMs <= nowMs || space.probeCount > 0 || space.cryptoOut.hasPiece(Infinity)
    }
    if (!this.#parts.handshake.isComplete) return false
    if (space.received.ackDueMs <= nowMs || space.probeCount > 0) return true
    return this.#parts.recovery.mayFill(space) && this.#hasApplicationFrames(space)
  }

  #hasApplicationFrames(space: PacketSpace): boolean {
    const { handshake, streams, localIds, peerIds } = this.#parts
    return (
      handshake.isDoneDue ||
      space.cryptoOut.hasPiece(Infinity) ||
      localIds.hasFrames ||
      peerIds.hasFrames ||
      streams.hasControlFrames ||
      streams.hasPieces()
    )
  }

  #begin(space: PacketSpace, start: number, end: number): PacketBuilder {
    const { peerIds, keyPhases } = this.#parts
    const { ownIdBytes, tokenBytes } = this.#options
    const header = {
      destinationId: peerIds.currentBytes,
      sourceId: ownIdBytes,
      token: tokenBytes,
      keyPhase: keyPhases.phase,
    }
    return new PacketBuilder(space, header, scratch, start, end)
  }

  #fill(packet: PacketBuilder, nowMs: number): void {
    const { space, frames, carried } = packet
    const isEarly = space.level !== LEVEL.application
    const mayFill = space.probeCount > 0 || this.#parts.recovery.mayFill(space)
    const hasMore = isEarly || (mayFill && (space.probeCount > 0 || this.#hasApplicationFrames(space)))
    if (space.received.isAckWanted(nowMs, hasMore)) {
      const ack = space.received.writeAck(frames, nowMs)
      if (ack !== null) carried.push(ack)
    }
    const ackEnd = frames.position
    if (isEarly || mayFill) writeCrypto(space, packet)
    if (!isEarly && mayFill) this.#fillApplication(packet)
    if (space.probeCount > 0) {
      space.probeCount--
      if (frames.position === ackEnd && frames.left > 0) frames.u8(FRAME.ping)
    }
    packet.asksForAck = frames.position > ackEnd
  }

  #fillApplication({ frames, carried }: PacketBuilder): void {
    const { handshake, streams, localIds, peerIds } = this.#parts
    if (handshake.isDoneDue && frames.left > 0) {
      handshake.isDoneDue = false
      frames.u8(FRAME.handshakeDone)
      carried.push({
        acknowledged: () => {},
        lost: () => {
          handshake.isDoneDue = true
        },
      })
    }
    localIds.writeFrames(frames, carried)
    peerIds.writeFrames(frames, carried)
    streams.writeControlFrames(frames, carried)
    streams.writePieces(frames, carried)
  }

  #finish(packets: readonly PacketBuilder[], room: number, nowMs: number): Uint8Array {
    const last = packets.at(-1)
    const mustPad = packets.some(
      ({ space, asksForAck }) => space.level === LEVEL.initial && (asksForAck || this.#parts.role === 'client'),
    )
    if (mustPad) last?.padTo(Math.min(room, INITIAL_DATAGRAM_SIZE_MIN))
    const end = last?.end ?? 0
    for (const packet of packets) this.#seal(packet, nowMs)
    // A client that answers with a Handshake packet has everything it needed of the Initial ones.
    const { role, recovery, spaces } = this.#parts
    const hasHandshake = packets.some(({ space }) => space.level === LEVEL.handshake)
    if (role === 'client' && hasHandshake) recovery.discard(spaces[LEVEL.initial])
    return scratch.slice(0, end)
  }

  #seal(packet: PacketBuilder, nowMs: number): void {
    const { recovery, idle, keyPhases, handshake, counters } = this.#parts
    const { space } = packet
    const size = packet.size
    const number = packet.seal()
    counters.sentPackets++
    if (packet.asksForAck) {
      recovery.packetSent(space, number, size, packet.carried, nowMs)
      idle.sent(nowMs, recovery.probeTimeoutMs)
    }
    if (space.level === LEVEL.application) keyPhases.keepWithinLimit(handshake.isConfirmed)
  }
}

class CarriedPathFrame implements Carried {
  readonly #parts: ConnectionParts
  /** The path of a challenge; an answer is not repeated (RFC 9000 section 13.3). */
  readonly #challenged: Path | undefined
  #isUnderWay = true

  constructor(parts: ConnectionParts, challenged: Path | undefined) {
    this.#parts = parts
    this.#challenged = challenged
    parts.paths.sent()
  }

  acknowledged(): void {
    this.#over()
  }

  lost(): void {
    this.#over()
    if (this.#challenged !== undefined) this.#parts.paths.challengeLost(this.#challenged)
  }

  /** What was given up for lost may arrive all the same. */
  #over(): void {
    if (this.#isUnderWay) this.#parts.paths.arrivedOrLost()
    this.#isUnderWay = false
  }
}

function writeCrypto(space: PacketSpace, { frames, carried }: PacketBuilder): void {
  const buffer = space.cryptoOut
  while (frames.left >= CRYPTO_FRAME_MIN_SIZE && buffer.hasPiece(Infinity)) {
    const piece = buffer.take(frames.left - CRYPTO_FRAME_MIN_SIZE + 1, Infinity)
    if (piece === null) return
    frames.u8(FRAME.crypto)
    frames.varint(piece.offset)
    frames.varint(piece.size)
    buffer.write(piece, frames)
    carried.push({ acknowledged: () => buffer.acknowledge(piece), lost: () => buffer.lose(piece) })
  }
}
