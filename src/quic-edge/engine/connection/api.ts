/**
 * What the connection core offers to the endpoint (datagrams, time, connection ids) and to the driver (streams). Types
 * alone: the core is `connection.ts`.
 *
 * Times are milliseconds as numbers with fractions, of any monotonic clock; the core never reads one. Callbacks run
 * within the call that causes them (`receive`, `tick`, `grant`, …) and may call back into the connection.
 */
import type { TlsEndpoint, TlsEvents } from '../tls/api.ts'

export type Role = 'client' | 'server'

/** Where datagrams come from and go to. `key` is the same for the same address and port, and for no other. */
export interface PeerAddress {
  readonly key: string
  readonly address: string
  readonly port: number
}

/** What a peer may make one connection hold, and how long it may stay. */
export interface ConnectionLimits {
  /** Bytes received on all streams and not granted back. */
  readonly connectionWindowBytes: number
  /** Bytes received on one stream and not granted back. */
  readonly streamWindowBytes: number
  /** Streams of each direction that the peer may have open at once. */
  readonly maxBidirectionalStreams: number
  readonly maxUnidirectionalStreams: number
  /** Unacknowledged and unsent bytes of one stream above which `write` asks to wait. */
  readonly sendHighWaterBytes: number
  /** 0: never idle. */
  readonly idleTimeoutMs: number
  /** From creation to a confirmed handshake. */
  readonly handshakeTimeoutMs: number
  /** How long we may hold back an acknowledgement. */
  readonly maxAckDelayMs: number
  /** Size of the datagrams we send, at least 1,200. */
  readonly datagramSize: number
}

/** What the endpoint does for one connection. */
export interface ConnectionHost {
  /** Datagrams to this id belong to the connection from now on. The bytes are the host's to keep. */
  connectionIdAdded(idBytes: Uint8Array): void
  connectionIdRetired(idBytes: Uint8Array): void
  /** 16 bytes that prove to the peer that the connection behind the id is gone; told to the peer beforehand. */
  statelessResetToken(idBytes: Uint8Array): Uint8Array
  /** There may be something to send, or the deadline moved: call `flush` soon, once for many wakes. */
  wake(): void
}

interface CommonOptions {
  readonly nowMs: number
  readonly peer: PeerAddress
  readonly limits: ConnectionLimits
  readonly host: ConnectionHost
  /** Unpredictable bytes. */
  random(size: number): Uint8Array
  /** Makes our half of TLS; `transportParametersBytes` are ours, to be sent. Events may come within the call. */
  createTls(events: TlsEvents, transportParametersBytes: Uint8Array): TlsEndpoint
}

/** A connection that the endpoint makes for a client's first Initial packet. */
export interface ServerConnectionOptions extends CommonOptions {
  readonly role: 'server'
  /** Destination id of the Initial packet: the Initial keys come from it. */
  readonly initialDestinationIdBytes: Uint8Array
  /** Source id of the Initial packet. */
  readonly peerIdBytes: Uint8Array
  /** The destination id of the very first Initial packet: another than the above after a Retry. */
  readonly originalDestinationIdBytes: Uint8Array
  /** The source id of our Retry packet, when the client came by one. */
  readonly retrySourceIdBytes: Uint8Array | undefined
  /** A Retry token proved the address: no amplification limit. */
  readonly isPeerValidated: boolean
}

/** The client half, for tests. */
export interface ClientConnectionOptions extends CommonOptions {
  readonly role: 'client'
  /** Chosen at random; after a Retry the source id of that. */
  readonly initialDestinationIdBytes: Uint8Array
  readonly originalDestinationIdBytes: Uint8Array
  readonly retrySourceIdBytes: Uint8Array | undefined
  /** Token of a Retry packet, or empty. */
  readonly tokenBytes: Uint8Array
}

export type ConnectionOptions = ServerConnectionOptions | ClientConnectionOptions

export interface CloseInfo {
  /** Of the application's codes when `isApplication`, else one of QUIC's. */
  readonly code: number
  readonly reason: string
  readonly isApplication: boolean
  /** We closed, by `close`, for the peer's fault or for a timeout; else the peer did. */
  readonly isLocal: boolean
}

