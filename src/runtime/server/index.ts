/** Iggy's binary protocol for clients, both generations: over TCP and TLS, WebSocket, and whatever else carries bytes. */
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log/index.ts'
import type { Logger } from '../../logger.ts'
import type { Broker } from '../broker/index.ts'
import type { ByteSession, ByteTransport, StreamCarrier, StreamSession } from './byte-session.ts'
import { Connection } from './connection.ts'
import { connectionLimitsOf, SWEEP_INTERVAL_MS, type TcpSettings } from './defaults.ts'
import { createServerContext } from './server-context.ts'
import { StreamClient } from './stream-client.ts'

export type { ByteSession, ByteTransport, StreamCarrier, StreamSession } from './byte-session.ts'
export * from './defaults.ts'
export { ERROR_MAP, type ErrorFace, iggyCodeFor } from './error-map.ts'
export { STREAM_CLIENT_CODES } from './stream-client.ts'
export { type Listener, listenTcp, type TcpListener, type TcpListenerOptions } from './tcp-listener.ts'
export { listenWebsocket, type WebsocketListenerOptions } from './websocket-listener.ts'

export interface ProtocolServerOptions {
  readonly broker: Broker
  readonly log: Log
  readonly clock: Clock
  readonly logger: Logger
  readonly settings: TcpSettings
  /** Such as "0.9.0": what logins are answered with. */
  readonly serverVersion: string
}

export interface ProtocolServer extends AsyncDisposable {
  /** Clients: of those with many streams, the connections. */
  readonly connectionCount: number
  /** One connection, whatever carries it: a socket, a WebSocket, a WebTransport stream. */
  acceptByteSession(transport: ByteTransport): ByteSession
  /** One connection whose every request comes on a stream of its own: plain QUIC. */
  acceptStreamSession(carrier: StreamCarrier): StreamSession
  /** Looks at time limits now; a timer does so every second. */
  sweep(): void
  /** Lets connections finish what they are answering, then ends them. Idempotent, bounded by `graceMs`. */
  close(graceMs?: number): Promise<void>
}

const CLOSE_GRACE_MS = 2000

export function createProtocolServer(options: ProtocolServerOptions): ProtocolServer {
  const { settings, clock } = options
  const connections = new Set<Connection>()
  const clients = new Set<StreamClient>()
  let onEmpty: (() => void) | null = null
  const server = createServerContext({
    ...options,
    limits: connectionLimitsOf(settings),
    maxInFlightBytes: settings.max_requests_in_flight_size,
  })
  const sweep = () => {
    const nowUs = clock.monotonicUs()
    for (const each of [...connections, ...clients]) each.sweep(nowUs)
  }
  const isEmpty = () => connections.size === 0 && clients.size === 0
  const timer = setInterval(sweep, SWEEP_INTERVAL_MS)
  timer.unref()

  async function close(graceMs = CLOSE_GRACE_MS): Promise<void> {
    clearInterval(timer)
    for (const each of [...connections, ...clients]) each.close()
    if (isEmpty()) return
    const emptied = Promise.withResolvers<void>()
    const deadline = setTimeout(() => {
      for (const each of [...connections, ...clients]) each.destroy()
      emptied.resolve()
    }, graceMs)
    onEmpty = emptied.resolve
    await emptied.promise
    clearTimeout(deadline)
  }

  return {
    get connectionCount() {
      return connections.size + clients.size
    },
    acceptByteSession(transport) {
      const connection = new Connection(server, transport, (closed) => {
        connections.delete(closed)
        if (isEmpty()) onEmpty?.()
      })
      connections.add(connection)
      return connection
    },
    acceptStreamSession(carrier) {
      const client = new StreamClient(server, carrier, () => {
        clients.delete(client)
        if (isEmpty()) onEmpty?.()
      })
      clients.add(client)
      return client
    },
    sweep,
    close,
    [Symbol.asyncDispose]: close,
  }
}
