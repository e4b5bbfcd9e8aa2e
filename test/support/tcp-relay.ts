import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A TCP relay whose connections can be cut, to a server that may move. */
export class TcpRelay {
  readonly port: number
  readonly #server: ReturnType<typeof createServer>
  readonly #sockets: Set<Socket>

  private constructor(server: ReturnType<typeof createServer>, sockets: Set<Socket>, port: number) {
    this.#server = server
    this.#sockets = sockets
    this.port = port
  }

  static async open(targetPort: () => number): Promise<TcpRelay> {
    const sockets = new Set<Socket>()
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
        one.pipe(other)
      }
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    assert.ok(typeof address === 'object' && address !== null)
    return new TcpRelay(server, sockets, address.port)
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.cut()
    this.#server.close()
  }
}
