/**
 * Who is on the other side of a connection: the generation it speaks, its client in the broker, its login. Told by the first
 * request and from then on for good. A connection of TCP or WebSocket has one for itself; over plain QUIC, where each request
 * comes on a stream of its own, all streams of a connection share one.
 */
import { EdgeError } from '../../errors.ts'
import type { Dialect } from '../../sdk/wire/dialect.ts'
import type { Caller, ClientSession } from '../broker/index.ts'
import type { ByteTransport } from './byte-session.ts'
import { ClassicProtocol } from './classic-protocol.ts'
import type { Protocol } from './protocol.ts'
import type { ServerContext } from './server-context.ts'
import { VsrProtocol } from './vsr-protocol.ts'
import { Waiters } from './waiters.ts'

export interface Bound {
  readonly protocol: Protocol
  readonly client: ClientSession
  readonly caller: Caller
}

export class ClientBinding {
  /** Requests that came while another one was being answered. */
  readonly turn = new Waiters()
  private readonly server: ServerContext
  private readonly peer: Pick<ByteTransport, 'kind' | 'address'>
  private readonly onEvicted: (reason: 'stale' | 'user-deleted') => void
  private known: Bound | null = null
  private isAnswering = false

  /** @param onEvicted told when the broker ends the session, within the turn of whoever caused it. */
  constructor(
    server: ServerContext,
    peer: Pick<ByteTransport, 'kind' | 'address'>,
    onEvicted: (reason: 'stale' | 'user-deleted') => void,
  ) {
    this.server = server
    this.peer = peer
    this.onEvicted = onEvicted
  }

  /** null until a request has told. */
  get bound(): Bound | null {
    return this.known
  }

  /** @throws {EdgeError} EDGE_FRAME_INVALID when another generation was told before. */
  bind(dialect: Dialect): Bound {
    if (this.known !== null) {
      if (this.known.protocol.dialect === dialect) return this.known
      throw new EdgeError('EDGE_FRAME_INVALID', `request: expected ${this.known.protocol.dialect}, found ${dialect}`)
    }
    const client = this.server.broker.openClient(this.peer.kind, this.peer.address, dialect)
    const caller: Caller = { dialect, userId: null, client }
    const protocol =
      dialect === 'classic'
        ? new ClassicProtocol(this.server, client, caller)
        : new VsrProtocol(this.server, client, caller)
    client.onEvicted = this.onEvicted
    this.known = { protocol, client, caller }
    return this.known
  }

  /** The client is gone. Idempotent. */
  close(): void {
    if (this.known === null || this.known.client.onEvicted === null) return
    this.known.client.onEvicted = null
    this.server.broker.closeClient(this.known.client)
  }

  // ---- turns, where requests come side by side ---------------------------------------------------------------------------

  /**
   * A VSR client numbers its requests and has its replies kept by number: they are carried out one after another, sends
   * aside. A classic client's stand for themselves.
   */
  get isBusy(): boolean {
    return this.isAnswering
  }

  /** An answer takes its time. @returns what to call when it is there. */
  holdTurn(): () => void {
    if (this.known?.protocol.dialect !== 'vsr') return () => undefined
    this.isAnswering = true
    return () => {
      this.isAnswering = false
      // The first takes the turn when it takes time again; those behind it then wait anew.
      this.turn.wake()
    }
  }
}
