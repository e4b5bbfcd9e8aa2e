/**
 * Takes the frames of one packet that authenticated, and does what they say (RFC 9000 section 19). Pure.
 *
 * Every length is checked by the reader before anything is kept; what the frames may make us keep is bounded by the parts
 * they are handed to. After a frame that ends the connection the rest is not looked at.
 */
import { LEVEL } from '../tls/api.ts'
import { FRAME, STREAM_BIT } from '../wire/frame-type.ts'
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import { Reader } from '../wire/reader.ts'
import { STREAM_COUNT_MAX } from '../wire/transport-parameters.ts'
import { varintSize } from '../wire/varint.ts'
import { readAckFrame } from './ack-frame.ts'
import type { CloseInfo } from './api.ts'
import type { PacketSpace } from './packet-space.ts'
import type { ConnectionParts } from './parts.ts'
import type { Path } from './path.ts'
import { CHALLENGE_SIZE } from './path.ts'

const STREAM_LAST = FRAME.stream + STREAM_BIT.fin + STREAM_BIT.length + STREAM_BIT.offset

/** Where a packet came from. */
export interface PacketOrigin {
  readonly space: PacketSpace
  readonly path: Path
  /** Destination id of the packet: one of ours. */
  readonly destinationIdView: Uint8Array
}

/** What a packet was, as a whole. */
export interface PacketVerdict {
  /** It holds a frame that is to be acknowledged. */
  readonly asksForAck: boolean
  /** It holds frames that only try a path out. */
  readonly isProbing: boolean
}

/** What the handler tells the connection. */
export interface FrameHost {
  /** The client knows that the server is done: HANDSHAKE_DONE, or an acknowledgement of application data. */
  confirmed(): void
  streamsAvailable(): void
  peerClosed(info: CloseInfo): void
}

export class FrameHandler {
  readonly #parts: ConnectionParts
  readonly #host: FrameHost

  constructor(parts: ConnectionParts, host: FrameHost) {
    this.#parts = parts
    this.#host = host
  }

  /** @throws QuicError whatever rule the peer breaks. */
  handle(payloadView: Uint8Array, origin: PacketOrigin, nowMs: number): PacketVerdict {
    const reader = new Reader(payloadView)
    let asksForAck = false
    let isProbing = true
    while (reader.left > 0 && this.#parts.closing.isOpen) {
      const type = readFrameType(reader)
      if (type === FRAME.padding) continue
      if (origin.space.level !== LEVEL.application && !isAllowedEarly(type)) {
        throw new QuicError(TRANSPORT_ERROR.protocolViolation, 'frame not allowed in a handshake packet', type)
      }
      asksForAck ||= !isAckFrame(type) && !isCloseFrame(type)
      isProbing &&= isProbingFrame(type)
      this.#handleFrame(type, reader, origin, nowMs)
    }
    return { asksForAck, isProbing }
  }

  #handleFrame(type: number, reader: Reader, origin: PacketOrigin, nowMs: number): void {
    const { streams, paths, localIds, peerIds, handshake } = this.#parts
    if (type >= FRAME.stream && type <= STREAM_LAST) {
      this.#stream(type, reader)
      return
    }
    switch (type) {
      case FRAME.ping:
        return
      case FRAME.ack:
      case FRAME.ackEcn:
        this.#acknowledgement(reader, type, origin.space, nowMs)
        return
      case FRAME.crypto: {
        const offset = reader.varint()
        handshake.received(origin.space, offset, reader.take(reader.varint()))
        return
      }
      case FRAME.resetStream:
        streams.reset(reader.varint(), reader.varint(), reader.varint())
        return
      case FRAME.stopSending:
        streams.stopped(reader.varint(), reader.varint())
        return
      case FRAME.newToken:
        this.#newToken(reader)
        return
      case FRAME.maxData:
        streams.raiseConnectionLimit(reader.varint())
        return
      case FRAME.maxStreamData:
        streams.raiseStreamLimit(reader.varint(), reader.varint())
        return
      case FRAME.maxStreamsBidi:
        if (streams.raiseOwnLimit('bidirectional', readStreamCount(reader, type))) this.#host.streamsAvailable()
        return
      case FRAME.maxStreamsUni:
        if (streams.raiseOwnLimit('unidirectional', readStreamCount(reader, type))) this.#host.streamsAvailable()
        return
      case FRAME.dataBlocked:
        reader.varint()
        return
      case FRAME.streamDataBlocked:
        streams.blocked(reader.varint())
        reader.varint()
        return
      case FRAME.streamsBlockedBidi:
      case FRAME.streamsBlockedUni:
        readStreamCount(reader, type)
        return
      case FRAME.newConnectionId:
        peerIds.readNewConnectionId(reader)
        return
      case FRAME.retireConnectionId:
        localIds.retire(reader.varint(), origin.destinationIdView)
        return
      case FRAME.pathChallenge:
        paths.asked(origin.path, reader.take(CHALLENGE_SIZE))
        return
      case FRAME.pathResponse:
        paths.answered(reader.take(CHALLENGE_SIZE))
        return
      case FRAME.connectionClose:
      case FRAME.applicationClose:
        this.#close(type, reader)
        return
      case FRAME.handshakeDone:
        if (this.#parts.role === 'server') throw fromClient(type)
        this.#host.confirmed()
        return
      default:
        throw new QuicError(TRANSPORT_ERROR.frameEncodingError, 'unknown frame', type)
    }
  }

