/** Segments as retention sees them. What stands in a file is read when it is asked for: there may be thousands of them. */
import { EdgeError } from '../errors.ts'
import { BATCH_FLAG, type BatchHeader } from './core/batch-header.ts'
import type { Holes } from './core/holes.ts'
import type { JournalSegment } from './core/journal-segments.ts'
import type { Segment } from './io/segment.ts'
import type { SegmentFiles } from './io/segment-files.ts'
import type { SealedSegment } from './ports.ts'

/** All but the one that still grows, oldest first. */
export function sealedViews(segments: readonly Segment[], files: SegmentFiles): readonly SealedSegment[] {
  const sealed = segments.filter((segment, index) => segment.isClosed || index < segments.length - 1)
  return sealed.map((_segment, index) => new SegmentView(sealed, index, files))
}

/** The one that still grows. */
export function activeView(segments: readonly Segment[], files: SegmentFiles): SealedSegment | null {
  const active = segments.at(-1)
  return active === undefined || active.isClosed ? null : new SegmentView([active], 0, files)
}

export interface JournalViewSource {
  readonly holes: Pick<Holes, 'countFrom'>
  /** Header of the batch in the journal that holds `offset`, if it can be read. @throws EDGE_IO. */
  readonly headerAt: (offset: bigint) => BatchHeader | undefined
}

/** Closed ones whose messages still lie in the journal. */
export function journalViews(closed: readonly JournalSegment[], source: JournalViewSource): readonly SealedSegment[] {
  return closed.map((segment) => new JournalSegmentView(segment, source))
}

class SegmentView implements SealedSegment {
  readonly #list: readonly Segment[]
  readonly #at: number
  readonly #segment: Segment
  readonly #files: SegmentFiles

  constructor(list: readonly Segment[], at: number, files: SegmentFiles) {
    const segment = list[at]
    if (segment === undefined) throw new EdgeError('EDGE_INTERNAL', `no segment at ${at}`)
    this.#list = list
    this.#at = at
    this.#segment = segment
    this.#files = files
  }

  get baseOffset(): bigint {
    return this.#segment.baseOffset
  }

  get endOffset(): bigint {
    return this.#segment.endOffset
  }

  get sizeBytes(): number {
    return this.#segment.sizeBytes
  }

  get fileBytes(): number {
    return this.#segment.sizeBytes
  }

  /** Exact: what a name alone tells would count offsets that were never given. */
  get messageCount(): number {
    try {
      if (this.#segment.blockCount === undefined) this.#files.index(this.#segment)
    } catch (error) {
      if (!(error instanceof EdgeError)) throw error
    }
    return this.#segment.messageCount
  }

  /** Of a file that cannot be read that of the one before it. */
  get lastAppendUs(): bigint {
    for (let at = this.#at; at >= 0; at--) {
      const segment = this.#list[at]
      const timeUs = segment === undefined ? undefined : this.#timeOf(segment)
      if (timeUs !== undefined) return timeUs
    }
    return 0n
  }

  /** Nor is the time of a file that cannot be read: it goes with the one behind it, and not before. */
  get isClockTrusted(): boolean {
    return this.#timeOf(this.#segment) !== undefined && this.#segment.isClockTrusted
  }

  #timeOf(segment: Segment): bigint | undefined {
    try {
      return this.#files.lastAppendUs(segment)
    } catch (error) {
      if (!(error instanceof EdgeError)) throw error
      return undefined
    }
  }
}

class JournalSegmentView implements SealedSegment {
  readonly baseOffset: bigint
  readonly endOffset: bigint
  readonly sizeBytes: number
  readonly fileBytes: number
  readonly #source: JournalViewSource

  constructor({ baseOffset, endOffset, sizeBytes, fileBytes }: JournalSegment, source: JournalViewSource) {
    this.baseOffset = baseOffset
    this.endOffset = endOffset
    this.sizeBytes = sizeBytes
    this.fileBytes = fileBytes
    this.#source = source
  }

  get messageCount(): number {
    const { holes } = this.#source
    const missing = holes.countFrom(this.baseOffset) - holes.countFrom(this.endOffset)
    return Number(this.endOffset - this.baseOffset) - missing
  }

  /** Nothing where the batch cannot be read. */
  get lastAppendUs(): bigint {
    return this.#lastHeader()?.appendTimeUs ?? 0n
  }

  /** One that cannot be read goes with what lies behind it, and not before: it may be the only one that is damaged. */
  get isClockTrusted(): boolean {
    const header = this.#lastHeader()
    return header !== undefined && (header.flags & BATCH_FLAG.isClockTrusted) !== 0
  }

  #lastHeader(): BatchHeader | undefined {
    try {
      return this.#source.headerAt(this.endOffset - 1n)
    } catch (error) {
      if (!(error instanceof EdgeError)) throw error
      return undefined
    }
  }
}
