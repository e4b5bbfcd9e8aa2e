/**
 * How the batches of one partition become blocks, and when a segment is closed. Pure: sizes and times in, decisions out.
 *
 * A block ends where it would grow past 64 KiB raw, where it fills a segment, where the machine start changes (a block names one,
 * and the last one tells whether offsets may have been lost), and before a gap, so that an index alone shows which exist.
 */
import { BATCH_FLAG, type BatchHeader, MAX_GROUP_BATCHES } from './batch-header.ts'
import { BLOCK_FLAG, BLOCK_RAW_SIZE, type BlockHeader } from './segment-format.ts'

/** A batch of the journal on its way into a segment. */
export interface RepackBatch {
  readonly header: BatchHeader
  readonly size: number
  readonly boot: number
}

/** What the header of a block says of its batches. */
export type BlockFields = Omit<
  BlockHeader,
  'position' | 'previousPosition' | 'bodyCrc' | 'storedSize' | 'runNumber' | 'codec'
>

/** The block that is being put together. Holds no batch but the last: a file of single readings has tens of thousands. */
export class BlockPlan {
  readonly #segmentSize: number
  #first: BatchHeader | undefined
  #last: RepackBatch | undefined
  #rawSize = 0
  #batchCount = 0
  #recordCount = 0

  /** @param segmentSize bytes at which a segment is closed: a block that would be one by itself grows no more. */
  constructor(segmentSize: number) {
    this.#segmentSize = segmentSize
  }

  /** Bytes of its batches. */
  get rawSize(): number {
    return this.#rawSize
  }

  /** Whether the block goes on with `batch`; else it ends before it. A batch of any size begins one. */
  takes({ header, size, boot }: RepackBatch): boolean {
    const last = this.#last
    if (last === undefined) return true
    const isGap = (header.flags & BATCH_FLAG.hasGapBefore) !== 0 || endOf(last.header) !== header.baseOffset
    const isTooLarge = this.#rawSize + size > BLOCK_RAW_SIZE || this.#batchCount >= MAX_GROUP_BATCHES
    return !isGap && !isTooLarge && this.#rawSize < this.#segmentSize && last.boot === boot
  }

  add(batch: RepackBatch): void {
    this.#first ??= batch.header
    this.#last = batch
    this.#rawSize += batch.size
    this.#batchCount++
    this.#recordCount += batch.header.count
  }

  /** @returns what was planned, and begins anew; undefined when nothing was. */
  take(): BlockFields | undefined {
    const [first, last] = [this.#first, this.#last]
    if (first === undefined || last === undefined) return undefined
    const fields = {
      rawSize: this.#rawSize,
      batchCount: this.#batchCount,
      recordCount: this.#recordCount,
      flags: (last.header.flags & BATCH_FLAG.isClockTrusted) === 0 ? BLOCK_FLAG.isClockUntrusted : 0,
      baseOffset: first.baseOffset,
      endOffset: endOf(last.header),
      firstTimeUs: first.appendTimeUs,
      lastTimeUs: last.header.appendTimeUs,
      boot: last.boot,
    }
    this.#first = undefined
    this.#last = undefined
    this.#rawSize = 0
    this.#batchCount = 0
    this.#recordCount = 0
    return fields
  }
}

const endOf = ({ baseOffset, count }: BatchHeader): bigint => baseOffset + BigInt(count)

/** Compression pays when the stored block is at most this part of the raw one; else reading plain bytes is cheaper. */
const WORTHWHILE_RATIO = 0.9

export const isWorthwhile = (rawSize: number, compressedSize: number): boolean =>
  compressedSize <= rawSize * WORTHWHILE_RATIO

export interface RollLimits {
  readonly sizeBytes: number
  readonly maxAgeUs: bigint
}

/** What compresses well, or comes in small pieces, would else make an index as large as it likes. */
export const MAX_SEGMENT_BLOCKS = 8192

/** Whether a segment takes no more blocks. @param firstAppendUs time of its first batch. */
export function isSegmentFull(
  segment: { readonly sizeBytes: number; readonly blockCount: number; readonly firstAppendUs: bigint },
  limits: RollLimits,
  nowUs: bigint,
): boolean {
  const { sizeBytes, blockCount, firstAppendUs } = segment
  return sizeBytes >= limits.sizeBytes || blockCount >= MAX_SEGMENT_BLOCKS || nowUs - firstAppendUs >= limits.maxAgeUs
}
