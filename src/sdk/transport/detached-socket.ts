/**
 * A TCP socket as a plain stream, to put TLS on. TLS would otherwise take over the socket's handle, and a handle that was
 * taken over cannot be reset any more: resetting it anyway ends the process (Node 26).
 */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

export class DetachedSocket extends Duplex {
  readonly #socket: Socket

  constructor(socket: Socket) {
    super()
    this.#socket = socket
    socket.on('data', (chunk) => {
      if (!this.push(chunk)) socket.pause()
    })
    socket.on('end', () => this.push(null))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}
