/**
 * The streams of a connection: who may open how many, which frame belongs to which, whose turn it is to send, and the
 * credit of the connection as a whole. Pure.
 *
 * Bounds: the peer's streams by our limits, their bytes by the windows, pieces beyond gaps by one budget for all streams.
 * Frames that a stream owes are flags of the stream, not a queue: a peer that provokes them over and over gets one.
 */
import { FRAME } from '../wire/frame-type.ts'
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import type { TransportParameters } from '../wire/transport-parameters.ts'
import type { Writer } from '../wire/writer.ts'
import type { ConnectionLimits, Role } from './api.ts'
import { ReceiveWindow, SendWindow } from './flow-window.ts'
import { GapBudget } from './receive-buffer.ts'
import { ReceiveHalf } from './receive-half.ts'
import { SendHalf } from './send-half.ts'
import type { Carried } from './sent-packets.ts'
import { QuicStream, type StreamOwner } from './stream.ts'
import { type Direction, directionOf, indexOf, isUnidirectional, openerOf, streamId } from './stream-id.ts'
import { StreamLimit } from './stream-limit.ts'

/** Pieces beyond gaps on all streams together. A lossy path needs one for each two packets of the connection's window. */
export const STREAM_GAPS_MAX = 4096
/** Type, stream id, offset and length at their longest: with less room, no STREAM frame is begun. */
const STREAM_FRAME_MIN_SIZE = 24
const LIMIT_FRAME_SIZE_MAX = 9

/** What the table asks of the connection. */
export interface StreamTableHost {
  /** There is something to send. */
  wake(): void
  /** The peer opened a stream and its first news are there. */
  announce(stream: QuicStream): void
}

export class StreamTable implements StreamOwner {
  readonly #role: Role
  readonly #limits: ConnectionLimits
  readonly #host: StreamTableHost
  readonly #streams = new Map<number, QuicStream>()
  /** Streams of the peer that the user does not know of yet. */
  readonly #unannounced = new Set<QuicStream>()
  /** Of those, what was held back already when somebody looked last. */
  #unseen: ReadonlySet<QuicStream> = new Set()
  /** In the order of their turns. */
  readonly #withData = new Set<QuicStream>()
  readonly #withControl = new Set<QuicStream>()
  #done: QuicStream[] = []
  readonly #gaps = new GapBudget(STREAM_GAPS_MAX, TRANSPORT_ERROR.internalError)
  readonly #receiveWindow: ReceiveWindow
  readonly #sendWindow = new SendWindow()
  readonly #peerLimits: Record<Direction, StreamLimit>
  readonly #ownLimits: Record<Direction, number> = { bidirectional: 0, unidirectional: 0 }
  readonly #ownOpened: Record<Direction, number> = { bidirectional: 0, unidirectional: 0 }
  #peerParameters: TransportParameters | undefined

