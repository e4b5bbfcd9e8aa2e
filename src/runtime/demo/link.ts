/** A TCP link that can be cut: what stands between the demo's edge and its central server, and in tests. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { assert } from '../../assert.ts'

/** Connections the link carries at once; further ones are closed at once. */
const MAX_CONNECTIONS = 64

export interface Link extends AsyncDisposable {
  readonly host: string
  readonly port: number
  readonly isCut: boolean
  /** Drops all connections and refuses new ones until `restore`. */
  cut(): void
  restore(): void
  close(): Promise<void>
}

/** Starts forwarding a loopback port of its own to `target`. */
export async function openLink(target: { readonly host: string; readonly port: number }): Promise<Link> {
  const sockets = new Set<Socket>()
  let isCut = false
  const server: Server = createServer((near) => {
    if (isCut || sockets.size >= MAX_CONNECTIONS * 2) return void near.destroy()
    const far = connect(target)
    const own = (socket: Socket, other: Socket) => {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
      socket.pipe(other)
    }
    own(near, far)
    own(far, near)
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const bound = server.address()
  assert(typeof bound === 'object' && bound !== null, 'a listening TCP server has an address')
  const drop = () => {
    for (const socket of sockets) socket.destroy()
  }
  const close = async () => {
    drop()
    if (server.listening) await new Promise<void>((resolve) => server.close(() => resolve()))
  }
  return {
    host: '127.0.0.1',
    port: bound.port,
    get isCut() {
      return isCut
    },
    cut() {
      isCut = true
      drop()
    },
    restore() {
      isCut = false
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
