import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'

/** A UDP relay to a port of this machine whose datagrams take so long each way; `rebind` gives each client a new source port. */
export class UdpRelay {
  delayMs = 0
  readonly port: number
  readonly #socket: Socket
  readonly #targetPort: number
  readonly #outer = new Map<string, Socket>()

  private constructor(socket: Socket, targetPort: number) {
    this.#socket = socket
    this.#targetPort = targetPort
    this.port = socket.address().port
    socket.on('message', (datagram, { port, address }) => {
      const outer = this.#outer.get(`${address}:${port}`) ?? this.#open(port, address)
      setTimeout(() => this.#isOpen(outer) && outer.send(datagram, this.#targetPort, '127.0.0.1'), this.delayMs)
    })
  }

  static async open(targetPort: number): Promise<UdpRelay> {
    const socket = createSocket('udp4')
    await once(socket.bind(0, '127.0.0.1'), 'listening')
    return new UdpRelay(socket, targetPort)
  }

  rebind(): void {
    for (const outer of this.#outer.values()) outer.close()
    this.#outer.clear()
  }

  close(): void {
    this.rebind()
    this.#socket.close()
  }

  #open(port: number, address: string): Socket {
    const outer = createSocket('udp4')
    this.#outer.set(`${address}:${port}`, outer)
    outer.on('message', (datagram) => {
      setTimeout(() => this.#isOpen(outer) && this.#socket.send(datagram, port, address), this.delayMs)
    })
    return outer
  }

  #isOpen(outer: Socket): boolean {
    return [...this.#outer.values()].includes(outer)
  }
}