  #stream(type: number, reader: Reader): void {
    const id = reader.varint()
    const offset = (type & STREAM_BIT.offset) === 0 ? 0 : reader.varint()
    const bytesView = (type & STREAM_BIT.length) === 0 ? reader.rest() : reader.take(reader.varint())
    this.#parts.streams.received(id, offset, bytesView, (type & STREAM_BIT.fin) !== 0)
  }

  #acknowledgement(reader: Reader, type: number, space: PacketSpace, nowMs: number): void {
    const { recovery, handshake, role } = this.#parts
    const frame = readAckFrame(reader, type === FRAME.ackEcn)
    if (role === 'client' && space.level !== LEVEL.initial) handshake.addressProven()
    recovery.acknowledged(space, frame, nowMs)
    // Only a server that is done reads application data; its HANDSHAKE_DONE may be lost.
    if (role === 'client' && space.level === LEVEL.application) this.#host.confirmed()
  }

  #newToken(reader: Reader): void {
    if (this.#parts.role === 'server') throw fromClient(FRAME.newToken)
    const size = reader.varint()
    if (size === 0) throw new QuicError(TRANSPORT_ERROR.frameEncodingError, 'empty token', FRAME.newToken)
    reader.take(size)
  }

  #close(type: number, reader: Reader): void {
    const code = reader.varint()
    const isApplication = type === FRAME.applicationClose
    if (!isApplication) reader.varint()
    const reason = new TextDecoder().decode(reader.take(reader.varint()))
    this.#host.peerClosed({ code, reason, isApplication, isLocal: false })
  }
}

/** @throws QuicError PROTOCOL_VIOLATION for a type that is not in its shortest form. */
function readFrameType(reader: Reader): number {
  const start = reader.position
  const type = reader.varint()
  if (reader.position - start !== varintSize(type)) {
    throw new QuicError(TRANSPORT_ERROR.protocolViolation, 'frame type in a longer form than needed')
  }
  return type
}

function readStreamCount(reader: Reader, type: number): number {
  const count = reader.varint()
  if (count <= STREAM_COUNT_MAX) return count
  throw new QuicError(TRANSPORT_ERROR.frameEncodingError, 'more streams than there are numbers', type)
}

function fromClient(type: number): QuicError {
  return new QuicError(TRANSPORT_ERROR.protocolViolation, 'frame that only a server sends', type)
}

const isAckFrame = (type: number): boolean => type === FRAME.ack || type === FRAME.ackEcn
const isCloseFrame = (type: number): boolean => type === FRAME.connectionClose || type === FRAME.applicationClose
const isAllowedEarly = (type: number): boolean =>
  type === FRAME.ping || type === FRAME.crypto || isAckFrame(type) || type === FRAME.connectionClose
const isProbingFrame = (type: number): boolean =>
  type === FRAME.pathChallenge || type === FRAME.pathResponse || type === FRAME.newConnectionId
