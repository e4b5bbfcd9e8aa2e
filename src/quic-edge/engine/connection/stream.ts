/**
 * One stream: its two halves, the events of its user, and what of it goes into packets. Pure.
 *
 * It never writes by itself. It tells its owner that there is something to send, and is asked for it when there is room.
 */
import { FRAME, STREAM_BIT } from '../wire/frame-type.ts'
import { varintSize } from '../wire/varint.ts'
import type { Writer } from '../wire/writer.ts'
import type { EngineStream } from './api.ts'
import type { ReceiveHalf } from './receive-half.ts'
import type { Piece } from './send-buffer.ts'
import type { SendHalf } from './send-half.ts'
import type { Carried } from './sent-packets.ts'
import { isUnidirectional } from './stream-id.ts'

/** Below that, the length of a STREAM frame takes one byte; above, two. */
const SHORT_LENGTH_MAX = 63
/** RESET_STREAM, STOP_SENDING and MAX_STREAM_DATA with the largest ids, codes and offsets. */
const CONTROL_FRAMES_SIZE_MAX = 1 + 3 * 8 + (1 + 2 * 8) * 2

/** What a stream asks of the connection. */
export interface StreamOwner {
  /** There are bytes, or an end, to send. */
  hasData(stream: QuicStream): void
  /** There is a reset, a stop or a limit to send. */
  hasControl(stream: QuicStream): void
  /** Bytes were granted: the connection's own limit may be due. */
  hasCredit(): void
  /** Both directions are over: call `settle` once nobody is within a call of the stream. */
  done(stream: QuicStream): void
}

export class QuicStream implements EngineStream {
  readonly id: number
  readonly #owner: StreamOwner
  /** Null where the stream has no such direction. */
  readonly #out: SendHalf | null
  readonly #in: ReceiveHalf | null
  #isDone = false

  onData: (() => void) | null = null
  onDrain: (() => void) | null = null
  onReset: ((code: number) => void) | null = null
  onStop: ((code: number) => void) | null = null
  onDone: (() => void) | null = null

  constructor(id: number, owner: StreamOwner, out: SendHalf | null, incoming: ReceiveHalf | null) {
    this.id = id
    this.#owner = owner
    this.#out = out
    this.#in = incoming
  }

  // For the user

  get isBidirectional(): boolean {
    return !isUnidirectional(this.id)
  }

  get isEnded(): boolean {
    return this.#in === null || (this.#in.isDone && this.#in.resetCode === undefined)
  }

  get resetCode(): number | undefined {
    return this.#in?.resetCode
  }

  /** Bytes of the peer that nobody has read. */
  get holdsBytes(): boolean {
    return this.#in?.holdsBytes ?? false
  }

  get bufferedBytes(): number {
    return this.#out?.bufferedBytes ?? 0
  }

  read(): Uint8Array | null {
    const bytes = this.#in?.read() ?? null
    if (bytes !== null) this.#finishIfDone()
    return bytes
  }

