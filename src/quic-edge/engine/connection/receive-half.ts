/**
 * The peer's direction of a stream (RFC 9000 section 3.2): bytes in order, credit, end, reset, and our wish that it stop.
 * Pure.
 *
 * Invariant: what the stream received, less what was granted back, counts against the connection's window until the stream
 * is given up or done, when the rest is granted at once.
 */
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import { ReceiveWindow } from './flow-window.ts'
import { type GapBudget, ReceiveBuffer } from './receive-buffer.ts'

/** No stream gets that far; offsets stay exact numbers. */
const OFFSET_MAX = 2 ** 52

export class ReceiveHalf {
  readonly #buffer: ReceiveBuffer
  readonly #window: ReceiveWindow
  readonly #connectionWindow: ReceiveWindow
  #grantedBytes = 0
  #resetCode: number | undefined
  #stopCode: number | undefined
  #isStopUnsent = false
  /** Nothing is kept any more, and all of it granted. */
  #isReleased = false

  constructor(windowBytes: number, connectionWindow: ReceiveWindow, gaps: GapBudget) {
    this.#buffer = new ReceiveBuffer(gaps)
    this.#window = new ReceiveWindow(windowBytes)
    this.#connectionWindow = connectionWindow
  }

  /** Code of the peer's reset. */
  get resetCode(): number | undefined {
    return this.#resetCode
  }

  /** Everything was read, or nothing will be. */
  get isDone(): boolean {
    const { isComplete, readOffset, finalSize } = this.#buffer
    return this.#resetCode !== undefined || (isComplete && readOffset === finalSize)
  }

  get holdsBytes(): boolean {
    return !this.#isReleased && this.#buffer.highestOffset > this.#buffer.readOffset
  }

  /** The peer should be told a new limit: not one that it has no more use for. */
  get isLimitDue(): boolean {
    return !this.#isReleased && this.#buffer.finalSize === undefined && this.#window.isUpdateDue
  }

  /**
   * @returns whether there is something new to read, or the end.
   * @throws QuicError FLOW_CONTROL_ERROR, FINAL_SIZE_ERROR
   */
  receive(offset: number, bytesView: Uint8Array, isEnd: boolean): boolean {
    this.#account(offset + bytesView.length, isEnd)
    if (this.#resetCode !== undefined) return false
    if (!this.#isReleased) return this.#buffer.receive(offset, bytesView, isEnd)
    this.#buffer.skip(offset + bytesView.length, isEnd)
    return false
  }

  /** The peer gave up its direction. @returns whether that changes anything. @throws as `receive`. */
  reset(code: number, finalSize: number): boolean {
    this.#account(finalSize, true)
    if (this.#resetCode !== undefined || this.#buffer.isComplete) return false
    this.#resetCode = code
    this.#isStopUnsent = false
    this.#buffer.skip(finalSize, true)
    this.release()
    return true
  }

  read(): Uint8Array | null {
    return this.#buffer.read()
  }

  grant(sizeBytes: number): void {
    if (this.#isReleased) return
    const grantable = Math.min(sizeBytes, this.#buffer.readOffset - this.#grantedBytes)
    this.#grantedBytes += grantable
    this.#window.grant(grantable)
    this.#connectionWindow.grant(grantable)
  }

  /** @returns the limit to tell the peer now. */
  updateLimit(): number {
    return this.#window.update()
  }

  limitLost(): void {
    this.#window.repeatUpdate()
  }

  /** Nothing more is wanted. @returns whether the peer is to be told. */
  stop(code: number): boolean {
    if (this.#stopCode !== undefined || this.isDone) return false
    this.#stopCode = code
    this.#isStopUnsent = !this.#buffer.isComplete
    this.release()
    this.#buffer.skip(0, false)
    return this.#isStopUnsent
  }

  /** @returns the code of STOP_SENDING to send now, once, or undefined. */
  takeStop(): number | undefined {
    if (!this.#isStopUnsent) return undefined
    this.#isStopUnsent = false
    return this.#stopCode
  }

  stopLost(): void {
    this.#isStopUnsent = this.#stopCode !== undefined && !this.#buffer.isComplete && this.#resetCode === undefined
  }

  /** Grants back what was not: the stream is over, whatever its reader has still to do. */
  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#connectionWindow.grant(this.#buffer.highestOffset - this.#grantedBytes)
  }

  /** Holds the peer to both windows before anything of its bytes is kept. */
  #account(endOffset: number, isEnd: boolean): void {
    if (endOffset > OFFSET_MAX) throw new QuicError(TRANSPORT_ERROR.flowControlError, 'offset past every limit')
    this.#buffer.checkFinalSize(endOffset, isEnd)
    const newBytes = endOffset - this.#buffer.highestOffset
    if (newBytes <= 0) return
    this.#window.receive(newBytes)
    this.#connectionWindow.receive(newBytes)
    if (this.#isReleased) this.#connectionWindow.grant(newBytes)
  }
}
