import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'

/** A TCP relay whose connections can be cut, and slow, to a server that may move. */
export class TcpRelay {
  readonly port: number
  /** What is on its way takes so long, each way, and so much longer for its size. */
  delayMs = 0
  bytesPerSecond = Number.POSITIVE_INFINITY
  /** A connection that carries these bytes ends with them, and they do not arrive. */
  hangsUpAt: string | null = null
  readonly #server: ReturnType<typeof createServer>
  readonly #sockets: Set<Socket>

  private constructor(server: ReturnType<typeof createServer>, sockets: Set<Socket>, port: number) {
    this.#server = server
    this.#sockets = sockets
    this.port = port
  }

  static async open(targetPort: () => number): Promise<TcpRelay> {
    const sockets = new Set<Socket>()
    const late = (from: Socket): Transform =>
      new Transform({
        transform(chunk: Buffer, _encoding, done) {
          if (relay.hangsUpAt !== null && chunk.includes(relay.hangsUpAt)) from.destroy()
          else setTimeout(done, relay.delayMs + (chunk.length / relay.bytesPerSecond) * 1000, null, chunk)
        },
      })
    const server = createServer((inner) => {
      const outer = connect(targetPort(), '127.0.0.1')
      for (const [one, other] of [
        [inner, outer],
        [outer, inner],
      ] as const) {
        sockets.add(one)
        one.on('error', () => {})
        one.on('close', () => {
          sockets.delete(one)
          other.destroy()
        })
        one.pipe(late(one)).pipe(other)
      }
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    assert.ok(typeof address === 'object' && address !== null)
    const relay = new TcpRelay(server, sockets, address.port)
    return relay
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.cut()
    this.#server.close()
  }
}
