/** Listeners that turn clients away because they have too many, in the words of `HealthWatch`. Pure. */
import type { Occupancy } from '../connection-count.ts'
import type { PartReport } from './health.ts'

export interface ListenerOccupancy extends Occupancy {
  readonly name: 'tcp' | 'websocket' | 'webtransport' | 'quic' | 'http'
}

/** The settings that limit connections. */
const LIMITS: Readonly<Record<ListenerOccupancy['name'], string>> = {
  tcp: 'tcp.max_connections',
  websocket: 'websocket.max_connections',
  webtransport: 'webtransport.max_sessions or max_sessions_per_peer',
  quic: 'quic.max_connections or max_connections_per_peer',
  http: 'http.max_connections',
}

export class ConnectionReports {
  /** What each listener had turned away when it was last reported. */
  readonly #refused = new Map<string, number>()

  /** All else goes on, so it is not essential. One whose places go from hand to hand may have one free just now. */
  report({ name, openConnections, maxConnections, refusedConnections }: ListenerOccupancy): PartReport {
    const hasRefused = refusedConnections > (this.#refused.get(name) ?? 0)
    this.#refused.set(name, refusedConnections)
    const isFull = openConnections >= maxConnections
    const refused = `${refusedConnections} ${refusedConnections === 1 ? 'was' : 'were'} turned away since the start`
    const text = `${openConnections} of ${maxConnections} connections are open, ${refused}`
    return {
      name: `connections ${name}`,
      kind: 'connections',
      state: isFull || hasRefused ? 'failed' : 'running',
      cause: isFull || hasRefused ? text : '',
      action: `See which clients hold the connections (iggy-edge client list, ss -tn), or raise ${LIMITS[name]}.`,
      waiting: 0,
      progress: 0,
      isEssential: false,
    }
  }
}
