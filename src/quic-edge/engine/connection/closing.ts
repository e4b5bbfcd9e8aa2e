/**
 * How a connection ends (RFC 9000 section 10): `closing` after we said so, when packets that still come are answered with
 * the same again; `draining` after the peer said so, in silence; `finished` when nothing is left. Pure.
 */
import { LEVEL, type Level } from '../tls/api.ts'
import { FRAME } from '../wire/frame-type.ts'
import { TRANSPORT_ERROR } from '../wire/quic-error.ts'
import type { Writer } from '../wire/writer.ts'
import type { CloseInfo } from './api.ts'

export type ClosingState = 'open' | 'closing' | 'draining' | 'finished'

/** Bytes of a reason phrase that we send. */
export const REASON_SIZE_MAX = 200
/** Type, code, frame type, size of the reason, reason. */
export const CLOSE_FRAME_SIZE_MAX = 1 + 8 + 8 + 2 + REASON_SIZE_MAX

export class Closing {
  #state: ClosingState = 'open'
  #info: CloseInfo | undefined
  #frameType = 0
  #reasonBytes: Uint8Array = new Uint8Array()
  #endMs = Number.POSITIVE_INFINITY
  #isFrameDue = false
  #packetCount = 0

  get state(): ClosingState {
    return this.#state
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  get info(): CloseInfo | undefined {
    return this.#info
  }

  /** When the connection may be forgotten. */
  get deadlineMs(): number {
    return this.#endMs
  }

  /** A CONNECTION_CLOSE is to be sent. */
  get isFrameDue(): boolean {
    return this.#isFrameDue
  }

  /** We close. @param frameType that caused it, or 0. @param endMs when to forget. */
  close(info: CloseInfo, frameType: number, endMs: number): void {
    this.#state = 'closing'
    this.#info = info
    this.#frameType = frameType
    this.#reasonBytes = new TextEncoder().encode(info.reason).subarray(0, REASON_SIZE_MAX)
    this.#endMs = endMs
    this.#isFrameDue = true
  }

  /** The peer closed: whether or not we did before, nothing more is sent. */
  drain(info: CloseInfo, endMs: number): void {
    this.#state = 'draining'
    this.#info ??= info
    this.#endMs = Math.min(this.#endMs, endMs)
    this.#isFrameDue = false
  }

  /** At once, without a word. */
  finish(info: CloseInfo): void {
    this.#state = 'finished'
    this.#info ??= info
    this.#endMs = Number.POSITIVE_INFINITY
    this.#isFrameDue = false
  }

  /** A packet came while closing: the 1st, 2nd, 4th, 8th, … is answered. */
  packetReceived(): void {
    if (this.#state !== 'closing') return
    this.#packetCount++
    if ((this.#packetCount & (this.#packetCount - 1)) === 0) this.#isFrameDue = true
  }

  frameSent(): void {
    this.#isFrameDue = false
  }

  /** Before the handshake is done the peer must not learn the application's code and reason: others may read them. */
  writeFrame(writer: Writer, level: Level): void {
    const info = this.#info
    if (info === undefined) return
    const isHidden = info.isApplication && level !== LEVEL.application
    writer.u8(info.isApplication && !isHidden ? FRAME.applicationClose : FRAME.connectionClose)
    writer.varint(isHidden ? TRANSPORT_ERROR.applicationError : info.code)
    if (!info.isApplication || isHidden) writer.varint(this.#frameType)
    const reasonBytes = isHidden ? new Uint8Array() : this.#reasonBytes
    writer.varint(reasonBytes.length)
    writer.bytes(reasonBytes)
  }
}
