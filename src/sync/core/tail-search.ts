/**
 * Looks for our newest record at an upstream's tail, over as many links as it takes: what was searched on a link that broke is
 * not searched again on the next one, and what was learned of the size of messages there is kept. Pure.
 */
import type { ErrorCode } from '../../errors.ts'
import type { Cursor } from '../ports.ts'
import { LookSize } from './look-size.ts'
import {
  type OffsetSpan,
  type TailAnchor,
  type TailPage,
  type TailRequest,
  TailScan,
  type TailScanOptions,
  type TailVerdict,
} from './tail.ts'

/** So many of others may lie before one of ours. */
const LOOK_COUNT = 16

export class TailSearch {
  readonly #lookSize: LookSize
  #scan: TailScan | null = null
  #startedUs = 0
  /** Has none of ours, as long as nothing more of ours is sent. */
  #searched: OffsetSpan | null = null

  constructor(maxPageCount: number) {
    this.#lookSize = new LookSize(maxPageCount)
  }

  /** Of the search that was begun last. */
  get startedUs(): number {
    return this.#startedUs
  }

  /** @returns what to poll first. */
  begin(options: Omit<TailScanOptions, 'lookSize' | 'searched'>, nowUs: number): TailRequest {
    this.#startedUs = nowUs
    this.#scan = new TailScan({ ...options, lookSize: this.#lookSize, searched: this.#searched })
    return this.#scan.request
  }

  /** @returns the verdict, or what to poll next. */
  accept(page: TailPage): TailVerdict | TailRequest | null {
    const scan = this.#scan
    if (scan === null) return null
    const verdict = scan.accept(page)
    if (verdict === null) return scan.request
    this.#searched = verdict.kind === 'absent' ? scan.searched : null
    this.#lookSize.finished()
    this.#scan = null
    return verdict
  }

  /** @returns a look for the first of our records from there on. */
  look(offset: bigint): TailRequest {
    const count = this.#lookCount
    return { kind: 'from', offset, count, expectedBytes: this.#lookSize.expectedBytes(count) }
  }

  /** A look had no answer, or one that says so. */
  failed(code: ErrorCode): void {
    const scan = this.#scan
    const count = scan?.request.count ?? this.#lookCount
    if (code === 'EDGE_FRAME_TOO_LARGE') this.#lookSize.tooLarge(count)
    if (code === 'EDGE_UPSTREAM_TIMEOUT') this.#lookSize.timedOut(count)
    if (scan === null) return
    if (lengthOf(scan.searched) > lengthOf(this.#searched)) this.#searched = scan.searched
    this.#scan = null
  }

  get #lookCount(): number {
    return Math.min(LOOK_COUNT, this.#lookSize.pageCount)
  }

  /** So many records with so many bytes are on their way. */
  sent(count: number, sizeBytes: number): void {
    this.#lookSize.seen(count, sizeBytes)
    this.#searched = null
  }

  /** The topic is another one. */
  forget(): void {
    this.#searched = null
    this.#scan = null
  }
}

/** @param isNewest nothing was sent that the cursor does not know of. */
export function anchorOf(cursor: Cursor | undefined, isNewest: boolean): TailAnchor | null {
  const upstreamOffset = cursor?.upstreamOffset ?? null
  if (cursor === undefined || upstreamOffset === null) return null
  return { incarnation: cursor.incarnation ?? 0, localOffset: cursor.confirmedOffset, upstreamOffset, isNewest }
}

const lengthOf = (span: OffsetSpan | null): bigint => (span === null ? 0n : span.end - span.from)
