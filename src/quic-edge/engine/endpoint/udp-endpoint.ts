/**
 * The socket of all connections: datagrams in, datagrams out, time. One timer a connection, re-armed only when it must be
 * earlier; one flush a turn of the event loop, so that what several streams have to say shares packets.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { EdgeError, messageOf, systemCodeOf } from '../../../errors.ts'
import type { Logger } from '../../../logger.ts'
import type { ConnectionHost, EngineConnection, PeerAddress } from '../connection/api.ts'
import type { Acceptance, Router } from './router.ts'

/** The kernel may give less. */
const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024
/** Datagrams of one connection in one turn: then others get theirs. */
const MAX_DATAGRAMS_PER_TURN = 48
/** What the kernel does not take waits in memory up to here; more is dropped, as the network would. */
const MAX_SEND_QUEUE_BYTES = 4 * 1024 * 1024
/**
 * Connections that are closed and wait for late packets: nobody counts them any more, and a peer may open and close as fast as it
 * can. Of more the oldest are forgotten before their time, as is allowed (RFC 9000 section 10.2): late packets get a reset.
 */
export const MAX_CLOSED_CONNECTIONS = 256
/** Timers fire up to a millisecond early. */
const TIMER_SLACK_MS = 0.5

/** What came and went, since the start. Packets are those of connections. */
export interface EndpointTraffic {
  receivedPackets: number
  sentPackets: number
  lostPackets: number
  strayDatagrams: number
  unsentDatagrams: number
}

/** One connection, as far as the socket needs to know it. */
export interface Entry {
  readonly connection: EngineConnection
  timer: NodeJS.Timeout | undefined
  timerAtMs: number
  isMarked: boolean
  isConnected: boolean
  /** The address of its last datagram: the same object for the same address, made once. */
  peer: PeerAddress
}

export interface UdpEndpointOptions {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  readonly reusePort: boolean
  readonly router: Router<Entry>
  readonly logger: Logger
  nowMs(): number
  /** A client's first packet: makes the connection. */
  accept(acceptance: Acceptance, peer: PeerAddress, host: ConnectionHost): EngineConnection
  /** Nothing is kept of a connection any more: it is over, or its first packet was nobody's. */
  forgotten(connection: EngineConnection): void
  resetToken(idView: Uint8Array): Uint8Array
}