  constructor(role: Role, limits: ConnectionLimits, host: StreamTableHost) {
    this.#role = role
    this.#limits = limits
    this.#host = host
    this.#receiveWindow = new ReceiveWindow(limits.connectionWindowBytes)
    this.#peerLimits = {
      bidirectional: new StreamLimit(limits.maxBidirectionalStreams),
      unidirectional: new StreamLimit(limits.maxUnidirectionalStreams),
    }
  }

  get count(): number {
    return this.#streams.size
  }

  /** Received on all streams and not granted back. */
  get unreadBytes(): number {
    return this.#receiveWindow.unreadBytes
  }

  /** The peer's limits are known: they come with the handshake, before any stream of ours. */
  start(peerParameters: TransportParameters): void {
    this.#peerParameters = peerParameters
    this.#sendWindow.raise(peerParameters.maxData)
    this.#ownLimits.bidirectional = peerParameters.maxStreamsBidi
    this.#ownLimits.unidirectional = peerParameters.maxStreamsUni
  }

  /** @returns null when the peer allows no more at the moment. */
  open(direction: Direction): QuicStream | null {
    const index = this.#ownOpened[direction]
    if (index >= this.#ownLimits[direction]) return null
    this.#ownOpened[direction] = index + 1
    return this.#add(streamId(this.#role, direction, index))
  }

  /** See `EngineConnection`. */
  giveUpUnseen(code: number): void {
    const held = [...this.#unannounced].filter((stream) => stream.holdsBytes)
    const overdue = held.filter((stream) => this.#unseen.has(stream))
    this.#unseen = new Set(held)
    for (const stream of overdue) {
      stream.stopSending(code)
      stream.reset(code)
    }
  }

  /** The connection is over: streams are dropped without further events. */
  clear(): void {
    for (const stream of this.#streams.values()) stream.silence()
    this.#streams.clear()
    this.#unannounced.clear()
    this.#withData.clear()
    this.#withControl.clear()
    this.#done = []
  }

  // What the peer says

  received(id: number, offset: number, bytesView: Uint8Array, isEnd: boolean): void {
    const stream = this.#receiving(id)
    if (!stream?.receive(offset, bytesView, isEnd)) return
    this.#announce(stream)
    stream.onData?.()
  }

  reset(id: number, code: number, finalSize: number): void {
    const stream = this.#receiving(id)
    if (!stream?.peerReset(code, finalSize)) return
    this.#announce(stream)
    stream.onReset?.(code)
  }

  stopped(id: number, code: number): void {
    const stream = this.#sending(id)
    if (!stream?.peerStopped(code)) return
    this.#announce(stream)
    stream.onStop?.(code)
  }

  /** STREAM_DATA_BLOCKED tells nothing that we act upon; it must name a stream that the peer sends on. */
  blocked(id: number): void {
    this.#receiving(id)
  }

  raiseStreamLimit(id: number, maxOffset: number): void {
    this.#sending(id)?.raiseLimit(maxOffset)
  }

  raiseConnectionLimit(maxBytes: number): void {
    this.#sendWindow.raise(maxBytes)
  }

  /** @returns whether more streams may be opened than before. */
  raiseOwnLimit(direction: Direction, maxCount: number): boolean {
    const isMore = maxCount > this.#ownLimits[direction]
    if (isMore) this.#ownLimits[direction] = maxCount
    return isMore
  }

  // What goes out

  /** Limits and the frames of single streams that are not data. */
  get hasControlFrames(): boolean {
    return (
      this.#withControl.size > 0 ||
      this.#receiveWindow.isUpdateDue ||
      this.#peerLimits.bidirectional.isUpdateDue ||
      this.#peerLimits.unidirectional.isUpdateDue
    )
  }

  /** Some stream has data or an end that the peer's limits let through. */
  hasPieces(): boolean {
    for (const stream of this.#withData) {
      if (stream.hasPiece(this.#sendWindow.leftBytes)) return true
      // What waits for the stream's own limit comes back with it; what waits for the connection's stays in line.
      if (!stream.hasPiece(Number.POSITIVE_INFINITY)) this.#withData.delete(stream)
    }
    return false
  }

  writeControlFrames(writer: Writer, carried: Carried[]): void {
    if (this.#receiveWindow.isUpdateDue && writer.left >= LIMIT_FRAME_SIZE_MAX) this.#writeMaxData(writer, carried)
    for (const direction of ['bidirectional', 'unidirectional'] as const) {
      const limit = this.#peerLimits[direction]
      if (limit.isUpdateDue && writer.left >= LIMIT_FRAME_SIZE_MAX) this.#writeMaxStreams(direction, writer, carried)
    }
    for (const stream of this.#withControl) {
      if (!stream.writeControl(writer, carried)) return
      this.#withControl.delete(stream)
    }
  }

  /** A piece of each stream in turn, until the packet is full. */
  writePieces(writer: Writer, carried: Carried[]): void {
    for (const stream of this.#withData) {
      if (writer.left < STREAM_FRAME_MIN_SIZE) return
      const newBytes = stream.writePiece(writer, this.#sendWindow.leftBytes, carried)
      if (newBytes >= 0) this.#sendWindow.send(newBytes)
      // To the end of the line, if there is more; a stream that only the connection's limit stops keeps its place.
      if (newBytes < 0 && stream.hasPiece(Number.POSITIVE_INFINITY)) continue
      this.#withData.delete(stream)
      if (stream.hasPiece(Number.POSITIVE_INFINITY)) this.#withData.add(stream)
    }
  }

  // What streams say

  hasData(stream: QuicStream): void {
    this.#withData.add(stream)
    this.#host.wake()
  }

  hasControl(stream: QuicStream): void {
    this.#withControl.add(stream)
    this.#host.wake()
  }

  hasCredit(): void {
    if (this.#receiveWindow.isUpdateDue) this.#host.wake()
  }

  done(stream: QuicStream): void {
    this.#done.push(stream)
    this.#host.wake()
  }

  /** Forgets the streams that are over, and tells their users. */
  settle(): void {
    while (this.#done.length > 0) {
      const done = this.#done
      this.#done = []
      for (const stream of done) {
        this.#streams.delete(stream.id)
        this.#unannounced.delete(stream)
        this.#withData.delete(stream)
        this.#withControl.delete(stream)
        if (openerOf(stream.id) !== this.#role) this.#peerLimits[directionOf(stream.id)].close()
        stream.settle()
      }
    }
  }

  #writeMaxData(writer: Writer, carried: Carried[]): void {
    writer.u8(FRAME.maxData)
    writer.varint(this.#receiveWindow.update())
    carried.push({ acknowledged: () => {}, lost: () => this.#receiveWindow.repeatUpdate() })
  }

  #writeMaxStreams(direction: Direction, writer: Writer, carried: Carried[]): void {
    const limit = this.#peerLimits[direction]
    writer.u8(direction === 'bidirectional' ? FRAME.maxStreamsBidi : FRAME.maxStreamsUni)
    writer.varint(limit.update())
    carried.push({ acknowledged: () => {}, lost: () => limit.repeatUpdate() })
  }

  #announce(stream: QuicStream): void {
    if (this.#unannounced.delete(stream)) this.#host.announce(stream)
  }

  /** The stream of a frame about what the peer sends; undefined when it is over already. */
  #receiving(id: number): QuicStream | undefined {
    if (isUnidirectional(id) && openerOf(id) === this.#role) throw wrongDirection(id)
    return this.#find(id)
  }

  /** The stream of a frame about what we send; undefined when it is over already. */
  #sending(id: number): QuicStream | undefined {
    if (isUnidirectional(id) && openerOf(id) !== this.#role) throw wrongDirection(id)
    return this.#find(id)
  }

  #find(id: number): QuicStream | undefined {
    const known = this.#streams.get(id)
    if (known !== undefined) return known
    const direction = directionOf(id)
    if (openerOf(id) === this.#role) {
      if (indexOf(id) < this.#ownOpened[direction]) return undefined
      throw new QuicError(TRANSPORT_ERROR.streamStateError, `stream ${id} was not opened`)
    }
    this.#openPeerStreams(id, direction)
    return this.#streams.get(id)
  }

  #openPeerStreams(id: number, direction: Direction): void {
    const limit = this.#peerLimits[direction]
    const firstIndex = limit.openedCount
    limit.open(indexOf(id))
    for (let index = firstIndex; index < limit.openedCount; index++) {
      this.#unannounced.add(this.#add(streamId(openerOf(id), direction, index)))
    }
  }

  #add(id: number): QuicStream {
    const isOwn = openerOf(id) === this.#role
    const isOneWay = isUnidirectional(id)
    const out = isOneWay && !isOwn ? null : new SendHalf(this.#limits.sendHighWaterBytes)
    const incoming =
      isOneWay && isOwn ? null : new ReceiveHalf(this.#limits.streamWindowBytes, this.#receiveWindow, this.#gaps)
    out?.raiseLimit(this.#initialLimit(isOwn, isOneWay))
    const stream = new QuicStream(id, this, out, incoming)
    this.#streams.set(id, stream)
    return stream
  }

  /** The peer names its limits from its own point of view. */
  #initialLimit(isOwn: boolean, isOneWay: boolean): number {
    const parameters = this.#peerParameters
    if (parameters === undefined) return 0
    if (isOneWay) return parameters.maxStreamDataUni
    return isOwn ? parameters.maxStreamDataBidiRemote : parameters.maxStreamDataBidiLocal
  }
}

function wrongDirection(id: number): QuicError {
  return new QuicError(TRANSPORT_ERROR.streamStateError, `stream ${id} does not go that way`)
}
