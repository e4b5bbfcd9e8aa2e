/** Which records of a batch are meant, and what they are numbered from: the common start of all encoders of messages. */
import type { RecordBatch, StoredBatch } from './batch.ts'
import { FAULT, faultError } from './kernel/faults.ts'
import type { RecordSlice } from './kernel/kernel.ts'
import { RecordCursor } from './kernel/record-cursor.ts'

/** What a kernel gets at once: more than its memory takes is hashed in plain JavaScript, fifteen times slower. */
const PIECE_BYTES = 1024 * 1024
/** What a message takes beside its content, in either dialect. */
const MESSAGE_HEAD_BYTES = 64

/** The largest distance of origin times within one VSR batch, µs: its deltas are u32. */
export const MAX_ORIGIN_SPAN_US = 0xffff_ffffn

/** @returns whether offsets were given: then messages without an id have the one derived from their offset. */
export function isStored(batch: RecordBatch): batch is StoredBatch {
  return 'idSeed' in batch
}

/** @returns the records that were asked for; all of them when the batch is not a stored one. */
export function sliceOf(batch: RecordBatch): RecordSlice {
  if (isStored(batch)) return batch
  const { recordsView, baseOriginUs, count } = batch
  return { recordsView, baseOriginUs, skip: 0, take: count, baseOffset: 0n, idSeed: 0n, appendTimeUs: 0n }
}

/** Consecutive records of one slice whose origin times fit in one VSR batch. */
export interface OriginRun {
  readonly skip: number
  readonly take: number
  /** Smallest origin time of the run, µs. */
  readonly originUs: bigint
}

/**
 * Cuts a slice where origin times lie more than 2^32 µs (71 minutes) apart: devices whose clock was set meanwhile. Rare,
 * so it may be slow.
 *
 * @throws EDGE_BATCH_CORRUPT when a record does not lie within the batch.
 */
export function originRuns(slice: RecordSlice): readonly OriginRun[] {
  const cursor = new RecordCursor(slice.recordsView, slice.baseOriginUs)
  const end = slice.skip + slice.take
  const runs: OriginRun[] = []
  let start = slice.skip
  let least = 0n
  let most = 0n
  for (let i = 0; i < end; i++) {
    if (!cursor.next()) throw faultError(FAULT.record, i, end)
    if (i < slice.skip) continue
    const { originUs } = cursor
    const isFirst = i === start
    const nextLeast = isFirst || originUs < least ? originUs : least
    const nextMost = isFirst || originUs > most ? originUs : most
    if (nextMost - nextLeast > MAX_ORIGIN_SPAN_US) {
      runs.push({ skip: start, take: i - start, originUs: least })
      start = i
      least = originUs
      most = originUs
    } else {
      least = nextLeast
      most = nextMost
    }
  }
  if (end > start) runs.push({ skip: start, take: end - start, originUs: least })
  return runs
}

/** @returns the same records without those before `skip`, numbered from 0: what a send has. */
export function withoutSkipped(slice: RecordSlice): RecordSlice {
  if (slice.skip === 0) return slice
  const cursor = new RecordCursor(slice.recordsView, slice.baseOriginUs)
  for (let i = 0; i < slice.skip; i++) {
    if (!cursor.next()) throw faultError(FAULT.record, i, slice.skip + slice.take)
  }
  return {
    recordsView: slice.recordsView.subarray(cursor.at),
    skip: 0,
    take: slice.take,
    baseOffset: slice.baseOffset + BigInt(slice.skip),
    idSeed: slice.idSeed,
    appendTimeUs: slice.appendTimeUs,
    // The next record's delta counts from the last one skipped.
    baseOriginUs: cursor.originUs,
  }
}

/**
 * Cuts what is too large for a kernel into consecutive slices without records before them; a record that is too large by
 * itself stands alone.
 *
 * @returns the slice itself when it is small enough.
 * @throws EDGE_BATCH_CORRUPT when a record does not lie within the batch.
 */
export function kernelPieces(slice: RecordSlice): readonly RecordSlice[] {
  const { recordsView, skip, take } = slice
  if (recordsView.length + take * MESSAGE_HEAD_BYTES <= PIECE_BYTES) return [slice]
  const pieces: RecordSlice[] = []
  const cursor = new RecordCursor(recordsView, slice.baseOriginUs)
  const end = skip + take
  let first = skip
  let [firstAt, baseOriginUs] = [0, slice.baseOriginUs]
  const cut = (next: number, nextAt: number): void => {
    const [baseOffset, part] = [slice.baseOffset + BigInt(first), recordsView.subarray(firstAt, nextAt)]
    pieces.push({ ...slice, recordsView: part, skip: 0, take: next - first, baseOffset, baseOriginUs })
  }
  for (let i = 0; i < end; i++) {
    const [at, originUs] = [cursor.at, cursor.originUs]
    if (!cursor.next()) throw faultError(FAULT.record, i, end)
    const isFull = i > first && cursor.at - firstAt + (i + 1 - first) * MESSAGE_HEAD_BYTES > PIECE_BYTES
    if (isFull) cut(i, at)
    if (isFull || i === skip) [first, firstAt, baseOriginUs] = [i, at, originUs]
  }
  if (end > first) cut(end, cursor.at)
  return pieces
}
