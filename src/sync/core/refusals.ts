/**
 * What is learned from sends that the upstream does not take: how much goes into the next one, which record is tried alone,
 * and when one has been refused often enough to be given up. Pure.
 */
import type { EdgeError } from '../../errors.ts'
import { type BatchBounds, Batcher } from './batcher.ts'
import type { FailureKind } from './failure.ts'
import type { ForwarderOptions, ReadSummary } from './forwarder-protocol.ts'
import { Suspicion } from './suspicion.ts'

type RefusalOptions = Pick<ForwarderOptions, 'bounds' | 'maxRefusals' | 'maxDeadLettersInRow'>
type Sent = Pick<ReadSummary, 'count' | 'sizeBytes'>

export class Refusals {
  readonly #options: RefusalOptions
  readonly #batcher: Batcher
  readonly #suspicion: Suspicion
  /** Of one record, alone in its send, by name. */
  #aloneCount = 0
  #givenUpInRow = 0

  constructor(options: RefusalOptions) {
    this.#options = options
    this.#batcher = new Batcher(options.bounds)
    this.#suspicion = new Suspicion(options.maxRefusals)
  }

  /** Of the next send. */
  get bounds(): BatchBounds {
    return this.#batcher.bounds
  }

  /** @returns how much the send that begins there is suspected of ending the link; 0: not at all. */
  suspicionOf(offset: bigint): number {
    return this.#suspicion.of(offset)
  }

  /** @returns why the record there is to be given up without another try; null when it is not. */
  verdictOn(offset: bigint): EdgeError | null {
    return this.#suspicion.verdictOn(offset)
  }

  answered(): void {
    this.#batcher.succeeded()
  }

  /** The upstream has records more. */
  took(): void {
    this.#aloneCount = 0
    this.#suspicion.clear()
    this.#givenUpInRow = 0
  }

  /** No answer came to the send that began at `offset`. */
  lost(offset: bigint, { count, sizeBytes }: Sent, error: EdgeError): void {
    this.#batcher.lost(sizeBytes)
    if (error.code !== 'EDGE_CONNECTION_LOST') return
    this.#suspicion.hungUp(offset, count, error)
    if (this.#suspicion.of(offset) > 0) this.#batcher.refusedAsInvalid(count)
  }

  /** Smaller sends find what the upstream does take, down to the one record that it does not. */
  refused(kind: FailureKind, { count, sizeBytes }: Sent): 'try-smaller' | 'try-later' | 'give-up' {
    if (kind === 'too-large') this.#batcher.refusedAsTooLarge(count, sizeBytes)
    else this.#batcher.refusedAsInvalid(count)
    if (count > 1) return 'try-smaller'
    this.#aloneCount += 1
    return this.#aloneCount < this.#options.maxRefusals ? 'try-later' : 'give-up'
  }

  /** @returns false where so many were given up in a row that it is not the records. */
  mayGiveUp(): boolean {
    if (this.#givenUpInRow < this.#options.maxDeadLettersInRow) return true
    this.#suspicion.reprieve()
    return false
  }

  gaveUp(): void {
    this.#aloneCount = 0
    this.#suspicion.clear()
    this.#givenUpInRow += 1
  }
}
