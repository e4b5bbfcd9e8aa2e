/** What a stream that carries one request has from the client it belongs to. */
import type { ClientBinding } from './client-binding.ts'
import type { Waiters } from './waiters.ts'

export interface StreamOwner {
  readonly binding: ClientBinding
  /** The peer does not take its replies; `outputRoom` tells when it does. */
  readonly isOutputFull: boolean
  readonly outputRoom: Waiters
  /** Whether one more answer that may be large may be read for; `outputRoom` tells that, too. */
  readonly mayReadLarge: boolean
  /** Such an answer is under way. @returns what to call when it is there. */
  beginLarge(): () => void
  /** So many bytes more, or fewer, wait for the peer. */
  outputLeft(changeBytes: number): void
  /** What came on a stream was no request. */
  refused(): void
}
