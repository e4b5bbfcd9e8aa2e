/**
 * Messages of the VSR dialect: batches of a 256-byte header and frames, little-endian. A send has one, a poll many.
 *
 *   batch:  0 partition id u64 | 8 base offset u64 | 16 base time u64 µs | 24 origin time u64 µs | 32 batch length u64
 *           40 batch checksum u64 | 48 message count u32 | 52 reserved, zero | 256 frames
 *   frame:  0 checksum u64 | 8 id u128 | 24 offset delta u32 | 28 origin delta u32 µs | 32 user headers length u32
 *           36 payload length u32 | 40 reserved u64, zero | 48 payload, user headers
 *
 * Frame checksum: XXH3-64 of all that follows it in the frame. Batch checksum: XXH3-64 of header bytes 0..40, the count,
 * and each frame's checksum. A polled batch may be a slice: base offset and times stay, its first offset delta is then
 * above zero.
 */
import { EdgeError } from '../../../errors.ts'
import type { RecordBatch, StoredBatch } from '../batch.ts'
import { FLAG, faultError } from '../kernel/faults.ts'
import { BATCH_HEADER_BYTES, FRAME_HEADER_BYTES } from '../kernel/js-kernel.ts'
import type { FrameBatchHead, Kernel, RecordSlice } from '../kernel/kernel.ts'
import type { Reader } from '../reader.ts'
import {
  isStored,
  kernelPieces,
  MAX_ORIGIN_SPAN_US,
  type OriginRun,
  originRuns,
  sliceOf,
  withoutSkipped,
} from '../record-slice.ts'
import type { Writer } from '../writer.ts'

const BASE_OFFSET_AT = 8
const BASE_TIME_AT = 16
const ORIGIN_AT = 24
const LENGTH_AT = 32
const COUNT_AT = 48
const RESERVED_AT = 52
const FIRST_OFFSET_DELTA_AT = BATCH_HEADER_BYTES + 24
const FIRST_ORIGIN_DELTA_AT = BATCH_HEADER_BYTES + 28

/**
 * Reads the batch of a send, which must fill the payload.
 *
 * @param count what the metadata before the batch announced.
 * @returns records that lie in the kernel's scratch: valid until its next call.
 * @throws EDGE_BATCH_EMPTY (4009), EDGE_COMMAND_MALFORMED (3) where header and metadata do not fit,
 *   EDGE_CHECKSUM_INVALID (4027), EDGE_BATCH_CHECKSUM_INVALID (4039), and the size errors of classic sends.
 */
export function readSentBatch(reader: Reader, count: number, kernel: Kernel): RecordBatch {
  if (count === 0) throw reader.fail('EDGE_BATCH_EMPTY', 'at least 1 message', '0')
  const batchView = reader.restView()
  const head = readHead(reader, batchView)
  if (head.lengthBytes !== batchView.length) {
    throw reader.fail('EDGE_COMMAND_MALFORMED', `a batch of ${batchView.length} bytes`, `${head.lengthBytes}`)
  }
  if (head.count !== count) throw reader.fail('EDGE_COMMAND_MALFORMED', `${count} messages`, `${head.count}`)
  const target = kernel.scratch(batchView.length)
  const size = kernel.packFrames(batchView, count, 0, target, 0)
  if (size < 0) throw faultError(size, kernel.faultIndex, count)
  return { count, baseOriginUs: firstOriginOf(batchView), recordsView: target.subarray(0, size) }
}

/**
 * Writes the batch of a send. Messages of a stored batch get the ids derived from their offsets.
 *
 * @throws EDGE_BATCH_INVALID when origin times lie more than 2^32 µs apart: send the `originRuns` one by one.
 */
export function writeSentBatch(writer: Writer, batch: RecordBatch, kernel: Kernel): void {
  const slice = sliceOf(batch)
  const [run, more] = runsOf(batch, slice, kernel)
  if (run === undefined) throw new EdgeError('EDGE_BATCH_EMPTY', 'batch to send: expected at least 1 message, found 0')
  if (more !== undefined) {
    const message = `batch to send: expected origin times within ${MAX_ORIGIN_SPAN_US} µs, found more between them`
    throw new EdgeError('EDGE_BATCH_INVALID', message)
  }
  const head = { partitionId: 0, baseOffset: 0n, appendTimeUs: 0n, originUs: run.originUs }
  unpack(writer, withoutSkipped(slice), head, isStored(batch) ? FLAG.deriveIds : 0, kernel)
}

/** Writes the batches of a poll, each with its checksums; one that is large or of origin times far apart becomes several. */
export function writePolledBatches(
  writer: Writer,
  partitionId: number,
  batches: readonly StoredBatch[],
  kernel: Kernel,
): void {
  for (const batch of batches) {
    for (const { skip, take, originUs } of runsOf(batch, batch, kernel)) {
      for (const piece of kernelPieces({ ...sliceOf(batch), skip, take })) {
        const head = { partitionId, baseOffset: piece.baseOffset, appendTimeUs: batch.appendTimeUs, originUs }
        unpack(writer, piece, head, FLAG.deriveIds, kernel)
      }
    }
  }
}

