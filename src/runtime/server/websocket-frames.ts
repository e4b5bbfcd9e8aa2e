/**
 * WebSocket frames of RFC 6455, the server's side. Pure.
 *
 *   0 fin:1 reserved:3 opcode:4 | 1 masked:1 length:7 | [length 16 or 64, big-endian] | mask 4 | payload
 *
 * Only what Iggy's clients send is taken: binary messages, masked, in one frame or several; pings and closes between them.
 * Payloads are unmasked in place and handed on as they arrive, so a frame's announced length allocates nothing.
 */
import { concatBytes } from '../../byte-concat.ts'

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const
export const CLOSE_NORMAL = 1000
export const CLOSE_PROTOCOL_ERROR = 1002
export const CLOSE_UNSUPPORTED = 1003
export const CLOSE_TOO_BIG = 1009

const MAX_CONTROL_BYTES = 125
const SHORT_HEAD_BYTES = 2
const MASK_BYTES = 4

export interface WebsocketSink {
  /** Bytes of a binary message, in order; the view must not outlive the call. */
  data(bytesView: Uint8Array): void
  ping(payload: Uint8Array): void
  /** No more comes; answer with `code`. */
  closed(code: number): void
}

export class WebsocketDecoder {
  private readonly sink: WebsocketSink
  private readonly maxMessageBytes: number
  /** Bytes of a frame head that is not whole yet. */
  private head = new Uint8Array(0)
  private payloadLeft = 0
  private readonly mask = new Uint8Array(MASK_BYTES)
  private maskAt = 0
  private opcode = -1
  private isFinal = false
  private isInMessage = false
  private messageBytes = 0
  private control: Uint8Array[] = []
  private isDone = false

  constructor(sink: WebsocketSink, maxMessageBytes: number) {
    this.sink = sink
    this.maxMessageBytes = maxMessageBytes
  }

  /** @param view unmasked in place. */
  receive(view: Uint8Array): void {
    let rest = view
    while (!this.isDone && (rest.length > 0 || this.isWholeFrame())) {
      if (this.isWholeFrame()) this.endFrame()
      else if (this.opcode < 0) rest = this.readHead(rest)
      else rest = this.readPayload(rest)
    }
  }

  private isWholeFrame(): boolean {
    return this.opcode >= 0 && this.payloadLeft === 0
  }

  private readHead(view: Uint8Array): Uint8Array {
    const have = this.head.length
    const bytes = have === 0 ? view : concatBytes([this.head, view.subarray(0, SHORT_HEAD_BYTES + 8 + MASK_BYTES)])
    const size = headSize(bytes)
    if (size === undefined || bytes.length < size) {
      this.head = new Uint8Array(bytes)
      return view.subarray(view.length)
    }
    this.head = new Uint8Array(0)
    this.startFrame(bytes, size)
    return view.subarray(size - have)
  }

  private startFrame(bytes: Uint8Array, size: number): void {
    const [first = 0, second = 0] = bytes
    const opcode = first & 15
    const length = lengthOf(bytes)
    const isControl = opcode >= OPCODE.close
    const fault = this.faultOf(first, second, length)
    if (fault !== null) {
      this.finish(fault)
      return
    }
    if (!isControl) {
      this.messageBytes += length
      this.isInMessage = true
    }
    this.opcode = opcode
    this.isFinal = (first & 0x80) !== 0
    this.payloadLeft = length
    this.mask.set(bytes.subarray(size - MASK_BYTES, size))
    this.maskAt = 0
    this.control = []
  }

