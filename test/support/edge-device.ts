/** The smallest device: one WebTransport session, one stream, frames out and in. For tests of the edge's side. */
import { setTimeout as sleep } from 'node:timers/promises'
import { loadWebTransport } from '../../src/quinn-transport/index.ts'
import {
  decodeFrame,
  EdgeFrameAssembler,
  encodeBareFrame,
  encodeFrame,
  type Frame,
} from '../../src/sdk/wire/edge/index.ts'

const WAIT_MS = 10_000

export interface EdgeDeviceOptions {
  readonly port: number
  readonly certificateSha256: string
  readonly isReliableOnly?: boolean
}

export class EdgeDevice {
  readonly frames: Frame[] = []
  /** Code and reason of the session's end. */
  readonly closed: Promise<{ closeCode?: number; reason?: string }>
  readonly #session: Awaited<ReturnType<typeof openSession>>
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>
  readonly #datagrams: WritableStreamDefaultWriter<Uint8Array>
  #wake: (() => void) | undefined

  static async connect(options: EdgeDeviceOptions): Promise<EdgeDevice> {
    const session = await openSession(options)
    return new EdgeDevice(session, await session.createBidirectionalStream({ waitUntilAvailable: true }))
  }

  private constructor(
    session: Awaited<ReturnType<typeof openSession>>,
    stream: Awaited<ReturnType<Awaited<ReturnType<typeof openSession>>['createBidirectionalStream']>>,
  ) {
    this.#session = session
    this.closed = session.closed
    this.#writer = stream.writable.getWriter() as WritableStreamDefaultWriter<Uint8Array>
    this.#datagrams = session.datagrams.createWritable().getWriter() as WritableStreamDefaultWriter<Uint8Array>
    for (const promise of [this.#writer.closed, this.#datagrams.closed, session.closed]) promise.catch(() => {})
    void this.#readAll(stream.readable)
  }

  send(...frames: Frame[]): void {
    this.sendBytes(Buffer.concat(frames.map(encodeFrame)))
  }

  sendBytes(bytes: Uint8Array): void {
    this.#writer.write(bytes).catch(() => {}) // the session may end meanwhile: `closed` tells
  }

  sendDatagram(frame: Frame<'datagram'>): void {
    this.#datagrams.write(encodeBareFrame(frame)).catch(() => {})
  }

  /** @returns the next frame of that type that has not been asked for yet. */
  async next<T extends Frame['type']>(type: T): Promise<Extract<Frame, { type: T }>> {
    const deadline = AbortSignal.timeout(WAIT_MS)
    for (;;) {
      const at = this.frames.findIndex((frame) => frame.type === type)
      const [found] = at < 0 ? [] : this.frames.splice(at, 1)
      if (found !== undefined) return found as Extract<Frame, { type: T }>
      if (deadline.aborted) throw new Error(`no ${type} within ${WAIT_MS} ms`)
      await Promise.race([
        new Promise<void>((resolve) => (this.#wake = resolve)),
        sleep(WAIT_MS, undefined, { signal: deadline, ref: false }).catch(() => {}),
      ])
    }
  }

  close(): void {
    this.#session.close({ closeCode: 0, reason: '' })
  }

  async #readAll(readable: AsyncIterable<Uint8Array>): Promise<void> {
    const assembler = new EdgeFrameAssembler(65_535)
    try {
      for await (const chunk of readable) {
        assembler.push(chunk, (frameView) => {
          const frame = decodeFrame(frameView)
          if (frame.type !== 'ignorable') this.frames.push(frame)
          return true
        })
        this.#wake?.()
      }
    } catch {
      // The session ended.
    }
  }
}

async function openSession({ port, certificateSha256, isReliableOnly = false }: EdgeDeviceOptions) {
  const { WebTransport } = await loadWebTransport()
  const value = Uint8Array.from(Buffer.from(certificateSha256, 'hex'))
  const session = new WebTransport(`https://127.0.0.1:${port}/edge`, {
    serverCertificateHashes: [{ algorithm: 'sha-256', value }],
    ...(isReliableOnly ? { forceReliable: true } : { requireUnreliable: true }),
  })
  session.closed.catch(() => {})
  await session.ready
  return session
}
