/**
 * Finds our newest record in an upstream partition by reading it backwards in pages, and so what the upstream proves to
 * hold. Usually the very last message is ours and one page of one message tells; where others write too, pages grow, and the
 * place where the cursor has our newest record is looked at as well: what it still holds ends the search there at the latest.
 *
 * Relies on: our records carry ids of `message-id.ts`, and reach a partition in order. Never decides what to send: that
 * is `reconcile.ts`. Pure.
 */
import type { LookSize } from './look-size.ts'
import { messageId, splitMessageId } from './message-id.ts'
import type { RecordContent } from './record-content.ts'

/** What to poll next. */
export type TailRequest = { readonly count: number; readonly expectedBytes: number } & (
  | { readonly kind: 'last' }
  | { readonly kind: 'from'; readonly offset: bigint }
)

/** An upstream's answer, ascending by offset. */
export interface TailPage {
  /** Offset of the newest message; 0 for an empty partition too. */
  readonly currentOffset: bigint
  readonly messages: readonly TailMessage[]
  /** Of all of it. */
  readonly sizeBytes: number
  /** @returns what the message of the page at that offset holds, as long as the page is being looked at. */
  readonly contentAt: (offset: bigint) => RecordContent | null
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
      /** What it holds; null where the cursor has it. */
      readonly content: RecordContent | null
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
  readonly lookSize: LookSize
  /** Most messages to look at, below the anchor where there is one, before the search ends as `absent`. */
  readonly maxCount: number
  readonly anchor?: TailAnchor | null
  /** Was searched before, and has none of ours. */
  readonly searched?: OffsetSpan | null
}

/** Our newest record as far as the cursor knows. */
export interface TailAnchor {
  readonly incarnation: number
  readonly localOffset: bigint
  readonly upstreamOffset: bigint
  /** Nothing newer of ours can be there: when the upstream holds it, or nothing that old, there is no more to search for. */
  readonly isNewest: boolean
}

export interface OffsetSpan {
  readonly from: bigint
  readonly end: bigint
}

/** First page: enough where we are the only writer. Later ones grow by this factor up to the page size. */
const FIRST_PAGE_COUNT = 1
const PAGE_GROWTH = 16
/** So many messages are read before the anchor is looked at. */
const ANCHOR_AFTER_COUNT = BigInt(FIRST_PAGE_COUNT + PAGE_GROWTH)

/** Our newest record so far; `content` once its page was looked through. */
interface Best {
  readonly incarnation: number
  readonly localOffset: bigint
  readonly upstreamOffset: bigint
  content: RecordContent | null
}

export class TailScan {
  readonly #options: TailScanOptions
  #end: bigint | null = null
  /** Everything at or above this has been looked at. */
  #lowest = 0n
  /** The page that is being filled: a server may answer a part of it. */
  #pageFrom = 0n
  #pageEnd = 0n
  #count = FIRST_PAGE_COUNT
  /** Nothing below it is of interest. */
  #floor = 0n
  /** null once it was looked at. */
  #anchor: TailAnchor | null
  #isAtAnchor = false
  #searched: OffsetSpan | null
  #best: Best | null = null
  #oldestInPage: bigint | null = null

  constructor(options: TailScanOptions) {
    this.#options = options
    this.#anchor = options.anchor ?? null
    this.#searched = options.searched ?? null
  }

  /** What was searched so far in one piece, and has none of ours; null when nothing was. */
  get searched(): OffsetSpan | null {
    if (this.#end === null || this.#best !== null) return this.#searched
    return { from: this.#lowest, end: this.#end }
  }

  get request(): TailRequest {
    if (this.#end === null) return { kind: 'last', ...this.#sizeOf(this.#count) }
    if (this.#isAtAnchor && this.#anchor) {
      return { kind: 'from', offset: this.#anchor.upstreamOffset, ...this.#sizeOf(1) }
    }
    return { kind: 'from', offset: this.#pageFrom, ...this.#sizeOf(Number(this.#pageEnd - this.#pageFrom)) }
  }

  /** @returns the verdict, or null when `request` names a further page. */
  accept(page: TailPage): TailVerdict | null {
    this.#options.lookSize.seen(page.messages.length, page.sizeBytes)
    if (this.#isAtAnchor && this.#anchor) return this.#judgeAnchor(this.#anchor, page)
    if (this.#end === null) this.#begin(page)
    const wanted = page.messages.filter((message) => message.offset < this.#lowest)
    const before = this.#best
    for (const message of wanted) this.#look(message)
    if (this.#best !== null && this.#best !== before) this.#best.content = page.contentAt(this.#best.upstreamOffset)

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
    // An upstream that has fewer than before forgot some, and may have got others in their place.
    if (this.#searched !== null && this.#searched.end > this.#end) this.#searched = null
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
    if (isNewer) this.#best = { incarnation, localOffset: offset, upstreamOffset: message.offset, content: null }
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
    const before = this.#searched
    if (before !== null && before.from < this.#lowest && this.#lowest <= before.end) this.#lowest = before.from
    this.#isAtAnchor =
      this.#anchor !== null &&
      this.#anchor.upstreamOffset < this.#lowest &&
      upstreamEnd - this.#lowest >= ANCHOR_AFTER_COUNT
    return this.#isAtAnchor ? null : this.#nextPage(upstreamEnd)
  }

  #nextPage(upstreamEnd: bigint): TailVerdict | null {
    const lowest = this.#lowest
    if (lowest <= this.#floor) return { kind: 'absent', upstreamStart: this.#floor, upstreamEnd, isLimited: false }
    const known = this.#options.anchor?.upstreamOffset ?? upstreamEnd
    const limit = least(known, upstreamEnd) - BigInt(this.#options.maxCount)
    if (lowest <= limit) return { kind: 'absent', upstreamStart: lowest, upstreamEnd, isLimited: true }
    this.#count = Math.min(this.#count * PAGE_GROWTH, this.#options.lookSize.pageCount)
    this.#pageEnd = lowest
    const from = lowest - BigInt(this.#count)
    this.#pageFrom = from > this.#floor ? from : this.#floor
    return null
  }

  #judgeAnchor(anchor: TailAnchor, page: TailPage): TailVerdict | null {
    const upstreamEnd = this.#end ?? 0n
    const { incarnation, localOffset, upstreamOffset, isNewest } = anchor
    this.#anchor = null
    this.#isAtAnchor = false
    const oldest = page.messages[0]
    if (oldest === undefined) return this.#nextPage(upstreamEnd)
    if (oldest.offset > upstreamOffset) {
      // Retention took what lies below.
      const upstreamStart = least(oldest.offset, this.#lowest)
      this.#floor = upstreamStart
      if (isNewest) return { kind: 'absent', upstreamStart, upstreamEnd, isLimited: false }
    } else if (oldest.id === messageId(this.#options.prefixes[incarnation] ?? 0n, localOffset)) {
      this.#floor = upstreamOffset
      this.#searched = null
      if (isNewest) return { kind: 'found', incarnation, localOffset, upstreamOffset, upstreamEnd, content: null }
    }
    return this.#nextPage(upstreamEnd)
  }

  #sizeOf(count: number): { readonly count: number; readonly expectedBytes: number } {
    return { count, expectedBytes: this.#options.lookSize.expectedBytes(count) }
  }
}

const least = (left: bigint, right: bigint): bigint => (left < right ? left : right)