  /** @returns the code to close with when the head is none a client may send. */
  private faultOf(first: number, second: number, length: number): number | null {
    const opcode = first & 15
    const isControl = opcode >= OPCODE.close
    if ((first & 0x70) !== 0 || (second & 0x80) === 0) return CLOSE_PROTOCOL_ERROR
    if (isControl) return length > MAX_CONTROL_BYTES || (first & 0x80) === 0 ? CLOSE_PROTOCOL_ERROR : null
    if (opcode === OPCODE.text) return CLOSE_UNSUPPORTED
    if (opcode !== OPCODE.binary && opcode !== OPCODE.continuation) return CLOSE_PROTOCOL_ERROR
    if ((opcode === OPCODE.continuation) !== this.isInMessage) return CLOSE_PROTOCOL_ERROR
    return this.messageBytes + length > this.maxMessageBytes ? CLOSE_TOO_BIG : null
  }

  private readPayload(view: Uint8Array): Uint8Array {
    const part = view.subarray(0, Math.min(view.length, this.payloadLeft))
    for (let index = 0; index < part.length; index++) {
      part[index] = (part[index] ?? 0) ^ (this.mask[this.maskAt & 3] ?? 0)
      this.maskAt++
    }
    this.payloadLeft -= part.length
    if (this.opcode >= OPCODE.close) this.control.push(new Uint8Array(part))
    else this.sink.data(part)
    return view.subarray(part.length)
  }

  private endFrame(): void {
    const { opcode, isFinal } = this
    this.opcode = -1
    if (opcode === OPCODE.ping) this.sink.ping(concatBytes(this.control))
    else if (opcode === OPCODE.close) this.finish(closeCodeOf(concatBytes(this.control)))
    else if (opcode !== OPCODE.pong && isFinal) {
      this.isInMessage = false
      this.messageBytes = 0
    }
  }

  private finish(code: number): void {
    this.isDone = true
    this.sink.closed(code)
  }
}

/** @returns head and payload of one unmasked, final frame. */
export function encodeWebsocketFrame(opcode: number, payload: Uint8Array): Uint8Array {
  const extra = payload.length < 126 ? 0 : payload.length <= 0xffff ? 2 : 8
  const bytes = new Uint8Array(SHORT_HEAD_BYTES + extra + payload.length)
  const view = new DataView(bytes.buffer)
  bytes[0] = 0x80 | opcode
  bytes[1] = extra === 0 ? payload.length : extra === 2 ? 126 : 127
  if (extra === 2) view.setUint16(SHORT_HEAD_BYTES, payload.length)
  if (extra === 8) view.setBigUint64(SHORT_HEAD_BYTES, BigInt(payload.length))
  bytes.set(payload, SHORT_HEAD_BYTES + extra)
  return bytes
}

/** A close frame's payload is its code. */
export function encodeClose(code: number): Uint8Array {
  return encodeWebsocketFrame(OPCODE.close, Uint8Array.of(code >> 8, code & 255))
}

/** @returns bytes of a head, undefined while its first two bytes are not there. */
function headSize(bytes: Uint8Array): number | undefined {
  if (bytes.length < SHORT_HEAD_BYTES) return undefined
  const short = (bytes[1] ?? 0) & 127
  const extra = short === 126 ? 2 : short === 127 ? 8 : 0
  const isMasked = ((bytes[1] ?? 0) & 0x80) !== 0
  return SHORT_HEAD_BYTES + extra + (isMasked ? MASK_BYTES : 0)
}

/** Beyond 2^53 the number is not exact, and refused by any limit. */
function lengthOf(bytes: Uint8Array): number {
  const short = (bytes[1] ?? 0) & 127
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (short === 126) return view.getUint16(SHORT_HEAD_BYTES)
  return short === 127 ? Number(view.getBigUint64(SHORT_HEAD_BYTES)) : short
}

/** A code that may stand on the wire is echoed; an empty close is a normal one. */
function closeCodeOf(payload: Uint8Array): number {
  if (payload.length === 0) return CLOSE_NORMAL
  const code = ((payload[0] ?? 0) << 8) | (payload[1] ?? 0)
  const isAllowed =
    payload.length > 1 &&
    ((code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code < 5000))
  return isAllowed ? code : CLOSE_PROTOCOL_ERROR
}
