/**
 * How the batches of one partition become blocks, and when a segment is closed. Pure: sizes and times in, decisions out.
 *
 * A block ends where it would grow past 64 KiB raw, where the machine start changes (a block names one, and the last one
 * tells whether offsets may have been lost), and before a gap, so that an index alone shows which offsets exist.
 */
import { BATCH_FLAG, BATCH_KIND, type BatchHeader, MAX_GROUP_BATCHES } from './batch-header.ts'
import { BLOCK_RAW_SIZE } from './segment-format.ts'

/** A batch of the journal on its way into a segment. */
export interface RepackBatch {
  readonly header: BatchHeader
  readonly position: number
  readonly size: number
  readonly boot: number
}

/** One block of batches, or one file of its own that becomes a segment as it is. */
export type RepackUnit =
  | { readonly kind: 'block'; readonly batches: readonly RepackBatch[] }
  | { readonly kind: 'external'; readonly batch: RepackBatch }

export function planUnits(batches: readonly RepackBatch[]): RepackUnit[] {
  const units: RepackUnit[] = []
  let block: RepackBatch[] = []
  let size = 0
  const close = (): void => {
    if (block.length > 0) units.push({ kind: 'block', batches: block })
    block = []
    size = 0
  }
  for (const batch of batches) {
    if (batch.header.kind === BATCH_KIND.external) {
      close()
      units.push({ kind: 'external', batch })
      continue
    }
    const last = block.at(-1)
    if (last !== undefined && mustSplit(last, batch, size + batch.size, block.length)) close()
    block.push(batch)
    size += batch.size
  }
  close()
  return units
}

function mustSplit(last: RepackBatch, next: RepackBatch, size: number, count: number): boolean {
  const isGap = (next.header.flags & BATCH_FLAG.hasGapBefore) !== 0 || endOf(last) !== next.header.baseOffset
  return isGap || size > BLOCK_RAW_SIZE || last.boot !== next.boot || count >= MAX_GROUP_BATCHES
}

export const endOf = ({ header }: Pick<RepackBatch, 'header'>): bigint => header.baseOffset + BigInt(header.count)

/** Compression pays when the stored block is at most this part of the raw one; else reading plain bytes is cheaper. */
const WORTHWHILE_RATIO = 0.9

export const isWorthwhile = (rawSize: number, compressedSize: number): boolean =>
  compressedSize <= rawSize * WORTHWHILE_RATIO

export interface RollLimits {
  readonly sizeBytes: number
  readonly maxAgeUs: bigint
}

/** Whether a segment takes no more blocks. @param firstAppendUs time of its first batch. */
export function isSegmentFull(
  segment: { readonly sizeBytes: number; readonly firstAppendUs: bigint },
  limits: RollLimits,
  nowUs: bigint,
): boolean {
  return segment.sizeBytes >= limits.sizeBytes || nowUs - segment.firstAppendUs >= limits.maxAgeUs
}
