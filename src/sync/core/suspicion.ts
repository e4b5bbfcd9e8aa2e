/**
 * Tells the record at which a peer hangs up from those that were merely on the link at the time. A peer that hangs up again
 * and again where a partition stands, although its tail can be read in between, may mean the record there. So it is tried in
 * ever smaller company, and with nothing else on the link: only what the peer does then is held against it. Mere silence is
 * not: a server that stalls is silent to all. Pure.
 */
import type { EdgeError } from '../../errors.ts'

/** Hang-ups at one offset before it is suspected, and how many of a lone record weigh as much as one refusal. */
const SUSPECT_AFTER_HANG_UPS = 3
const HANG_UPS_PER_REFUSAL = 2

export class Suspicion {
  readonly #maxHangUpsAlone: number
  #offset = -1n
  #hangUpCount = 0
  #aloneCount = 0
  #verdict: EdgeError | null = null

  constructor(maxRefusals: number) {
    this.#maxHangUpsAlone = maxRefusals * HANG_UPS_PER_REFUSAL
  }

  /** Hang-ups at sends that began at `offset`, when they are enough to suspect it: its next send needs the link for itself. */
  of(offset: bigint): number {
    return offset === this.#offset && this.#hangUpCount >= SUSPECT_AFTER_HANG_UPS ? this.#hangUpCount : 0
  }

  /** What the peer said when it was proven that it takes the link down; null when it is not. */
  verdictOn(offset: bigint): EdgeError | null {
    return offset === this.#offset ? this.#verdict : null
  }

  /** The link ended while a send of `count` records from `offset` on was on its way. */
  hungUp(offset: bigint, count: number, error: EdgeError): void {
    if (this.of(offset) > 0 && count === 1) this.#aloneCount += 1
    if (offset !== this.#offset) this.clear()
    this.#offset = offset
    this.#hangUpCount += 1
    if (this.#aloneCount >= this.#maxHangUpsAlone) this.#verdict = error
  }

  /** Nothing is given up now: one more try, and one more hang-up, before it is condemned again. */
  reprieve(): void {
    this.#verdict = null
  }

  clear(): void {
    this.#offset = -1n
    this.#hangUpCount = 0
    this.#aloneCount = 0
    this.#verdict = null
  }
}