  grant(sizeBytes: number): void {
    if (this.#in === null) return
    this.#in.grant(sizeBytes)
    if (this.#in.isLimitDue) this.#owner.hasControl(this)
    this.#owner.hasCredit()
  }

  write(bytes: Uint8Array): boolean {
    const mayGoOn = this.#out?.write(bytes) ?? false
    if (this.#out !== null) this.#owner.hasData(this)
    return mayGoOn
  }

  end(): void {
    this.#out?.end()
    if (this.#out !== null) this.#owner.hasData(this)
  }

  reset(code: number): void {
    if (this.#out?.reset(code)) this.#owner.hasControl(this)
  }

  stopSending(code: number): void {
    if (this.#in === null) return
    if (this.#in.stop(code)) this.#owner.hasControl(this)
    this.#owner.hasCredit()
    this.#finishIfDone()
  }

  // For the connection: what the peer says

  /**
   * @returns whether there is something new to read, or the end: `onData` is due.
   * @throws QuicError when the peer breaks flow control or contradicts its end.
   */
  receive(offset: number, bytesView: Uint8Array, isEnd: boolean): boolean {
    const hasNews = this.#in?.receive(offset, bytesView, isEnd) ?? false
    this.#finishIfDone()
    return hasNews
  }

  /** @returns whether `onReset` is due. @throws as `receive`. */
  peerReset(code: number, finalSize: number): boolean {
    const isNews = this.#in?.reset(code, finalSize) ?? false
    this.#finishIfDone()
    return isNews
  }

  /** @returns whether `onStop` is due. */
  peerStopped(code: number): boolean {
    const isNews = this.#out?.reset(code) ?? false
    if (isNews) this.#owner.hasControl(this)
    return isNews
  }

  raiseLimit(maxOffset: number): void {
    if (this.#out?.raiseLimit(maxOffset)) this.#owner.hasData(this)
  }

  // For the connection: what goes out

  /** @param creditBytes that the connection has left for new bytes. */
  hasPiece(creditBytes: number): boolean {
    return this.#out?.hasPiece(creditBytes) ?? false
  }

  /** Writes RESET_STREAM, STOP_SENDING and MAX_STREAM_DATA where they are due. @returns whether there was room. */
  writeControl(writer: Writer, carried: Carried[]): boolean {
    if (writer.left < CONTROL_FRAMES_SIZE_MAX) return false
    const reset = this.#out?.takeReset()
    if (reset !== undefined) {
      writeNumbers(writer, FRAME.resetStream, [this.id, reset.code, reset.finalSize])
      carried.push({ acknowledged: () => this.#resetAcknowledged(), lost: () => this.#resetLost() })
    }
    const stopCode = this.#in?.takeStop()
    if (stopCode !== undefined) {
      writeNumbers(writer, FRAME.stopSending, [this.id, stopCode])
      carried.push({ acknowledged: () => {}, lost: () => this.#stopLost() })
    }
    if (this.#in?.isLimitDue) this.#writeLimit(writer, this.#in.updateLimit(), carried)
    return true
  }

  /**
   * Writes one STREAM frame with as much as fits.
   *
   * @returns new bytes in it, which count against the connection's credit, or -1 when nothing was written.
   */
  writePiece(writer: Writer, creditBytes: number, carried: Carried[]): number {
    const out = this.#out
    if (out === null) return -1
    const firstNewOffset = out.nextOffset
    // The offset of the piece is not known before it is taken; none is longer than that of the next new byte.
    const headerSize = 1 + varintSize(this.id) + varintSize(firstNewOffset) + 2
    const piece = out.take(writer.left - headerSize, creditBytes)
    if (piece === null) return -1
    writeStreamHeader(writer, this.id, piece)
    out.writeBytes(piece, writer)
    carried.push(new CarriedPiece(this, piece))
    return Math.max(0, piece.offset + piece.size - firstNewOffset)
  }

  pieceAcknowledged(piece: Piece): void {
    if (this.#out?.acknowledge(piece)) this.onDrain?.()
    this.#finishIfDone()
  }

  pieceLost(piece: Piece): void {
    if (this.#isDone) return
    this.#out?.lose(piece)
    this.#owner.hasData(this)
  }

  /** The connection is over: no more events. */
  silence(): void {
    this.onData = null
    this.onDrain = null
    this.onReset = null
    this.onStop = null
    this.onDone = null
  }

  /** Tells the user that it is over; what was read and not granted is granted now. */
  settle(): void {
    this.#in?.release()
    this.onDone?.()
  }

  #writeLimit(writer: Writer, maxOffset: number, carried: Carried[]): void {
    writeNumbers(writer, FRAME.maxStreamData, [this.id, maxOffset])
    carried.push({ acknowledged: () => {}, lost: () => this.#limitLost() })
  }

  #resetAcknowledged(): void {
    this.#out?.resetAcknowledged()
    this.#finishIfDone()
  }

  #resetLost(): void {
    this.#out?.resetLost()
    this.#owner.hasControl(this)
  }

  #stopLost(): void {
    if (this.#isDone) return
    this.#in?.stopLost()
    this.#owner.hasControl(this)
  }

  #limitLost(): void {
    if (this.#isDone) return
    this.#in?.limitLost()
    this.#owner.hasControl(this)
  }

  #finishIfDone(): void {
    if (this.#isDone || !(this.#out?.isDone ?? true) || !(this.#in?.isDone ?? true)) return
    this.#isDone = true
    this.#owner.done(this)
  }
}

/** One object for the piece and for what becomes of it: there is one in nearly every packet. */
class CarriedPiece implements Carried {
  readonly #stream: QuicStream
  readonly #piece: Piece

  constructor(stream: QuicStream, piece: Piece) {
    this.#stream = stream
    this.#piece = piece
  }

  acknowledged(): void {
    this.#stream.pieceAcknowledged(this.#piece)
  }

  lost(): void {
    this.#stream.pieceLost(this.#piece)
  }
}

function writeStreamHeader(writer: Writer, id: number, piece: Piece): void {
  const hasOffset = piece.offset > 0
  writer.u8(FRAME.stream | STREAM_BIT.length | (hasOffset ? STREAM_BIT.offset : 0) | (piece.isEnd ? STREAM_BIT.fin : 0))
  writer.varint(id)
  if (hasOffset) writer.varint(piece.offset)
  if (piece.size <= SHORT_LENGTH_MAX) writer.u8(piece.size)
  else writer.varint2(piece.size)
}

function writeNumbers(writer: Writer, type: number, values: readonly number[]): void {
  writer.u8(type)
  for (const value of values) writer.varint(value)
}
