/**
 * Messages of the classic dialect (C-0.8), all little-endian.
 *
 *   send:  index entries of 16 bytes [0:4][cumulative size:4][0:8], one a message, then the messages
 *   poll:  the messages
 *   message:  0 checksum u64 | 8 id u128 | 24 offset u64 | 32 append time u64 µs | 40 origin time u64 µs
 *             48 user headers length u32 | 52 payload length u32 | 56 reserved u64 | 64 payload, user headers
 *
 * The checksum is XXH3-64 of all that follows it. Senders leave checksum, offset and append time zero; what they put
 * there is ignored, as Iggy's server does.
 */
import { EdgeError } from '../../../errors.ts'
import type { RecordBatch, StoredBatch } from '../batch.ts'
import { FAULT, FLAG, faultError } from '../kernel/faults.ts'
import { CLASSIC_HEADER_BYTES } from '../kernel/js-kernel.ts'
import type { Kernel } from '../kernel/kernel.ts'
import { type Reader, u32At } from '../reader.ts'
import { isStored, kernelPieces, sliceOf } from '../record-slice.ts'
import type { Writer } from '../writer.ts'

const INDEX_ENTRY_BYTES = 16
const OFFSET_AT = 24
const APPEND_TIME_AT = 32
const ORIGIN_TIME_AT = 40
const HEADERS_LENGTH_AT = 48
const PAYLOAD_LENGTH_AT = 52

/**
 * Reads index and messages of a send, to the end of the payload.
 *
 * @returns records that lie in the kernel's scratch: valid until its next call.
 * @throws EDGE_BATCH_EMPTY (4009), …_OFFSET_NONZERO (4031), …_TIMESTAMP_NONZERO (4032), …_POSITION_INVALID (10011),
 *   …_INDEX_MISSING (4033), …_SIZE_INVALID (4036), EDGE_MESSAGE_TOO_LARGE (4022), EDGE_HEADERS_TOO_LARGE (4017).
 */
export function readSentMessages(reader: Reader, count: number, kernel: Kernel): RecordBatch {
  if (count === 0) throw reader.fail('EDGE_BATCH_EMPTY', 'at least 1 message', '0')
  checkIndex(reader.bytesView(count * INDEX_ENTRY_BYTES), count)
  const messagesView = reader.restView()
  const target = kernel.scratch(messagesView.length)
  const size = kernel.packClassic(messagesView, count, target, 0)
  if (size < 0) throw faultError(size, kernel.faultIndex, count)
  const baseOriginUs = dataViewOf(messagesView).getBigUint64(ORIGIN_TIME_AT, true)
  return { count, baseOriginUs, recordsView: target.subarray(0, size) }
}

function checkIndex(indexView: Uint8Array, count: number): void {
  let previous = 0
  for (let i = 0; i < count; i++) {
    const at = i * INDEX_ENTRY_BYTES
    const position = u32At(indexView, at + 4)
    if (u32At(indexView, at) !== 0) throw indexError('EDGE_BATCH_OFFSET_NONZERO', i, 'offset 0')
    if (position < previous) throw indexError('EDGE_BATCH_POSITION_INVALID', i, 'a position not below the one before')
    if ((u32At(indexView, at + 8) | u32At(indexView, at + 12)) !== 0) {
      throw indexError('EDGE_BATCH_TIMESTAMP_NONZERO', i, 'timestamp 0')
    }
    previous = position
  }
}

type IndexErrorCode = 'EDGE_BATCH_OFFSET_NONZERO' | 'EDGE_BATCH_POSITION_INVALID' | 'EDGE_BATCH_TIMESTAMP_NONZERO'

function indexError(code: IndexErrorCode, messageIndex: number, expected: string): EdgeError {
  const message = `index entry of message ${messageIndex}: expected ${expected}, found another`
  return new EdgeError(code, message, { details: { messageIndex } })
}

/** Writes index and messages of a send. Messages of a stored batch get the ids derived from their offsets. */
export function writeSentMessages(writer: Writer, batch: RecordBatch, kernel: Kernel): void {
  const slice = sliceOf(batch)
  const indexAt = writer.length
  writer.zeros(slice.take * INDEX_ENTRY_BYTES)
  const messagesAt = writer.length
  unpack(writer, batch, isStored(batch) ? FLAG.deriveIds : 0, kernel)
  const view = dataViewOf(writer.bufferView)
  let at = messagesAt
  for (let i = 0; i < slice.take; i++) {
    at += messageSize(view, at)
    view.setUint32(indexAt + i * INDEX_ENTRY_BYTES + 4, at - messagesAt, true)
  }
}

/** Writes the messages of a poll: offsets, append times, ids and checksums as Iggy's server gives them. */
export function writePolledMessages(writer: Writer, batches: readonly StoredBatch[], kernel: Kernel): void {
  for (const batch of batches) unpack(writer, batch, FLAG.withChecksum | FLAG.stamp | FLAG.deriveIds, kernel)
}

