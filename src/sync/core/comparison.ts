/**
 * Whether what was found upstream under our ids is what the local log has, and if not, where the two part. They do when the log was
 * restored from a backup, or lost what it had confirmed, and grew again: what it lost is upstream, under the ids of what took its
 * place here.
 *
 * Relies on: a record is sent after all those before it, so where the upstream has the same one, it has those too. The search by
 * halves takes it that behind the cursor's record there is first what both have, then the rest; where that does not hold, or others
 * write between, a part is not seen, and comes twice. Pure.
 */
import type { Cursor } from '../ports.ts'
import { splitMessageId } from './message-id.ts'
import type { RecordContent } from './record-content.ts'
import type { TailMessage, TailPage, TailVerdict } from './tail.ts'

export interface ComparisonInput {
  /** Upper halves of our ids, by incarnation. */
  readonly prefixes: readonly bigint[]
  /** Incarnation that new ids carry. */
  readonly incarnation: number
  readonly cursor: Cursor | undefined
  /** First offset the local log still holds. */
  readonly logStart: bigint
  /** Nothing at or above it can have been sent by us. */
  readonly sendableEnd: bigint
}

export type ComparisonQuestion =
  /** Does the local log have that at its offset? */
  | { readonly offset: bigint; readonly content: RecordContent }
  /** What does the upstream have from there on? */
  | { readonly upstreamOffset: bigint }

export class Comparison {
  readonly verdict: TailVerdict
  readonly #input: ComparisonInput
  #question: ComparisonQuestion | null = null
  /** Below it the upstream has what the local log has. */
  #sameEnd: bigint
  /** While it is searched where they part: upstream offsets between which the first record lies that is not the same. */
  #range: { readonly low: bigint; readonly high: bigint } | null = null
  /** Upstream offset of the record that is compared. */
  #comparedAt = 0n

  constructor(verdict: TailVerdict, input: ComparisonInput) {
    this.verdict = verdict
    this.#input = input
    this.#sameEnd = most((input.cursor?.confirmedOffset ?? -1n) + 1n, input.logStart)
    if (verdict.kind !== 'found' || verdict.incarnation < input.incarnation) return
    const { localOffset: offset, content } = verdict
    if (offset < this.#sameEnd) return
    if (offset >= input.sendableEnd) this.#part(verdict.upstreamOffset)
    else if (content !== null) this.#question = { offset, content }
  }

  /** What has to be known next; null when it is settled. */
  get question(): ComparisonQuestion | null {
    return this.#question
  }

  /** First local offset that the upstream does not have, although it has newer ids; null when what was found is ours. */
  get partsAt(): bigint | null {
    return this.#range === null ? null : this.#sameEnd
  }

  compared(isSame: boolean): void {
    const { verdict } = this
    const question = this.#question
    if (question === null || 'upstreamOffset' in question || verdict.kind !== 'found') return
    this.#question = null
    if (this.#range === null) {
      if (!isSame) this.#part(verdict.upstreamOffset)
    } else if (isSame) {
      this.#sameEnd = question.offset + 1n
      this.#search(this.#comparedAt + 1n, this.#range.high)
    } else {
      this.#search(this.#range.low, this.#middle(this.#range))
    }
  }

  looked(page: TailPage): void {
    const range = this.#range
    if (range === null) return
    const ours = page.messages.find((message) => message.offset < range.high && this.#isOurs(message))
    const offset = ours === undefined ? 0n : splitMessageId(ours.id).offset
    const content = ours === undefined ? null : page.contentAt(ours.offset)
    if (ours !== undefined && offset < this.#sameEnd) this.#search(ours.offset + 1n, range.high)
    else if (ours === undefined || content === null || offset >= this.#input.sendableEnd) {
      this.#search(range.low, this.#middle(range))
    } else {
      this.#comparedAt = ours.offset
      this.#question = { offset, content }
    }
  }

  #part(upstreamOffset: bigint): void {
    this.#search((this.#input.cursor?.upstreamOffset ?? -1n) + 1n, upstreamOffset)
  }

  #search(low: bigint, high: bigint): void {
    this.#range = { low, high }
    this.#question = low < high ? { upstreamOffset: this.#middle(this.#range) } : null
  }

  #middle({ low, high }: { readonly low: bigint; readonly high: bigint }): bigint {
    return (low + high) / 2n
  }

  #isOurs({ id }: TailMessage): boolean {
    return this.#input.prefixes.includes(splitMessageId(id).prefix)
  }
}

const most = (left: bigint, right: bigint): bigint => (left > right ? left : right)