/** One run as a rule; the origin is that of the whole batch, so that a slice has the bytes it has in the whole. */
function runsOf(batch: RecordBatch, slice: RecordSlice, kernel: Kernel): readonly OriginRun[] {
  if (slice.take === 0) return []
  const fault = kernel.scan(batch.recordsView, batch.count, batch.baseOriginUs)
  if (fault < 0) throw faultError(fault, kernel.faultIndex, batch.count)
  if (kernel.mostOriginUs - kernel.leastOriginUs > MAX_ORIGIN_SPAN_US) return originRuns(slice)
  return [{ skip: slice.skip, take: slice.take, originUs: kernel.leastOriginUs }]
}

function unpack(writer: Writer, slice: RecordSlice, head: FrameBatchHead, flags: number, kernel: Kernel): void {
  // A record takes at least two bytes, so this bound is never too small.
  const bound = BATCH_HEADER_BYTES + slice.recordsView.length + slice.take * FRAME_HEADER_BYTES
  writer.ensure(bound)
  const target = writer.bufferView.subarray(writer.length, writer.length + bound)
  const size = kernel.unpackFrames(slice, head, target, flags)
  if (size < 0) throw faultError(size, kernel.faultIndex, slice.take)
  writer.advance(size)
}

/** Reads the batches of a poll, `count` messages in all, to the end of the payload. Records are copied, not aliased. */
export function readPolledBatches(reader: Reader, count: number, kernel: Kernel): StoredBatch[] {
  const batches: StoredBatch[] = []
  let found = 0
  let restView = reader.restView()
  while (restView.length > 0) {
    const head = readHead(reader, restView)
    if (head.lengthBytes > restView.length || head.count === 0) {
      const expected = `1 or more messages within ${restView.length} bytes`
      throw reader.fail('EDGE_COMMAND_MALFORMED', expected, `${head.count} in ${head.lengthBytes}`)
    }
    batches.push(readPolledBatch(restView.subarray(0, head.lengthBytes), head.count, kernel))
    found += head.count
    restView = restView.subarray(head.lengthBytes)
  }
  if (found !== count) throw reader.fail('EDGE_COMMAND_MALFORMED', `${count} messages`, `${found}`)
  return batches
}

function readPolledBatch(batchView: Uint8Array, count: number, kernel: Kernel): StoredBatch {
  const view = dataViewOf(batchView)
  const firstDelta = batchView.length > FIRST_OFFSET_DELTA_AT + 4 ? view.getUint32(FIRST_OFFSET_DELTA_AT, true) : 0
  const target = kernel.scratch(batchView.length)
  const size = kernel.packFrames(batchView, count, firstDelta, target, FLAG.keepIds)
  if (size < 0) throw faultError(size, kernel.faultIndex, count)
  return {
    count,
    baseOriginUs: firstOriginOf(batchView),
    recordsView: target.slice(0, size),
    baseOffset: BigInt.asUintN(64, view.getBigUint64(BASE_OFFSET_AT, true) + BigInt(firstDelta)),
    appendTimeUs: view.getBigUint64(BASE_TIME_AT, true),
    idSeed: 0n,
    skip: 0,
    take: count,
    isClockTrusted: true,
  }
}

interface BatchHead {
  readonly lengthBytes: number
  readonly count: number
}

function readHead(reader: Reader, batchView: Uint8Array): BatchHead {
  if (batchView.length < BATCH_HEADER_BYTES) {
    throw reader.fail('EDGE_COMMAND_MALFORMED', `a batch header of ${BATCH_HEADER_BYTES} bytes`, `${batchView.length}`)
  }
  const view = dataViewOf(batchView)
  let reserved = 0
  for (let at = RESERVED_AT; at < BATCH_HEADER_BYTES; at += 4) reserved |= view.getUint32(at, true)
  if (reserved !== 0) throw reader.fail('EDGE_COMMAND_MALFORMED', 'zero reserved bytes in the batch header', 'others')
  if (view.getUint32(LENGTH_AT + 4, true) !== 0) {
    throw reader.fail('EDGE_COMMAND_MALFORMED', 'a batch length below 2^32', 'more')
  }
  const lengthBytes = view.getUint32(LENGTH_AT, true)
  if (lengthBytes < BATCH_HEADER_BYTES) {
    throw reader.fail('EDGE_COMMAND_MALFORMED', `a batch length of at least ${BATCH_HEADER_BYTES}`, `${lengthBytes}`)
  }
  return { lengthBytes, count: view.getUint32(COUNT_AT, true) }
}

/** Origin time of the first frame; the kernel has checked that there is one. */
function firstOriginOf(batchView: Uint8Array): bigint {
  const view = dataViewOf(batchView)
  return BigInt.asUintN(64, view.getBigUint64(ORIGIN_AT, true) + BigInt(view.getUint32(FIRST_ORIGIN_DELTA_AT, true)))
}

function dataViewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}
