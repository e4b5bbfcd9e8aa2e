/** What the upstream has of ours: the search for our newest record there, then the comparison of what it found. Pure. */
import { Comparison, type ComparisonInput, type ComparisonQuestion } from './comparison.ts'
import type { Question } from './forwarder-protocol.ts'
import type { TailPage, TailVerdict } from './tail.ts'
import type { TailSearch } from './tail-search.ts'

export type ExaminationStep =
  | Extract<Question, { type: 'poll-tail' | 'compare' }>
  /** `partsAt`: the first local record that the upstream does not have, where it has others under newer ids of ours. */
  | { readonly type: 'done'; readonly verdict: TailVerdict; readonly partsAt: bigint | null }

export class Examination {
  readonly #search: TailSearch
  #input: ComparisonInput | null = null
  /** null during the search. */
  #comparison: Comparison | null = null

  constructor(search: TailSearch) {
    this.#search = search
  }

  begin(options: Parameters<TailSearch['begin']>[0], input: ComparisonInput, nowUs: number): ExaminationStep {
    this.#input = input
    this.#comparison = null
    return { type: 'poll-tail', request: this.#search.begin(options, nowUs) }
  }

  /** @returns null for an answer that nobody waits for. */
  accept(page: TailPage): ExaminationStep | null {
    if (this.#comparison !== null) {
      this.#comparison.looked(page)
      return this.#next(this.#comparison)
    }
    const found = this.#search.accept(page)
    if (found === null || this.#input === null) return null
    if ('count' in found) return { type: 'poll-tail', request: found }
    this.#comparison = new Comparison(found, this.#input)
    return this.#next(this.#comparison)
  }

  /** The same. */
  compared(isSame: boolean): ExaminationStep | null {
    if (this.#comparison === null) return null
    this.#comparison.compared(isSame)
    return this.#next(this.#comparison)
  }

  #next({ question, verdict, partsAt }: Comparison): ExaminationStep {
    return question === null ? { type: 'done', verdict, partsAt } : this.#asked(question)
  }

  #asked(question: ComparisonQuestion): ExaminationStep {
    if ('content' in question) return { type: 'compare', ...question }
    return { type: 'poll-tail', request: this.#search.look(question.upstreamOffset) }
  }
}
