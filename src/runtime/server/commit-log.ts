/**
 * Positions that VSR replies name: on one node a counter stands for the log of changes.
 *
 * It starts at the wall clock in ms, so that it never goes back over a restart (no node makes a thousand changes a second
 * for its whole life): clients keep the largest position they saw.
 */
import type { Clock } from '../../clock.ts'
import type { Commit } from '../../sdk/wire/vsr/reply.ts'

export class CommitLog {
  private readonly clock: Clock
  /** u128 of the node, not zero. */
  private readonly cluster: bigint
  private position: bigint

  constructor(storeId: Uint8Array, clock: Clock) {
    this.clock = clock
    this.cluster = BigInt(`0x${storeId.toHex()}`) | 1n
    this.position = clock.wallUs() / 1000n
  }

  /** The largest position given. */
  get watermark(): bigint {
    return this.position
  }

  /** The position of one more change; also the number of a session. */
  next(): Commit {
    this.position++
    return { cluster: this.cluster, op: this.position, timestampUs: this.clock.wallUs() }
  }
}
