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

/** One unit at a time: a file of single readings holds tens of thousands of batches. */
export function* planUnits(batches: Iterable<RepackBatch>): Generator<RepackUnit> {
  let block: RepackBatch[] = []
  let size = 0
  for (const batch of batches) {
    const last = block.at(-1)
    const isExternal = batch.header.kind === BATCH_KIND.external
    if (last !== undefined && (isExternal || mustSplit(last, batch, size + batch.size, block.length))) {
      yield { kind: 'block', batches: block }
      block = []
      size = 0
    }
    if (isExternal) {
      yield { kind: 'external', batch }
      continue
    }
    block.push(batch)
    size += batch.size
  }
  if (block.length > 0) yield { kind: 'block', batches: block }
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
