/** Bytes to a server and back, over whatever carries them. Types only; a transport knows no commands. */
import type { EdgeError } from '../../errors.ts'

export interface TransportEvents {
  /** Bytes in order; the view must not outlive the call. */
  data(bytesView: Uint8Array): void
  /** Everything written has been taken. */
  drained(): void
  /** No more events follow. null: the peer ended in peace. */
  closed(error: EdgeError | null): void
}

export interface Transport {
  /** Address of the peer, for logs and errors. */
  readonly peer: string
  /** Queues owned bytes. @returns false when the peer is slow: wait for `drained`. */
  write(bytes: Uint8Array): boolean
  /** Stops and resumes reading, when answers come faster than they are used. */
  pause(): void
  resume(): void
  /** Ends after what was written. */
  end(): void
  /**
   * Gives up at once. What the peer has not received yet is thrown away rather than delivered later: a send whose outcome
   * is unknown must not arrive minutes after it was repeated on another connection.
   */
  abort(): void
}

/**
 * Connects, and reports to `events` from then on.
 *
 * @throws {EdgeError} EDGE_UPSTREAM_UNREACHABLE with `details.reason`, EDGE_UPSTREAM_TIMEOUT.
 */
export type Dial = (events: TransportEvents, signal: AbortSignal) => Promise<Transport>

/** Why no connection came about: stands in `details.reason`. */
export type DialFailureReason =
  | 'name' // the host name could not be resolved
  | 'route' // refused, no route, reset
  | 'certificate' // not trusted, another name
  | 'clock' // the certificate's dates do not fit our clock
  | 'protocol' // something answered, but not what was expected