/** The messages of a poll, for a reply that is sent part by part. */
export interface PolledParts {
  /** Bytes of all messages, as `writePolledMessages` writes them. */
  readonly sizeBytes: number
  readonly parts: readonly (readonly StoredBatch[])[]
}

/**
 * @param partBytes about as large a part becomes: messages of one batch are taken as alike, and none is cut.
 * @throws EDGE_BATCH_CORRUPT when a record does not lie within its batch.
 */
export function partsOfPoll(batches: readonly StoredBatch[], partBytes: number, kernel: Kernel): PolledParts {
  const parts: StoredBatch[][] = []
  let sizeBytes = 0
  let room = 0
  for (const batch of batches) {
    const contentBytes = kernel.measure(batch.recordsView, batch.skip, batch.take)
    if (contentBytes < 0) throw faultError(contentBytes, kernel.faultIndex, batch.count)
    const batchBytes = batch.take * CLASSIC_HEADER_BYTES + contentBytes
    const pieces = piecesOf(batch, Math.ceil(batchBytes / partBytes))
    const pieceBytes = batchBytes / pieces.length
    for (const piece of pieces) {
      const part = parts.at(-1)
      if (part !== undefined && pieceBytes <= room) part.push(piece)
      else parts.push([piece])
      room = (part === parts.at(-1) ? room : partBytes) - pieceBytes
    }
    sizeBytes += batchBytes
  }
  return { sizeBytes, parts }
}

/** At most `count` pieces, of as many messages each. */
function piecesOf(batch: StoredBatch, count: number): readonly StoredBatch[] {
  if (count <= 1) return [batch]
  const perPiece = Math.ceil(batch.take / count)
  const end = batch.skip + batch.take
  return Array.from({ length: Math.ceil(batch.take / perPiece) }, (_, at) => {
    const skip = batch.skip + at * perPiece
    return { ...batch, skip, take: Math.min(perPiece, end - skip) }
  })
}

function unpack(writer: Writer, batch: RecordBatch, flags: number, kernel: Kernel): void {
  for (const piece of kernelPieces(sliceOf(batch))) {
    // A record takes at least two bytes, so this bound is never too small.
    const bound = piece.recordsView.length + piece.take * CLASSIC_HEADER_BYTES
    writer.ensure(bound)
    const target = writer.bufferView.subarray(writer.length, writer.length + bound)
    const size = kernel.unpackClassic(piece, target, flags)
    if (size < 0) throw faultError(size, kernel.faultIndex, batch.count)
    writer.advance(size)
  }
}

/**
 * Reads the `count` messages of a poll, to the end of the payload. Messages of consecutive offsets and one append time
 * make one batch, so that a batch here is at least what was one batch there. Checksums that are there are verified.
 */
export function readPolledMessages(reader: Reader, count: number, kernel: Kernel): StoredBatch[] {
  const messagesView = reader.restView()
  const view = dataViewOf(messagesView)
  const batches: StoredBatch[] = []
  let at = 0
  let left = count
  while (left > 0) {
    const run = runAt(view, at, left)
    batches.push(readRun(messagesView.subarray(at, at + run.sizeBytes), run.count, kernel))
    at += run.sizeBytes
    left -= run.count
  }
  if (at !== messagesView.length) throw faultError(FAULT.trailing, count, count)
  return batches
}

function readRun(runView: Uint8Array, count: number, kernel: Kernel): StoredBatch {
  const target = kernel.scratch(runView.length)
  const size = kernel.packClassic(runView, count, target, FLAG.verify | FLAG.keepIds)
  if (size < 0) throw faultError(size, kernel.faultIndex, count)
  const view = dataViewOf(runView)
  return {
    count,
    baseOriginUs: view.getBigUint64(ORIGIN_TIME_AT, true),
    recordsView: target.slice(0, size),
    baseOffset: view.getBigUint64(OFFSET_AT, true),
    appendTimeUs: view.getBigUint64(APPEND_TIME_AT, true),
    idSeed: 0n,
    skip: 0,
    take: count,
    isClockTrusted: true,
  }
}

function runAt(view: DataView, start: number, most: number): { count: number; sizeBytes: number } {
  let at = start
  let count = 0
  let offset = 0n
  let appendTimeUs = 0n
  while (count < most) {
    if (view.byteLength - at < CLASSIC_HEADER_BYTES) throw faultError(FAULT.short, count, most)
    const messageOffset = view.getBigUint64(at + OFFSET_AT, true)
    const messageTimeUs = view.getBigUint64(at + APPEND_TIME_AT, true)
    if (count > 0 && (messageOffset !== offset + 1n || messageTimeUs !== appendTimeUs)) break
    const size = messageSize(view, at)
    if (size > view.byteLength - at) throw faultError(FAULT.short, count, most)
    offset = messageOffset
    appendTimeUs = messageTimeUs
    at += size
    count++
  }
  return { count, sizeBytes: at - start }
}

function messageSize(view: DataView, at: number): number {
  return (
    CLASSIC_HEADER_BYTES + view.getUint32(at + HEADERS_LENGTH_AT, true) + view.getUint32(at + PAYLOAD_LENGTH_AT, true)
  )
}

function dataViewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}