export class UdpEndpoint {
  readonly host: string
  readonly #options: UdpEndpointOptions
  readonly #socket: Socket
  readonly #entries = new Set<Entry>()
  /** Closed and not yet forgotten, oldest first. */
  readonly #closed = new Set<Entry>()
  #marked: Entry[] = []
  #isScheduled = false
  #isClosed = false
  /** Of packets, those of connections that are forgotten. */
  readonly #counts: EndpointTraffic = {
    receivedPackets: 0,
    sentPackets: 0,
    lostPackets: 0,
    strayDatagrams: 0,
    unsentDatagrams: 0,
  }

  /** Binds. @throws EDGE_ADDRESS_IN_USE, EDGE_IO. */
  static async open(options: UdpEndpointOptions): Promise<UdpEndpoint> {
    const { address, family } = await resolve(options)
    const socket = createSocket({
      type: family === 6 ? 'udp6' : 'udp4',
      reusePort: options.reusePort,
      recvBufferSize: SOCKET_BUFFER_BYTES,
      sendBufferSize: SOCKET_BUFFER_BYTES,
      // Addresses of peers are addresses already, and a promise for each packet would cost more than the packet.
      lookup: (name, _options, callback) => callback(null, name, family),
    })
    await bind(socket, address, options)
    return new UdpEndpoint(options, socket)
  }

  private constructor(options: UdpEndpointOptions, socket: Socket) {
    this.#options = options
    this.#socket = socket
    this.host = options.host
    socket.on('message', (datagram, from) => this.#received(datagram, from))
    // A peer that is gone, a network that is down: the connections find out by themselves.
    socket.on('error', (error) => options.logger.debug('quic.socket.error', { error: error.message }))
  }

  get port(): number {
    return this.#socket.address().port
  }

  get traffic(): EndpointTraffic {
    const counts = { ...this.#counts }
    for (const { connection } of this.#entries) addPackets(counts, connection)
    return counts
  }

  /** Sends what connections have left to say, and gives the port back. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#run()
    this.#isClosed = true
    for (const entry of this.#entries) clearTimeout(entry.timer)
    this.#entries.clear()
    await new Promise<void>((resolve) => this.#socket.close(resolve))
  }

  // ---- in

  #received(datagram: Buffer, from: RemoteInfo): void {
    // Forged: nothing can be sent to port 0, and trying to would throw.
    if (from.port === 0) return
    const { router } = this.#options
    const nowMs = this.#options.nowMs()
    const known = router.find(datagram)
    if (known !== undefined) {
      this.#deliver(known, datagram, from, nowMs)
      return
    }
    const peer = peerOf(from)
    const answer = router.answer(datagram, peer, nowMs)
    if (answer === null) this.#counts.strayDatagrams++
    else if (answer.type === 'send') this.#send(answer.bytes, peer)
    else this.#accept(answer.acceptance, datagram, peer, nowMs)
  }

  #deliver(entry: Entry, datagram: Buffer, from: RemoteInfo, nowMs: number): void {
    if (entry.peer.port !== from.port || entry.peer.address !== from.address) entry.peer = peerOf(from)
    entry.connection.receive(datagram, entry.peer, nowMs)
    if (!entry.isConnected && entry.connection.isConnected) {
      entry.isConnected = true
      this.#options.router.connected(entry)
    }
    this.#mark(entry)
  }

  #accept(acceptance: Acceptance, datagram: Buffer, peer: PeerAddress, nowMs: number): void {
    const { router } = this.#options
    let entry: Entry | undefined
    // Ids and wakes may come from within the constructor, before there is an entry.
    const early: Uint8Array[] = []
    const connection = this.#options.accept(acceptance, peer, {
      connectionIdAdded: (idBytes) => {
        if (entry === undefined) early.push(idBytes)
        else router.addId(entry, idBytes)
      },
      connectionIdRetired: (idBytes) => {
        if (entry !== undefined) router.removeId(entry, idBytes)
      },
      statelessResetToken: (idBytes) => this.#options.resetToken(idBytes),
      wake: () => {
        if (entry !== undefined) this.#mark(entry)
      },
    })
    entry = { connection, timer: undefined, timerAtMs: Infinity, isMarked: false, isConnected: false, peer }
    this.#entries.add(entry)
    router.add(entry, acceptance)
    for (const idBytes of early) router.addId(entry, idBytes)
    connection.receive(datagram, peer, nowMs)
    if (connection.hasAuthenticated) this.#mark(entry)
    else this.#forget(entry)
  }

  // ---- out

  #mark(entry: Entry): void {
    if (entry.isMarked) return
    entry.isMarked = true
    this.#marked.push(entry)
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#run())
  }

  #run(): void {
    this.#isScheduled = false
    if (this.#isClosed) return
    const marked = this.#marked
    this.#marked = []
    const nowMs = this.#options.nowMs()
    for (const entry of marked) {
      entry.isMarked = false
      if (!this.#entries.has(entry)) continue
      if (entry.connection.flush(nowMs, this.#send, MAX_DATAGRAMS_PER_TURN)) this.#mark(entry)
      this.#arm(entry, nowMs)
    }
  }

  readonly #send = (datagramBytes: Uint8Array, to: PeerAddress): void => {
    if (this.#isClosed) return
    if (this.#socket.getSendQueueSize() > MAX_SEND_QUEUE_BYTES) {
      this.#counts.unsentDatagrams++
      return
    }
    this.#socket.send(datagramBytes, 0, datagramBytes.length, to.port, to.address)
  }

  // ---- time

  #arm(entry: Entry, nowMs: number): void {
    const { connection } = entry
    if (connection.isFinished) {
      this.#forget(entry)
      return
    }
    if (connection.closeInfo !== undefined) this.#keepClosed(entry)
    const { deadlineMs } = connection
    // A timer that comes too early looks again: cheaper than a new timer for each packet.
    if (deadlineMs === Infinity || (entry.timer !== undefined && entry.timerAtMs <= deadlineMs)) return
    clearTimeout(entry.timer)
    entry.timerAtMs = deadlineMs
    entry.timer = setTimeout(() => this.#due(entry), Math.max(1, deadlineMs - nowMs))
    entry.timer.unref()
  }

  #due(entry: Entry): void {
    entry.timer = undefined
    const nowMs = this.#options.nowMs()
    const { deadlineMs } = entry.connection
    if (deadlineMs > nowMs + TIMER_SLACK_MS) {
      this.#arm(entry, nowMs)
      return
    }
    entry.connection.tick(Math.max(nowMs, deadlineMs))
    this.#mark(entry)
  }

  #keepClosed(entry: Entry): void {
    this.#closed.add(entry)
    const [oldest] = this.#closed
    if (this.#closed.size > MAX_CLOSED_CONNECTIONS && oldest !== undefined) this.#forget(oldest)
  }

  #forget(entry: Entry): void {
    clearTimeout(entry.timer)
    entry.timer = undefined
    if (this.#entries.delete(entry)) addPackets(this.#counts, entry.connection)
    this.#closed.delete(entry)
    this.#options.router.remove(entry)
    this.#options.forgotten(entry.connection)
  }
}

function addPackets(counts: EndpointTraffic, { stats }: EngineConnection): void {
  counts.receivedPackets += stats.receivedPackets
  counts.sentPackets += stats.sentPackets
  counts.lostPackets += stats.lostPackets
}

function peerOf({ address, port }: RemoteInfo): PeerAddress {
  return { key: `${address}|${port}`, address, port }
}

async function resolve({ host, port }: UdpEndpointOptions): Promise<{ address: string; family: number }> {
  try {
    return await lookup(host)
  } catch (cause) {
    throw new EdgeError('EDGE_IO', `listening on UDP ${host}:${port}: ${messageOf(cause)}`, { cause })
  }
}

function bind(socket: Socket, address: string, { host, port }: UdpEndpointOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (cause: Error) => {
      socket.close()
      const code = systemCodeOf(cause) === 'EADDRINUSE' ? 'EDGE_ADDRESS_IN_USE' : 'EDGE_IO'
      reject(new EdgeError(code, `listening on UDP ${host}:${port}: ${cause.message}`, { cause }))
    }
    socket.once('error', failed)
    socket.bind({ port, address }, () => {
      socket.off('error', failed)
      resolve()
    })
  })
}
