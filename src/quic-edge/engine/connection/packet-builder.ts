/**
 * One packet under construction, in the datagram it will travel in: header, room for frames, then sealed in place. Pure but
 * for sealing.
 */
import { assert } from '../../../assert.ts'
import { type PacketKeys, protectHeader, TAG_SIZE } from '../crypto/packet-keys.ts'
import { LEVEL } from '../tls/api.ts'
import {
  PACKET_TYPE,
  patchLength,
  patchPacketNumber,
  writeLongHeader,
  writeShortHeader,
} from '../wire/packet-header.ts'
import { Writer } from '../wire/writer.ts'
import type { PacketSpace } from './packet-space.ts'
import type { Carried } from './sent-packets.ts'

/** Packet number and frames together fill the sample that protects the header. */
const NUMBER_AND_FRAMES_SIZE_MIN = 4

export interface PacketHeader {
  readonly destinationId: Uint8Array
  readonly sourceId: Uint8Array
  /** Of Initial packets. */
  readonly token: Uint8Array
  readonly keyPhase: 0 | 1
}

export class PacketBuilder {
  readonly space: PacketSpace
  /** Takes the frames. */
  readonly frames: Writer
  /** What the frames carry, for those who want to know of them. */
  readonly carried: Carried[] = []
  /** A frame is to be acknowledged. */
  asksForAck = false
  readonly #datagram: Uint8Array
  readonly #keys: PacketKeys
  readonly #start: number
  readonly #packetNumberAt: number
  readonly #numberSize: number

  /** Writes the header at `start`; frames may go up to what leaves room for the tag before `end`. */
  constructor(space: PacketSpace, header: PacketHeader, datagram: Uint8Array, start: number, end: number) {
    assert(space.sendKeys !== undefined, 'a packet is begun with keys to seal it')
    this.space = space
    this.#keys = space.sendKeys
    this.#datagram = datagram
    this.#start = start
    this.#numberSize = space.nextNumberSize
    this.frames = new Writer(datagram, start, end - TAG_SIZE)
    this.#packetNumberAt = writeHeader(this.frames, space, header, this.#numberSize)
  }

  get isEmpty(): boolean {
    return this.frames.position === this.#framesAt
  }

  /** Where the packet ends in the datagram if nothing is added. */
  get end(): number {
    return this.frames.position + this.#missingSize + TAG_SIZE
  }

  /** Bytes of the whole packet, as `end`. */
  get size(): number {
    return this.end - this.#start
  }

  /** Adds PADDING until the packet ends at `end`, as far as there is room. */
  padTo(end: number): void {
    const size = Math.min(end - TAG_SIZE - this.frames.position, this.frames.left)
    if (size > 0) this.frames.zeros(size)
  }

  /** Gives the packet its number and seals it. @returns that number. */
  seal(): number {
    this.frames.zeros(this.#missingSize)
    const datagram = this.#datagram
    const end = this.frames.position + TAG_SIZE
    const number = this.space.takeNumber()
    if (this.space.level !== LEVEL.application) patchLength(datagram, this.#packetNumberAt, end)
    patchPacketNumber(datagram, this.#packetNumberAt, number, this.#numberSize)
    const headerView = datagram.subarray(this.#start, this.#framesAt)
    const plainView = datagram.subarray(this.#framesAt, this.frames.position)
    this.#keys.seal(number, headerView, plainView, datagram, this.#framesAt)
    protectHeader(this.#keys, datagram, this.#start, this.#packetNumberAt, this.#numberSize)
    return number
  }

  get #framesAt(): number {
    return this.#packetNumberAt + this.#numberSize
  }

  get #missingSize(): number {
    return Math.max(0, this.#packetNumberAt + NUMBER_AND_FRAMES_SIZE_MIN - this.frames.position)
  }
}

function writeHeader(writer: Writer, space: PacketSpace, header: PacketHeader, packetNumberSize: number): number {
  const { destinationId, sourceId, token } = header
  if (space.level === LEVEL.application) {
    return writeShortHeader(writer, destinationId, header.keyPhase, packetNumberSize)
  }
  const type = space.level === LEVEL.initial ? PACKET_TYPE.initial : PACKET_TYPE.handshake
  return writeLongHeader(writer, { type, destinationId, sourceId, token, packetNumberSize })
}
