/**
 * Tells which ends of kept HTTP connections are news: perhaps the server is going down. Most are not. A server, or a proxy
 * on the way, closes what is idle for a few seconds, and a look at the server because of that opens the next connection
 * that will be idle: who took each end for news would look without end, at the cost of the link.
 */
import type { Clock } from '../../clock.ts'

/** As much of a socket as is watched. */
export interface WatchedSocket {
  /** It was idle for as long as the server said it keeps one: our side closes it now. */
  once(event: 'timeout', callback: () => void): unknown
  once(event: 'close', callback: () => void): unknown
}

export interface ConnectionEndsOptions {
  readonly clock: Clock
  /** Looks come this often by themselves: what only they use, and lived no longer, was closed for being idle. */
  readonly lookIntervalUs: number
  readonly onNews: () => void
}

interface Connection {
  readonly openedUs: number
  hasCarriedWork: boolean
  /** Closed on this side, which tells nothing of the other. */
  isTimedOut: boolean
  /** The answer said that it ends with it. */
  isEndAnnounced: boolean
}

export class ConnectionEnds {
  readonly #options: ConnectionEndsOptions
  readonly #connections = new Map<WatchedSocket, Connection>()

  constructor(options: ConnectionEndsOptions) {
    this.#options = options
  }

  /** A request goes over it. @param isLook it only asks how the server is: what it was told is nothing to lose. */
  carries(socket: WatchedSocket, isLook: boolean): void {
    const connection = this.#connections.get(socket) ?? this.#watch(socket)
    if (!isLook) connection.hasCarriedWork = true
  }

  announced(socket: WatchedSocket): void {
    const connection = this.#connections.get(socket)
    if (connection !== undefined) connection.isEndAnnounced = true
  }

  #watch(socket: WatchedSocket): Connection {
    const openedUs = this.#options.clock.monotonicUs()
    const connection = { openedUs, hasCarriedWork: false, isTimedOut: false, isEndAnnounced: false }
    this.#connections.set(socket, connection)
    socket.once('timeout', () => {
      connection.isTimedOut = true
    })
    socket.once('close', () => {
      this.#connections.delete(socket)
      if (this.#isNews(connection)) this.#options.onNews()
    })
    return connection
  }

  #isNews({ openedUs, hasCarriedWork, isTimedOut, isEndAnnounced }: Connection): boolean {
    if (isTimedOut || isEndAnnounced) return false
    return hasCarriedWork || this.#options.clock.monotonicUs() - openedUs >= this.#options.lookIntervalUs
  }
}
