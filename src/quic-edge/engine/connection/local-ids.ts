/**
 * The connection ids by which the peer reaches us (RFC 9000 section 5.1): the first is in the handshake, more are offered
 * so that the peer can change its address without being recognized. Pure.
 *
 * There are never more than `LOCAL_IDS_MAX`: a new one replaces one that the peer retires.
 */
import { FRAME } from '../wire/frame-type.ts'
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import { STATELESS_RESET_TOKEN_SIZE } from '../wire/transport-parameters.ts'
import type { Writer } from '../wire/writer.ts'
import type { ConnectionHost } from './api.ts'
import { areEqualBytes } from './bytes.ts'
import type { Carried } from './sent-packets.ts'

/** All our ids have this size: short headers do not say it. */
export const LOCAL_ID_SIZE = 8
/** The one in use, one for the next address and one to spare. */
export const LOCAL_IDS_MAX = 3
/** Type, sequence, threshold, size, id, token. */
const NEW_ID_FRAME_SIZE_MAX = 1 + 8 + 1 + 1 + LOCAL_ID_SIZE + STATELESS_RESET_TOKEN_SIZE

export class LocalIds {
  readonly #host: ConnectionHost
  readonly #random: (size: number) => Uint8Array
  /** By sequence number. */
  readonly #ids = new Map<number, Uint8Array>()
  #nextSequence = 0
  /** The peer knows those below, unless their frames are lost: the first comes with the handshake. */
  #toldEnd = 1
  /** To be told to the peer, by sequence number. */
  readonly #untold = new Set<number>()
  readonly firstBytes: Uint8Array

  constructor(host: ConnectionHost, random: (size: number) => Uint8Array) {
    this.#host = host
    this.#random = random
    this.firstBytes = this.#add()
  }

  get hasFrames(): boolean {
    return this.#untold.size > 0
  }

  /** The handshake is done: offers as many as the peer keeps. @param peerLimit the first id counts. */
  offer(peerLimit: number): void {
    const count = Math.min(peerLimit, LOCAL_IDS_MAX)
    while (this.#ids.size < count) this.#addUntold()
  }

  /**
   * The peer gives one back, and gets another.
   *
   * @param usedView the destination id of the packet that says so.
   * @throws QuicError PROTOCOL_VIOLATION for an id that was never given, or that the packet itself needed: so a packet cannot
   *   make us draw more ids than the peer had.
   */
  retire(sequence: number, usedView: Uint8Array): void {
    if (sequence >= this.#toldEnd) throw violation(`connection id ${sequence} was not given`)
    const idBytes = this.#ids.get(sequence)
    if (idBytes === undefined) return
    if (areEqualBytes(idBytes, usedView)) throw violation(`connection id ${sequence} retired by a packet to it`)
    this.#ids.delete(sequence)
    this.#untold.delete(sequence)
    this.#host.connectionIdRetired(idBytes)
    this.#addUntold()
  }

  /** The connection is over: nothing reaches it any more. */
  retireAll(): void {
    for (const idBytes of this.#ids.values()) this.#host.connectionIdRetired(idBytes)
    this.#ids.clear()
    this.#untold.clear()
  }

  writeFrames(writer: Writer, carried: Carried[]): void {
    for (const sequence of this.#untold) {
      if (writer.left < NEW_ID_FRAME_SIZE_MAX) return
      this.#untold.delete(sequence)
      this.#toldEnd = Math.max(this.#toldEnd, sequence + 1)
      const idBytes = this.#ids.get(sequence)
      if (idBytes === undefined) continue
      writer.u8(FRAME.newConnectionId)
      writer.varint(sequence)
      writer.varint(0)
      writer.u8(idBytes.length)
      writer.bytes(idBytes)
      writer.bytes(this.#host.statelessResetToken(idBytes))
      carried.push({ acknowledged: () => {}, lost: () => this.#repeat(sequence) })
    }
  }

  #repeat(sequence: number): void {
    if (this.#ids.has(sequence)) this.#untold.add(sequence)
  }

  #addUntold(): void {
    this.#untold.add(this.#nextSequence)
    this.#add()
  }

  #add(): Uint8Array {
    const idBytes = this.#random(LOCAL_ID_SIZE)
    this.#ids.set(this.#nextSequence++, idBytes)
    this.#host.connectionIdAdded(idBytes)
    return idBytes
  }
}

function violation(reason: string): QuicError {
  return new QuicError(TRANSPORT_ERROR.protocolViolation, reason, FRAME.retireConnectionId)
}
