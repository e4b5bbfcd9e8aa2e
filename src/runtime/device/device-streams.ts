/**
 * The streams of one device session: bytes to frames and back. Before `hello` only the stream that begins with it is read,
 * while its credential is checked none: what came in the first flight waits as bytes.
 */

import type { QuicStream } from '../../quic-edge/index.ts'
import {
  aboutFrame,
  beginsWith,
  decodeFrame,
  EdgeFrameAssembler,
  encodeFrame,
  encodeHead,
  FIRST_FLIGHT_BYTES,
  type Frame,
  faultOf,
  frameFault,
  MAX_HELLO_BYTES,
} from '../../sdk/wire/edge/index.ts'
import type { Refusal } from './core/exchange.ts'

export interface FrameSink {
  frame(stream: number, frame: Frame, sizeBytes: number): void
  refused(stream: number, refusal: Refusal): void
  /** The device ended its direction, and everything it sent there was read. */
  ended(stream: number): void
  /** Which frames need not wait. */
  readonly reads: 'hello' | 'nothing' | 'everything'
}

interface OpenStream {
  readonly stream: QuicStream
  readonly assembler: EdgeFrameAssembler
  waiting: Uint8Array[]
  /** It begins with `hello`. */
  isControl: boolean
  hasEnded: boolean
}

export class DeviceStreams {
  readonly #sink: FrameSink
  readonly #streams = new Map<number, OpenStream>()
  #maxFrameBytes = MAX_HELLO_BYTES
  #waitingBytes = 0

  constructor(sink: FrameSink) {
    this.#sink = sink
  }

  get count(): number {
    return this.#streams.size
  }

  add(stream: QuicStream): void {
    const assembler = new EdgeFrameAssembler(this.#maxFrameBytes)
    this.#streams.set(stream.id, { stream, assembler, waiting: [], isControl: false, hasEnded: false })
  }

  remove(id: number): void {
    const waiting = this.#streams.get(id)?.waiting ?? []
    this.#waitingBytes -= waiting.reduce((sum, { byteLength }) => sum + byteLength, 0)
    this.#streams.delete(id)
  }

  /** `hello` is through: frames up to the negotiated size are taken from now on. */
  set maxFrameBytes(sizeBytes: number) {
    this.#maxFrameBytes = sizeBytes
    for (const { assembler } of this.#streams.values()) assembler.maxFrameBytes = sizeBytes
  }

  /** @returns false when more came than may wait. */
  received(id: number, bytesView: Uint8Array): boolean {
    const open = this.#streams.get(id)
    if (open === undefined) return true
    if (open.waiting.length === 0 && this.#mayRead(open)) {
      const usedBytes = this.#push(open, bytesView)
      if (usedBytes === bytesView.byteLength) return true
      return this.#wait(open, bytesView.subarray(usedBytes))
    }
    const mayWait = this.#wait(open, bytesView)
    if (mayWait && this.#sink.reads === 'hello') this.#lookForHello(open)
    return mayWait
  }

  /** Reads what has waited, on the control stream first: what it declares may be used on the others. */
  resume(): void {
    const all = [...this.#streams.values()]
    for (const open of [...all.filter(({ isControl }) => isControl), ...all.filter(({ isControl }) => !isControl)]) {
      this.#readWaiting(open)
      if (open.hasEnded && open.waiting.length === 0) this.#finish(open)
    }
  }

  /** The device ended its direction. */
  ended(id: number): void {
    const open = this.#streams.get(id)
    if (open === undefined) return
    open.hasEnded = true
    if (open.waiting.length === 0) this.#finish(open)
  }

  /** @returns false when the device does not read. */
  send(id: number, frame: Frame): boolean {
    return this.#streams.get(id)?.stream.write(encodeFrame(frame)) ?? true
  }

  end(id: number): void {
    this.#streams.get(id)?.stream.end()
  }

  endAll(): void {
    for (const { stream } of this.#streams.values()) stream.end()
  }

  reset(id: number, code: number): void {
    this.#streams.get(id)?.stream.reset(code)
  }

  #mayRead({ isControl }: OpenStream): boolean {
    const { reads } = this.#sink
    return reads === 'everything' || (reads === 'hello' && isControl)
  }

  /** Packets of a first flight overtake each other: a stream that begins with something else may belong to it. */
  #lookForHello(open: OpenStream): void {
    try {
      open.isControl = beginsWith('hello', Buffer.concat(open.waiting))
    } catch (error) {
      this.#refuse(open.stream.id, error, new Uint8Array())
    }
    this.#readWaiting(open)
  }

  #readWaiting(open: OpenStream): void {
    while (open.waiting.length > 0 && this.#mayRead(open)) {
      const bytes = open.waiting.shift() ?? new Uint8Array()
      this.#waitingBytes -= bytes.byteLength
      const usedBytes = this.#push(open, bytes)
      if (usedBytes < bytes.byteLength) this.#wait(open, bytes.subarray(usedBytes), 'front')
    }
  }

  #finish(open: OpenStream): void {
    try {
      open.assembler.finish()
      this.#sink.ended(open.stream.id)
    } catch (error) {
      this.#refuse(open.stream.id, error, new Uint8Array())
    }
  }

  /** @returns bytes used; all of them when framing is lost, since the session ends then. */
  #push(open: OpenStream, bytesView: Uint8Array): number {
    const { id } = open.stream
    try {
      const usedBytes = open.assembler.push(bytesView, (frameView) => {
        this.#take(id, frameView)
        return this.#mayRead(open)
      })
      open.stream.grant(usedBytes)
      return usedBytes
    } catch (error) {
      this.#refuse(id, error, new Uint8Array())
      return bytesView.byteLength
    }
  }

  #take(id: number, frameView: Uint8Array): void {
    try {
      const frame = decodeFrame(frameView)
      const sizeBytes = frameView.byteLength + encodeHead(frameView.byteLength).byteLength
      if (frame.type !== 'ignorable') this.#sink.frame(id, frame, sizeBytes)
    } catch (error) {
      this.#refuse(id, error, frameView)
    }
  }

  #refuse(id: number, error: unknown, frameView: Uint8Array): void {
    const fault = faultOf(error)
    if (fault === undefined) throw error
    const text = error instanceof Error ? error.message : ''
    this.#sink.refused(id, { fault, ...aboutFrame(frameView), text })
  }

  #wait(open: OpenStream, bytesView: Uint8Array, where: 'back' | 'front' = 'back'): boolean {
    const bytes = new Uint8Array(bytesView)
    if (where === 'front') open.waiting.unshift(bytes)
    else open.waiting.push(bytes)
    this.#waitingBytes += bytes.byteLength
    return this.#waitingBytes <= FIRST_FLIGHT_BYTES
  }
}

/** @returns the bare frame of a datagram, or undefined for anything else: it is dropped and counted. */
export function readDatagram(bytesView: Uint8Array): Frame<'datagram'> | undefined {
  try {
    const frame = decodeFrame(bytesView)
    if (frame.type !== 'datagram') throw frameFault('frame-unknown', 'only readings come in datagrams')
    return frame
  } catch (error) {
    if (faultOf(error) === undefined) throw error
    return undefined
  }
}
