/**
 * Packets with any frames, sealed as the client of a pair seals them: what an honest client never sends. Their numbers are
 * far above those of the client's own; what the server answers is not for the client.
 */

import { PacketBuilder } from '../../../src/quic-edge/engine/connection/packet-builder.ts'
import { PacketSpace } from '../../../src/quic-edge/engine/connection/packet-space.ts'
import { initialKeys, PacketKeys, protectHeader, TAG_SIZE } from '../../../src/quic-edge/engine/crypto/packet-keys.ts'
import { LEVEL, type Level } from '../../../src/quic-edge/engine/tls/api.ts'
import { patchPacketNumber, writeShortHeader } from '../../../src/quic-edge/engine/wire/packet-header.ts'
import { Writer } from '../../../src/quic-edge/engine/wire/writer.ts'
import type { QuicPair } from './quic-pair.ts'

const FIRST_NUMBER = 1000
const DATAGRAM_SIZE = 1200
const FIXED_BIT = 0x40

/** Varints and bytes, one after the other. */
export function frame(...parts: readonly (number | Uint8Array)[]): Uint8Array {
  const writer = new Writer(
    new Uint8Array(8 * parts.length + parts.reduce<number>((sum, part) => sum + sizeOf(part), 0)),
  )
  for (const part of parts) {
    if (typeof part === 'number') writer.varint(part)
    else writer.bytes(part)
  }
  return writer.writtenView
}

const sizeOf = (part: number | Uint8Array): number => (typeof part === 'number' ? 0 : part.length)

export class ForgedClient {
  readonly #pair: QuicPair
  readonly #spaces = new Map<Level, PacketSpace>()
  /** Where the server's datagrams go instead of to the client. */
  readonly received: Uint8Array[] = []

  constructor(pair: QuicPair) {
    this.#pair = pair
  }

  /** Sends one packet with these frames to the server, and takes its answers. */
  send(frames: Uint8Array, level: Level = LEVEL.application): void {
    this.sendUnanswered(frames, level)
    const { server, nowMs } = this.#pair
    server.flush(nowMs, (bytes) => this.received.push(bytes), Number.POSITIVE_INFINITY)
  }

  sendUnanswered(frames: Uint8Array, level: Level = LEVEL.application, from = this.#pair.clientAddress): void {
    const { server, nowMs } = this.#pair
    server.receive(this.datagram(frames, level), from, nowMs)
  }

  /** @param change what is not as it should be in the header. */
  datagram(
    frames: Uint8Array,
    level: Level = LEVEL.application,
    change: { firstBits?: number; isFixedBitMissing?: boolean; destinationId?: Uint8Array } = {},
  ): Uint8Array {
    const datagram = new Uint8Array(DATAGRAM_SIZE)
    const hex = (text: string | undefined) => new Uint8Array(Buffer.from(text ?? '', 'hex'))
    const header = {
      destinationId: change.destinationId ?? hex(this.#pair.serverHost.ids[0]),
      sourceId: hex(this.#pair.clientHost.ids[0]),
      token: new Uint8Array(),
      keyPhase: 0 as const,
    }
    const packet = new PacketBuilder(this.#space(level), header, datagram, 0, datagram.length)
    packet.frames.bytes(frames)
    datagram[0] = (datagram[0] ?? 0) | (change.firstBits ?? 0)
    if (change.isFixedBitMissing) datagram[0] = (datagram[0] ?? 0) & ~FIXED_BIT
    if (level === LEVEL.initial) packet.padTo(DATAGRAM_SIZE)
    const end = packet.end
    packet.seal()
    return datagram.subarray(0, end)
  }

  /** A packet without any frame: only its number keeps the header protected. */
  emptyDatagram(): Uint8Array {
    const keys = this.#keys(LEVEL.application)
    const datagram = new Uint8Array(1 + 8 + 4 + TAG_SIZE)
    const writer = new Writer(datagram)
    const destinationId = new Uint8Array(Buffer.from(this.#pair.serverHost.ids[0] ?? '', 'hex'))
    const numberAt = writeShortHeader(writer, destinationId, 0, 4)
    patchPacketNumber(datagram, numberAt, FIRST_NUMBER, 4)
    keys.seal(FIRST_NUMBER, datagram.subarray(0, numberAt + 4), new Uint8Array(), datagram, numberAt + 4)
    protectHeader(keys, datagram, 0, numberAt, 4)
    return datagram
  }

  #space(level: Level): PacketSpace {
    const known = this.#spaces.get(level)
    if (known !== undefined) return known
    const space = new PacketSpace(level, 0)
    space.sendKeys = this.#keys(level)
    for (let number = 0; number < FIRST_NUMBER; number++) space.takeNumber()
    this.#spaces.set(level, space)
    return space
  }

  #keys(level: Level): PacketKeys {
    if (level === LEVEL.initial) return initialKeys(this.#pair.initialDestinationId).client
    const found = this.#pair.clientSecrets.find((secret) => secret.level === level && secret.direction === 'send')
    if (found === undefined) throw new Error(`no keys of level ${level} yet`)
    return new PacketKeys(found.suite, found.secret)
  }
}
