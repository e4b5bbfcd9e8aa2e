/**
 * Requests of one connection that wait for an answer, in the order they were sent. Answers come in that order; VSR frames
 * also name operation and number, so that an answer whose request was dropped by the server is not taken for another's.
 * Pure; times are monotonic µs.
 */
import type { CommandCode } from '../wire/codes.ts'

export interface PendingRequest {
  readonly id: number
  readonly code: CommandCode
  /** VSR; 0 in classic. */
  readonly operation: number
  readonly requestNumber: bigint
  readonly deadlineUs: number
}

export class RequestTable {
  readonly #pending: PendingRequest[] = []

  get size(): number {
    return this.#pending.length
  }

  /** Earliest time at which a request has waited too long; null when none waits. */
  get nextDeadlineUs(): number | null {
    let earliest: number | null = null
    for (const { deadlineUs } of this.#pending) if (earliest === null || deadlineUs < earliest) earliest = deadlineUs
    return earliest
  }

  add(request: PendingRequest): void {
    this.#pending.push(request)
  }

  /** Takes out the oldest request that `isAnswered` accepts. */
  take(isAnswered: (request: PendingRequest) => boolean): PendingRequest | undefined {
    const index = this.#pending.findIndex(isAnswered)
    return index < 0 ? undefined : this.#pending.splice(index, 1)[0]
  }

  /** @returns the oldest request that has waited too long, if one has. */
  expired(nowUs: number): PendingRequest | undefined {
    return this.#pending.find(({ deadlineUs }) => deadlineUs <= nowUs)
  }

  /** Takes out everything: the connection is gone. */
  clear(): PendingRequest[] {
    return this.#pending.splice(0)
  }
}
