/**
 * Tells an upstream that lost its tail from one that keeps nothing of what it confirms: a full topic there, which drops the
 * newest. What the first lost is sent again at once; to the second it would be sent without end. Pure.
 */
import { EdgeError } from '../../errors.ts'
import type { Finding } from './reconcile.ts'

/** Looks over one link that find all of it missing from the same record on; an upstream that is killed ends the link. */
const MAX_TIMES = 5
/** So many of them make each send suspect. What a server forgot that was killed is missing once. */
const SUSPECT_TIMES = 2

export class Forgetting {
  #from = -1n
  #count = 0

  /** What is sent next may be confirmed and not kept: it is looked for before anything is sent behind it. */
  get isSuspected(): boolean {
    return this.#count >= SUSPECT_TIMES
  }

  /**
   * @param nextOffset where it goes on.
   * @returns why it is of no use to send again now; null when it may be.
   */
  vainReason(finding: Finding, nextOffset: bigint): EdgeError | null {
    if (finding.kind !== 'forgotten') {
      if (nextOffset > this.#from) this.#count = 0
      return null
    }
    this.#count = finding.from === this.#from ? this.#count + 1 : 1
    this.#from = finding.from
    if (this.#count < MAX_TIMES) return null
    const text = `the upstream confirmed the messages from offset ${finding.from} on ${this.#count} times and keeps none of them: expected room in its topic, or another overflow than drop-newest`
    return new EdgeError('EDGE_TOPIC_FULL', text)
  }

  linkDown(): void {
    this.#count = 0
  }
}
