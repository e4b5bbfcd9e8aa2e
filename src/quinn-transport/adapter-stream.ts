/** One stream of quinn as the WebTransport package wants it. */
import { messageOf } from '../errors.ts'
import type { NativeRecvStream, NativeSendStream } from './native-types.ts'
import type { StreamOwner, TransportStream } from './package-types.ts'

/** The most that is read ahead of the consumer of a stream: one chunk. */
const READ_CHUNK_BYTES = 64 * 1024

/** What a stream needs to know about its session. */
export interface StreamSession {
  readonly isClosed: boolean
}

export class QuinnStream implements TransportStream {
  jsobj: StreamOwner | undefined
  readonly #session: StreamSession
  #send: NativeSendStream | undefined
  #recv: NativeRecvStream | undefined
  #wantsReads = false
  #isPumping = false
  #wasReset = false
  #wasStopped = false
  /** Writes, end and nothing else happen one after the other. */
  #sendTail: Promise<void> = Promise.resolve()

  constructor(session: StreamSession, send: NativeSendStream | undefined, recv: NativeRecvStream | undefined) {
    this.#session = session
    this.#send = send
    this.#recv = recv
  }

  startReading(): void {
    this.#wantsReads = true
    if (!this.#isPumping && this.#recv !== undefined) void this.#pump()
  }

  stopReading(): void {
    this.#wantsReads = false
  }

  /** Nothing is buffered here: what was not read stays in quinn. */
  drainReads(): void {}

  writeChunk(chunkView: Uint8Array): void {
    this.#enqueue(async (send) => {
      try {
        await send.write(asBuffer(chunkView))
        this.jsobj?.onStreamWrite({ success: true })
      } catch (error) {
        // A failed write means that the peer asked us to stop, unless we or the session ended it ourselves.
        if (this.#session.isClosed || this.#wasReset) this.jsobj?.onStreamWrite({ success: false })
        else this.jsobj?.onStreamRecvSignal({ nettask: 'stopSending', code: codeOf(error) })
      }
    })
  }

  streamFinal(): void {
    this.#enqueue(async (send) => {
      await send.finish().catch(() => {}) // the peer no longer wants it: the end is as final
      this.#send = undefined
      this.jsobj?.onStreamNetworkFinish({ nettask: 'streamFinal' })
    })
  }

  resetStream(code: number): void {
    this.#wasReset = true
    const send = this.#send
    this.#send = undefined
    settle(send?.reset(code), () => this.jsobj?.onStreamNetworkFinish({ nettask: 'resetStream' }))
  }

  stopSending(code: number): void {
    this.#wasStopped = true
    const recv = this.#recv
    this.#recv = undefined
    settle(recv?.stop(code), () => this.jsobj?.onStreamNetworkFinish({ nettask: 'stopSending' }))
  }

  updateSendOrderAndGroup(order: { sendOrder: number | bigint }): void {
    const priority = Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, Number(order.sendOrder)))
    settle(this.#send?.setPriority(priority), () => {})
  }

  /** Lets go of the native halves: they keep the UDP port bound for as long as they are reachable. */
  release(): void {
    this.#send = undefined
    this.#recv = undefined
  }

  async #pump(): Promise<void> {
    this.#isPumping = true
    await null // the package calls startReading() inside its constructor, before it can take a chunk
    try {
      while (this.#wantsReads && this.#recv !== undefined) {
        if (!(await this.#readOnce(this.#recv))) break
      }
    } catch {
      // The package could not take the chunk: its side of the stream is over already.
      this.stopSending(0)
    }
    this.#isPumping = false
  }

  /** @returns whether the stream goes on. */
  async #readOnce(recv: NativeRecvStream): Promise<boolean> {
    let chunk: Buffer | null
    try {
      chunk = await recv.read(READ_CHUNK_BYTES)
    } catch (error) {
      this.#recv = undefined
      if (!this.#session.isClosed && !this.#wasStopped) {
        this.jsobj?.onStreamRecvSignal({ nettask: 'resetStream', code: codeOf(error) })
      }
      return false
    }
    if (this.#session.isClosed) return false
    if (chunk === null) {
      this.#recv = undefined
      this.jsobj?.commitReadBuffer({ fin: true })
      return false
    }
    if (chunk.byteLength === 0) return true // a byte stream takes no empty chunks
    const buffer = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    this.jsobj?.commitReadBuffer({ buffer, readBytes: buffer.byteLength, drained: true, fin: false })
    if (this.#isAhead()) this.#wantsReads = false
    return true
  }

  /** The consumer has not taken what it was given: it calls startReading() when it wants more. */
  #isAhead(): boolean {
    if (this.jsobj === undefined || this.jsobj.readableclosed) return true
    return (this.jsobj.readableController?.desiredSize ?? 0) < 0
  }

  #enqueue(step: (send: NativeSendStream) => Promise<void>): void {
    this.#sendTail = this.#sendTail.then(async () => {
      if (this.#send !== undefined) await step(this.#send)
      else this.jsobj?.onStreamWrite({ success: false })
    })
  }
}

function asBuffer(view: Uint8Array): Buffer {
  return Buffer.from(view.buffer, view.byteOffset, view.byteLength)
}

/** The native layer gives a peer's error code only as text. */
function codeOf(error: unknown): number {
  const match = /(?:code|error)[: ]+(\d+)/.exec(messageOf(error))
  return Number(match?.[1] ?? 0)
}

function settle(work: Promise<void> | undefined, done: () => void): void {
  ;(work ?? Promise.resolve()).then(done, done)
}
