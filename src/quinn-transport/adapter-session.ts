/** One WebTransport session of quinn as the package wants it. */
import { messageOf } from '../errors.ts'
import { QuinnStream } from './adapter-stream.ts'
import type { NativeBiStream, NativeRecvStream, NativeSendStream, NativeSession } from './native-types.ts'
import type { SessionOwner } from './package-types.ts'

/** The package's queue of received datagrams has no bound: the newest are dropped above this. */
const MAX_QUEUED_DATAGRAMS = 256

export class QuinnSession {
  jsobj: SessionOwner | undefined
  isClosed = false
  /** Called once when the session is over, whoever ended it. */
  onDown: (() => void) | undefined
  #native: NativeSession | undefined
  readonly #streams = new Set<WeakRef<QuinnStream>>()

  constructor(native: NativeSession) {
    this.#native = native
  }

  /** The package has taken the session: `jsobj` is set. */
  start(): void {
    const native = this.#native
    if (native === undefined) return
    this.jsobj?.onReady(native.protocol === null ? {} : { protocol: native.protocol })
    native.closed().then(
      (info) => this.#down(info.closeCode, info.reason),
      (error) => this.#down(0, messageOf(error)),
    )
    void this.#repeat(async () => this.#addBoth(await native.acceptBi(), true, 0))
    void this.#repeat(async () => this.#add(undefined, await native.acceptUni(), true, 0))
    void this.#repeat(async () => this.#receive(await native.recvDatagram()))
  }

  writeDatagram(bytesView: Uint8Array): { code: 'success' | 'tooBig' | 'internalError'; message?: string } {
    if (bytesView.byteLength > this.getMaxDatagramSize()) return { code: 'tooBig' }
    try {
      this.#native?.sendDatagram(Buffer.from(bytesView.buffer, bytesView.byteOffset, bytesView.byteLength))
      return { code: 'success' }
    } catch (error) {
      return { code: 'internalError', message: messageOf(error) }
    }
  }

  orderBidiStream(options: { sendOrder?: number }): boolean {
    // When the session ends meanwhile, the package itself rejects everything it has ordered.
    this.#native
      ?.openBi()
      .then((opened) => this.#addBoth(opened, false, options.sendOrder ?? 0))
      .catch(() => {})
    return true
  }

  orderUnidiStream(options: { sendOrder?: number }): boolean {
    this.#native
      ?.openUni()
      .then((send) => this.#add(send, undefined, false, options.sendOrder ?? 0))
      .catch(() => {})
    return true
  }

  /** quinn's figures are not handed out by the addon. */
  orderSessionStats(): void {
    this.jsobj?.onSessionStats({ timestamp: Date.now() })
  }

  orderDatagramStats(): void {
    this.jsobj?.onDatagramStats({ timestamp: Date.now() })
  }

  notifySessionDraining(): void {}

  getMaxDatagramSize(): number {
    try {
      return this.#native?.maxDatagramSize() ?? 0
    } catch {
      return 0 // the peer takes none
    }
  }

  close(info: { code: number; reason: string }): void {
    try {
      this.#native?.close(info.code, info.reason)
    } finally {
      this.#down(info.code, info.reason)
    }
  }

  async #repeat(step: () => Promise<void>): Promise<void> {
    try {
      while (!this.isClosed) await step()
    } catch {
      // The session ended: closed() reports it.
    }
  }

  #addBoth(opened: NativeBiStream, isIncoming: boolean, sendOrder: number): void {
    this.#add(opened.takeSend(), opened.takeRecv(), isIncoming, sendOrder)
  }

  #add(
    send: NativeSendStream | undefined,
    recv: NativeRecvStream | undefined,
    isIncoming: boolean,
    sendOrder: number,
  ): void {
    if (this.isClosed) return
    const stream = new QuinnStream(this, send, recv)
    this.#track(stream)
    const bidirectional = send !== undefined && recv !== undefined
    this.jsobj?.onStream({ stream, bidirectional, incoming: isIncoming, sendGroupId: 0n, sendOrder })
  }

  /** Weakly, since a finished stream is not told to us; dead entries are swept as the set doubles. */
  #track(stream: QuinnStream): void {
    this.#streams.add(new WeakRef(stream))
    if (this.#streams.size < this.#sweepAt) return
    for (const ref of this.#streams) if (ref.deref() === undefined) this.#streams.delete(ref)
    this.#sweepAt = Math.max(64, this.#streams.size * 2)
  }
  #sweepAt = 64

  #receive(datagram: Buffer): void {
    const queue = this.jsobj?.incomDatagramController_ ?? this.jsobj?.incomDatagramControllerBytes_
    if ((queue?.desiredSize ?? 0) < -MAX_QUEUED_DATAGRAMS) return
    this.jsobj?.onDatagramReceived({ datagram })
  }

  #down(errorcode: number, error: string): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#native = undefined
    for (const ref of this.#streams) ref.deref()?.release()
    this.#streams.clear()
    this.onDown?.()
    this.jsobj?.onClose({ errorcode, error })
  }
}
