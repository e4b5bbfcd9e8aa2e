/**
 * ACK frames (RFC 9000 section 19.3). Pure.
 *
 * ```
 * [type] [largest] [delay] [further ranges: n] [first range] n x ([gap] [range])   ECN: [ECT(0)] [ECT(1)] [CE]
 * ```
 *
 * All varints. Ranges come from the highest down; `gap` and `range` count one less than the packets they stand for.
 */
import { FRAME } from '../wire/frame-type.ts'
import { QuicError, TRANSPORT_ERROR } from '../wire/quic-error.ts'
import type { RangeSet } from '../wire/range-set.ts'
import type { Reader } from '../wire/reader.ts'
import { varintSize } from '../wire/varint.ts'
import type { Writer } from '../wire/writer.ts'

export interface AckFrame {
  readonly largest: number
  /** As sent: in units of the sender's exponent. */
  readonly encodedDelay: number
  /** `[first, last, ...]`, inclusive, highest range first. */
  readonly bounds: readonly number[]
}

/** Ranges that we tell at most; older ones were told before. */
const SENT_RANGES_MAX = 32

/** @throws QuicError FRAME_ENCODING_ERROR for ranges below zero. */
export function readAckFrame(reader: Reader, hasEcnCounts: boolean): AckFrame {
  const largest = reader.varint()
  const encodedDelay = reader.varint()
  let furtherRanges = reader.varint()
  let first = largest - reader.varint()
  const bounds = [first, largest]
  // Each range takes two bytes at least, so the packet bounds the loop.
  while (first >= 0 && furtherRanges-- > 0) {
    const last = first - reader.varint() - 2
    first = last - reader.varint()
    bounds.push(first, last)
  }
  if (first < 0) throw new QuicError(TRANSPORT_ERROR.frameEncodingError, 'acknowledged below 0', FRAME.ack)
  if (hasEcnCounts) for (let count = 0; count < 3; count++) reader.varint()
  return { largest, encodedDelay, bounds }
}

/** Writes an ACK frame with as many of the highest ranges as fit. @returns whether even one did. */
export function writeAckFrame(writer: Writer, received: RangeSet, encodedDelay: number): boolean {
  const lastIndex = received.count - 1
  const largest = received.lastOf(lastIndex)
  let lowest = received.firstOf(lastIndex)
  const count = fittingRanges(writer, received, 1 + varintSize(largest) + varintSize(encodedDelay))
  if (count === 0) return false
  writer.u8(FRAME.ack)
  writer.varint(largest)
  writer.varint(encodedDelay)
  writer.varint(count - 1)
  writer.varint(largest - lowest)
  for (let index = lastIndex - 1; index > lastIndex - count; index--) {
    const last = received.lastOf(index)
    const first = received.firstOf(index)
    writer.varint(lowest - last - 2)
    writer.varint(last - first)
    lowest = first
  }
  return true
}

/** @param headSize of what stands before the number of ranges. */
function fittingRanges(writer: Writer, received: RangeSet, headSize: number): number {
  let left = writer.left - headSize - 1
  const lastIndex = received.count - 1
  let count = 0
  for (let index = lastIndex; index >= 0 && count < SENT_RANGES_MAX; index--) {
    const size = varintSize(received.lastOf(index) - received.firstOf(index))
    const gapSize = index === lastIndex ? 0 : varintSize(received.firstOf(index + 1) - received.lastOf(index) - 2)
    left -= size + gapSize
    if (left < 0) break
    count++
  }
  return count
}