export interface ConnectionStats {
  readonly receivedPackets: number
  readonly sentPackets: number
  readonly receivedBytes: number
  readonly sentBytes: number
  readonly lostPackets: number
  readonly probeTimeouts: number
  /** Packets that did not authenticate. */
  readonly rejectedPackets: number
  readonly duplicatePackets: number
  readonly keyUpdates: number
  readonly migrations: number
  readonly streamCount: number
  /** Received and not granted back. */
  readonly unreadBytes: number
  readonly smoothedRttMs: number
  readonly congestionWindowBytes: number
  readonly bytesInFlight: number
}

/** One QUIC connection without a socket, a clock or chance. */
export interface EngineConnection {
  /** A packet authenticated: before that the peer may be anybody, and nothing is worth keeping. */
  readonly hasAuthenticated: boolean
  readonly isConnected: boolean
  /** Nothing is to be sent or expected any more: forget the connection. `onClosed` was called, perhaps long before. */
  readonly isFinished: boolean
  /** What the connection closed with, once it did. */
  readonly closeInfo: CloseInfo | undefined
  /** The address of the path in use. */
  readonly peer: PeerAddress
  readonly serverName: string | undefined
  readonly alpn: string | undefined
  /** When `tick` is due; `Infinity` for never. Moves with every other call. */
  readonly deadlineMs: number
  readonly stats: ConnectionStats

  /** Takes one datagram. `datagramView` is altered (header protection is removed in place) and not kept. */
  receive(datagramView: Uint8Array, from: PeerAddress, nowMs: number): void
  /**
   * Sends what may be sent now: `send` gets bytes that are its own.
   *
   * @returns whether `maxDatagrams` were sent and there may be more.
   */
  flush(nowMs: number, send: (datagramBytes: Uint8Array, to: PeerAddress) => void, maxDatagrams: number): boolean
  /** Does what is due at `nowMs`; follow with `flush`. */
  tick(nowMs: number): void

  /** @returns null when the peer allows no more streams at the moment, or the connection is not open. */
  openStream(direction: 'bidirectional' | 'unidirectional'): EngineStream | null
  /** Makes the peer acknowledge something, so that neither side becomes idle. */
  ping(): void
  /** Takes new keys for sending and receiving. @returns false when the last update is not yet acknowledged. */
  updateKeys(): boolean
  /**
   * Gives up streams of the peer of which bytes are held and the first has not come since the last call: their users do not know of
   * them and cannot.
   */
  giveUpUnseen(code: number): void
  /** Closes with a code of the application. Idempotent; streams end without further events. */
  close(code: number, reason: string): void

  onConnected: (() => void) | null
  /** A stream of the peer, when its first bytes, its end or its reset are there. Set its handlers within the call. */
  onStream: ((stream: EngineStream) => void) | null
  /** The peer allows more streams than before. */
  onStreamsAvailable: (() => void) | null
  /** Once, for whatever reason the connection ended. */
  onClosed: ((info: CloseInfo) => void) | null
}

export interface EngineStream {
  readonly id: number
  readonly isBidirectional: boolean
  /** The peer ended its direction and all of it was read (or there is no such direction). */
  readonly isEnded: boolean
  /** Code with which the peer reset its direction. */
  readonly resetCode: number | undefined
  /** Written and not yet acknowledged bytes. */
  readonly bufferedBytes: number

  /** Takes the next bytes in order; null when there are none now. They count against the windows until granted back. */
  read(): Uint8Array | null
  /** Lets the peer send that many bytes more. What was read and not granted is given back when the stream is done. */
  grant(sizeBytes: number): void
  /** Queues owned bytes, all of them. @returns false when the caller should wait for `onDrain`. */
  write(bytes: Uint8Array): boolean
  /** Ends our direction after what was written. */
  end(): void
  /** Gives up our direction; what was not acknowledged is dropped. */
  reset(code: number): void
  /** Asks the peer to stop; what comes still is dropped and given back. */
  stopSending(code: number): void

  /** There are bytes to read, or `isEnded` became true. Not called again for bytes that were left unread. */
  onData: (() => void) | null
  /** After a `write` that returned false: less than half of the high-water mark waits. */
  onDrain: (() => void) | null
  onReset: ((code: number) => void) | null
  /** The peer does not want our direction any more; it was reset with the same code. */
  onStop: ((code: number) => void) | null
  /** Both directions are over and acknowledged: no more events. Not called when the connection closes. */
  onDone: (() => void) | null
}
