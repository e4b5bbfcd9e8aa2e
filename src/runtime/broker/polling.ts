/** Where a poll starts and what it says of the partition. Pure. */
import type { Partition, ReadRequest } from '../../log/index.ts'
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import { RecordCursor } from '../../sdk/wire/kernel/record-cursor.ts'
import { KIB, MIB } from '../../setting.ts'
import type { Dialect } from './api.ts'

/** Of the memory, what one answer may take where nobody says: it is held twice while it is put together. */
const MEMORY_SHARE = 64
const MIN_AUTO_BYTES = 8 * MIB
/** Iggy's server knows no limit, and its clients ask for a hundred megabytes at once. */
const MAX_BYTES = 128 * MIB
/**
 * What a carrier takes of it. A VSR frame ends at 64 MiB, and small messages grow by their heads in it; over HTTP and for
 * devices messages become text, which lives on the heap of the engine.
 */
const MAX_BYTES_OF: Readonly<Record<Dialect, number>> = {
  classic: MAX_BYTES,
  vsr: 56 * MIB,
  http: 8 * MIB,
  edge: 8 * MIB,
}

/**
 * Of the memory, what all answers together may take that peers leave unread, or that are still read from the disk. Beyond it each
 * poll answers little: the sockets of who reads on take that at once, who does not read ties up no more, and hundreds that
 * come back for old messages at once get on all the same.
 */
const HELD_MEMORY_SHARE = 32
const MIN_HELD_BYTES = 16 * MIB
const MAX_BYTES_IN_NEED = 64 * KIB

/** What an answer of text may take of the heap, about: as much as one large message of `MAX_BYTES_OF` does. */
const MAX_TEXT_BYTES = 12 * MIB
/** A message without payload and headers, as an object and as text. */
const MESSAGE_TEXT_BYTES = 400
/** Base64. */
const PAYLOAD_TEXT_GROWTH = 1.4
/** A header of twelve bytes becomes four objects. */
const HEADERS_TEXT_GROWTH = 24

/**
 * @param heldBytes of answers that peers have not taken yet, or that are being read.
 * @returns the bytes of messages that one poll answers at most.
 */
export function answerLimit(
  dialect: Dialect,
  setting: number | 'auto',
  memoryBytes: number,
  heldBytes: number,
): number {
  if (heldBytes > Math.max(MIN_HELD_BYTES, memoryBytes / HELD_MEMORY_SHARE)) return MAX_BYTES_IN_NEED
  const wanted = setting === 'auto' ? Math.max(MIN_AUTO_BYTES, Math.floor(memoryBytes / MEMORY_SHARE)) : setting
  return Math.min(wanted, MAX_BYTES_OF[dialect])
}

/**
 * @param sizeBytes of all messages of the partition.
 * @returns about what a read will have, where messages are as large as the others of their partition.
 */
export function expectedBytes(
  { fromOffset, maxCount, maxBytes }: ReadRequest,
  { visibleEnd, messageCount }: Pick<Partition, 'visibleEnd' | 'messageCount'>,
  sizeBytes: number,
): number {
  const count = Math.min(maxCount, Number(visibleEnd - fromOffset))
  return Math.min(maxBytes, Math.ceil((count * sizeBytes) / Math.max(1, messageCount)))
}

/**
 * @param batches what was read. Tiny messages, and many small headers, are far larger as text than as bytes.
 * @returns as many of their messages as an answer of text may have, always at least one.
 */
export function fittingAsText(batches: readonly StoredBatch[], maxBytes = MAX_TEXT_BYTES): readonly StoredBatch[] {
  const fitting: StoredBatch[] = []
  let textBytes = 0
  for (const batch of batches) {
    const cursor = new RecordCursor(batch.recordsView, batch.baseOriginUs)
    let take = 0
    // Records that do not lie in their batch are told of when they are read for the answer.
    for (let index = 0; index < batch.skip + batch.take && cursor.next(); index++) {
      if (index < batch.skip) continue
      textBytes += textBytesOf(cursor)
      if (textBytes > maxBytes && take + fitting.length > 0)
        return take === 0 ? fitting : [...fitting, { ...batch, take }]
      take++
    }
    fitting.push(batch)
  }
  return fitting
}

const textBytesOf = ({ payloadSize, headersSize }: RecordCursor): number =>
  MESSAGE_TEXT_BYTES + payloadSize * PAYLOAD_TEXT_GROWTH + headersSize * HEADERS_TEXT_GROWTH

/** The ends of a partition that a poll sees. */
export interface VisibleRange {
  readonly logStartOffset: bigint
  readonly visibleEnd: bigint
}

/** What is known before anything is read; a time has been turned into an offset. */
export type StartingPoint =
  | { readonly kind: 'offset'; readonly offset: bigint }
  | { readonly kind: 'first' }
  | { readonly kind: 'last' }
  | { readonly kind: 'next'; readonly storedOffset: bigint | undefined }

/** @returns the offset to read from, never below the oldest kept message; at or above `visibleEnd` there is nothing. */
export function startOffset(point: StartingPoint, range: VisibleRange, count: number): bigint {
  switch (point.kind) {
    case 'offset':
      return atLeast(point.offset, range.logStartOffset)
    case 'first':
      return range.logStartOffset
    case 'last':
      return atLeast(range.visibleEnd - BigInt(count), range.logStartOffset)
    case 'next':
      return point.storedOffset === undefined
        ? range.logStartOffset
        : atLeast(point.storedOffset + 1n, range.logStartOffset)
  }
}

/** Offset of the newest message; 0 for a partition that never had one. */
export function currentOffset(range: VisibleRange): bigint {
  return range.visibleEnd > 0n ? range.visibleEnd - 1n : 0n
}

/** Offset of the last message of a poll; undefined when it has none. */
export function lastOffsetOf(batches: readonly StoredBatch[]): bigint | undefined {
  const last = batches.at(-1)
  return last === undefined ? undefined : last.baseOffset + BigInt(last.skip + last.take - 1)
}

function atLeast(value: bigint, least: bigint): bigint {
  return value < least ? least : value
}
