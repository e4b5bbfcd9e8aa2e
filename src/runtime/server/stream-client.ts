/**
 * A client whose every request comes on a stream of its own: Iggy's over plain QUIC. The session belongs to the connection;
 * the streams of one are served side by side, so that sends on several wait for the same sync.
 */
import type { ByteSession, ByteTransport, StreamCarrier, StreamSession } from './byte-session.ts'
import { ClientBinding } from './client-binding.ts'
import { Connection } from './connection.ts'
import { MAX_LARGE_ANSWERS, MAX_LEFT_OUTPUT_BYTES, MAX_REFUSED_STREAMS } from './defaults.ts'
import type { ServerContext } from './server-context.ts'
import type { StreamOwner } from './stream-owner.ts'
import { Waiters } from './waiters.ts'

/** Application codes that Apache's server closes its QUIC connections with. */
export const STREAM_CLIENT_CODES = {
  authFailed: 0x1002,
  shutdown: 0x1003,
  protocolViolation: 0x1004,
} as const

/** Answers that are under way when the client is ended get so long to arrive. */
const END_GRACE_US = 1_000_000

interface Ending {
  readonly code: number
  readonly reason: string
  readonly sinceUs: number
}

export class StreamClient implements StreamSession, StreamOwner {
  readonly binding: ClientBinding
  readonly outputRoom = new Waiters()
  private readonly streams = new Set<Connection>()
  private readonly server: ServerContext
  private readonly carrier: StreamCarrier
  private readonly onClosed: () => void
  private readonly openedAtUs: number
  private refusedCount = 0
  private leftBytes = 0
  private largeAnswerCount = 0
  private ending: Ending | null = null
  private isGone = false

  constructor(server: ServerContext, carrier: StreamCarrier, onClosed: () => void) {
    this.server = server
    this.carrier = carrier
    this.onClosed = onClosed
    this.openedAtUs = server.clock.monotonicUs()
    const peer = { kind: 'quic', address: carrier.address } as const
    this.binding = new ClientBinding(server, peer, (reason) => this.evicted(reason))
  }

  // ---- for the carrier

  accept(transport: ByteTransport): ByteSession | null {
    if (this.ending !== null || this.isGone) return null
    const stream = new Connection(this.server, transport, (closed) => this.left(closed), this)
    this.streams.add(stream)
    return stream
  }

  closed(): void {
    if (this.isGone) return
    this.isGone = true
    for (const stream of [...this.streams]) stream.closed()
    this.binding.close()
    this.onClosed()
  }

  // ---- for its streams

  get isOutputFull(): boolean {
    return this.leftBytes >= MAX_LEFT_OUTPUT_BYTES
  }

  outputLeft(changeBytes: number): void {
    this.leftBytes += changeBytes
    // The turn of the stream whose output has gone may be on the stack.
    if (changeBytes < 0 && !this.isOutputFull) queueMicrotask(() => this.outputRoom.wake())
  }

  get mayReadLarge(): boolean {
    return this.largeAnswerCount < MAX_LARGE_ANSWERS
  }

  beginLarge(): () => void {
    this.largeAnswerCount++
    return () => {
      this.largeAnswerCount--
      if (!this.isOutputFull) queueMicrotask(() => this.outputRoom.wake())
    }
  }

  refused(): void {
    this.refusedCount++
    if (this.refusedCount < MAX_REFUSED_STREAMS || this.ending !== null) return
    this.server.logger.warn('server.client.refused', { peer: this.carrier.address, transport: 'quic' })
    this.end(STREAM_CLIENT_CODES.protocolViolation, 'expected requests of Iggy')
  }

  // ---- for the server

  /** Ends the client; what is being answered still is. */
  close(): void {
    this.end(STREAM_CLIENT_CODES.shutdown, 'the server is stopping')
    for (const stream of [...this.streams]) stream.close()
  }

  /** Ends the client now. */
  destroy(): void {
    this.carrier.close(this.ending?.code ?? STREAM_CLIENT_CODES.shutdown, this.ending?.reason ?? '')
    this.closed()
  }

  /** Looks at the time limits. */
  sweep(nowUs: number): void {
    for (const stream of [...this.streams]) stream.sweep(nowUs)
    if (this.isGone) return
    const isSilent = this.binding.bound === null && this.streams.size === 0 && this.ending === null
    if (isSilent && nowUs - this.openedAtUs > this.server.limits.firstRequestTimeoutMs * 1000) {
      this.server.logger.info('server.client.silent', { peer: this.carrier.address, transport: 'quic' })
      this.end(STREAM_CLIENT_CODES.protocolViolation, 'no request came')
    } else if (this.ending !== null && nowUs - this.ending.sinceUs > END_GRACE_US) {
      this.destroy()
    }
  }

  /** There is no request that a notice would be the answer to: the end of the connection is. */
  private evicted(reason: 'stale' | 'user-deleted'): void {
    this.binding.bound?.protocol.evicted(reason)
    this.end(STREAM_CLIENT_CODES.authFailed, reason === 'stale' ? 'silent for too long' : 'the user is gone')
  }

  private end(code: number, reason: string): void {
    this.ending ??= { code, reason, sinceUs: this.server.clock.monotonicUs() }
    // The turn of one of its streams may be on the stack.
    queueMicrotask(() => this.closeWhenIdle())
  }

  private left(stream: Connection): void {
    this.streams.delete(stream)
    if (this.ending !== null) queueMicrotask(() => this.closeWhenIdle())
  }

  private closeWhenIdle(): void {
    if (this.ending !== null && this.streams.size === 0 && !this.isGone) this.destroy()
  }
}
