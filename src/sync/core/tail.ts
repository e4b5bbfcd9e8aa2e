/**
 * Finds our newest record in an upstream partition by reading it backwards in pages, and so what the upstream proves to
 * hold. Usually the very last message is ours and one page of one message tells; where others write too, pages grow.
 *
 * Relies on: our records carry ids of `message-id.ts`, and reach a partition in order. Never decides what to send: that
 * is `reconcile.ts`. Pure.
 */
import { splitMessageId } from './message-id.ts'

/** What to poll next. */
export type TailRequest =
  | { readonly kind: 'last'; readonly count: number }
  | { readonly kind: 'from'; readonly offset: bigint; readonly count: number }

/** An upstream's answer, ascending by offset. */
export interface TailPage {
  /** Offset of the newest message; 0 for an empty partition too. */
  readonly currentOffset: bigint
  readonly messages: readonly TailMessage[]
}

export interface TailMessage {
  readonly offset: bigint
  readonly id: bigint
}

export type TailVerdict =
  | {
      readonly kind: 'found'
      /** Local offset of our newest record there. */
      readonly localOffset: bigint
      /** Which of the prefixes it carries: its place in the list. */
      readonly incarnation: number
      readonly upstreamOffset: bigint
      /** End (exclusive) of the upstream partition. */
      readonly upstreamEnd: bigint
    }
  | {
      readonly kind: 'absent'
      /** Oldest message that the upstream still keeps; its end when it keeps none. */
      readonly upstreamStart: bigint
      readonly upstreamEnd: bigint
      /** The search ended at its limit: older messages were not looked at. */
      readonly isLimited: boolean
    }

export interface TailScanOptions {
  /** Upper halves of our ids, by incarnation. */
  readonly prefixes: readonly bigint[]
  readonly pageCount: number
  /** Most messages to look at before the search ends as `absent`. */
  readonly maxCount: number
}

/** First page: enough where we are the only writer. Later ones grow by this factor up to the page size. */
const FIRST_PAGE_COUNT = 1
const PAGE_GROWTH = 16

export class TailScan {
  readonly #options: TailScanOptions
  #end: bigint | null = null
  /** Everything at or above this has been looked at. */
  #lowest = 0n
  /** The page that is being filled: a server may answer a part of it. */
  #pageFrom = 0n
  #pageEnd = 0n
  #count = FIRST_PAGE_COUNT
  #seenCount = 0
  #best: { incarnation: number; localOffset: bigint; upstreamOffset: bigint } | null = null
  #oldestInPage: bigint | null = null

  constructor(options: TailScanOptions) {
    this.#options = options
  }

  get request(): TailRequest {
    if (this.#end === null) return { kind: 'last', count: this.#count }
    return { kind: 'from', offset: this.#pageFrom, count: Number(this.#pageEnd - this.#pageFrom) }
  }

  /** @returns the verdict, or null when `request` names a further page. */
  accept(page: TailPage): TailVerdict | null {
    if (this.#end === null) this.#begin(page)
    const wanted = page.messages.filter((message) => message.offset < this.#lowest)
    for (const message of wanted) this.#look(message)
    this.#seenCount += wanted.length

    const last = wanted.at(-1)
    if (last !== undefined && last.offset + 1n < this.#pageEnd) {
      // The server answered a part of the page: the rest of it is newer, so it comes first.
      this.#pageFrom = last.offset + 1n
      return null
    }
    return this.#finishPage()
  }

  #begin(page: TailPage): void {
    const last = page.messages.at(-1)
    const newest = last === undefined ? page.currentOffset : last.offset
    const isEmpty = last === undefined && page.currentOffset === 0n
    this.#end = isEmpty ? 0n : newest + 1n
    this.#lowest = this.#end
    this.#pageEnd = this.#end
    this.#pageFrom = last === undefined ? this.#end : (page.messages[0]?.offset ?? this.#end)
  }

  #look(message: TailMessage): void {
    if (this.#oldestInPage === null || message.offset < this.#oldestInPage) this.#oldestInPage = message.offset
    const { prefix, offset } = splitMessageId(message.id)
    const incarnation = this.#options.prefixes.indexOf(prefix)
    if (incarnation < 0) return
    const best = this.#best
    const isNewer =
      best === null ||
      incarnation > best.incarnation ||
      (incarnation === best.incarnation && offset >= best.localOffset)
    if (isNewer) this.#best = { incarnation, localOffset: offset, upstreamOffset: message.offset }
  }

  #finishPage(): TailVerdict | null {
    const upstreamEnd = this.#end ?? 0n
    if (this.#best !== null) return { kind: 'found', ...this.#best, upstreamEnd }

    const askedFrom = this.#pageFrom
    const oldest = this.#oldestInPage
    this.#oldestInPage = null
    // Nothing, or less than asked for at the old end: retention took what lies below.
    const isStart = oldest === null || oldest === 0n || (oldest > askedFrom && this.#lowest !== upstreamEnd)
    if (isStart) {
      return { kind: 'absent', upstreamStart: oldest ?? this.#lowest, upstreamEnd, isLimited: false }
    }
    this.#lowest = oldest
    if (this.#seenCount >= this.#options.maxCount) {
      return { kind: 'absent', upstreamStart: this.#lowest, upstreamEnd, isLimited: true }
    }
    this.#count = Math.min(this.#count * PAGE_GROWTH, this.#options.pageCount)
    this.#pageEnd = this.#lowest
    this.#pageFrom = this.#lowest > BigInt(this.#count) ? this.#lowest - BigInt(this.#count) : 0n
    return null
  }
}
