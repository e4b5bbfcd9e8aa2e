/**
 * A batch as it lies in the journal and inside segment blocks: 48-byte header, body, zeros up to a multiple of 8.
 *
 * | at | field                                    | at | field                                               |
 * |----|------------------------------------------|----|-----------------------------------------------------|
 * | 0  | header CRC of 4..47, seeded              | 24 | append time u64 µs                                  |
 * | 4  | body CRC u32                             | 32 | base origin time u64 µs                             |
 * | 8  | body length u32                          | 40 | key u32                                             |
 * | 12 | record count u32                         | 44 | kind u8, 45 flags u8                                |
 * | 16 | base offset u64                          | 46 | index in its group u16                              |
 *
 * Body: the producer's tag when flagged, then the records of `sdk/wire/batch.ts`. In segments both CRCs are zero: the
 * block's own CRC covers them, and random bytes would not compress.
 */
import type { ProducerTag } from '../api.ts'
import type { ByteArea } from './byte-area.ts'
import { alignUp, getSafeU64, setSafeU64 } from './byte-area.ts'
import { crc32 } from './checksum.ts'

export const BATCH_HEADER_SIZE = 48
export const BATCH_ALIGNMENT = 8
/** Batches are numbered within their group by a u16. */
export const MAX_GROUP_BATCHES = 0xffff

/** `data`: records. `sequence`: a tag only. `external`: records that lie in a segment-format file of their own. */
export const BATCH_KIND = { data: 0, sequence: 1, external: 2 } as const
const LAST_KIND = 2

export const BATCH_FLAG = {
  isBuffered: 1,
  /** Offsets between the batch before and this one were never given to a message. */
  hasGapBefore: 2,
  isClockTrusted: 4,
  /** The clock stood before the time of the batch before, which was taken instead. */
  isTimeClamped: 8,
  hasTag: 16,
} as const

export interface BatchHeader {
  readonly bodyCrc: number
  readonly bodySize: number
  readonly count: number
  readonly baseOffset: bigint
  readonly appendTimeUs: bigint
  readonly baseOriginUs: bigint
  readonly key: number
  readonly kind: number
  readonly flags: number
  readonly index: number
}

/** Bytes that a batch takes, header and padding included. */
export const batchSize = (bodySize: number): number => alignUp(BATCH_HEADER_SIZE + bodySize, BATCH_ALIGNMENT)

/** Writes all fields but header CRC and index, which `sealBatchHeader` adds when the group is written. */
export function encodeBatchHeader(
  area: ByteArea,
  at: number,
  header: Omit<BatchHeader, 'index' | 'bodyCrc' | 'bodySize'>,
  bodyCrc: number,
  bodySize: number,
): void {
  const { view } = area
  view.setUint32(at, 0, true)
  view.setUint32(at + 4, bodyCrc, true)
  view.setUint32(at + 8, bodySize, true)
  view.setUint32(at + 12, header.count, true)
  view.setBigUint64(at + 16, header.baseOffset, true)
  view.setBigUint64(at + 24, header.appendTimeUs, true)
  view.setBigUint64(at + 32, header.baseOriginUs, true)
  view.setUint32(at + 40, header.key, true)
  view.setUint8(at + 44, header.kind)
  view.setUint8(at + 45, header.flags)
  view.setUint16(at + 46, 0, true)
}

/** @param seed low half of the session's salt. */
export function sealBatchHeader(area: ByteArea, at: number, index: number, seed: number): void {
  area.view.setUint16(at + 46, index, true)
  area.view.setUint32(at, crc32(area.bytes, at + 4, at + BATCH_HEADER_SIZE, seed), true)
}

/** Whether the header's CRC fits; the caller has made sure that 48 bytes are there. */
export function isBatchHeaderIntact(area: ByteArea, at: number, seed: number): boolean {
  return area.view.getUint32(at, true) === crc32(area.bytes, at + 4, at + BATCH_HEADER_SIZE, seed)
}

/**
 * Reads a header and checks its lengths against what is there.
 *
 * @param end end of the bytes that may belong to the batch.
 * @returns undefined when the fields cannot be those of a batch. The CRCs are the caller's to check.
 */
export function decodeBatchHeader(area: ByteArea, at: number, end: number): BatchHeader | undefined {
  const { view } = area
  if (end - at < BATCH_HEADER_SIZE) return undefined
  const bodySize = bodySizeAt(view, at)
  const kind = view.getUint8(at + 44)
  if (bodySize > end - at - BATCH_HEADER_SIZE || kind > LAST_KIND) return undefined
  return {
    bodyCrc: bodyCrcAt(view, at),
    bodySize,
    count: view.getUint32(at + 12, true),
    baseOffset: view.getBigUint64(at + 16, true),
    appendTimeUs: view.getBigUint64(at + 24, true),
    baseOriginUs: view.getBigUint64(at + 32, true),
    key: view.getUint32(at + 40, true),
    kind,
    flags: view.getUint8(at + 45),
    index: view.getUint16(at + 46, true),
  }
}

export const bodyCrcAt = (view: DataView, at: number): number => view.getUint32(at + 4, true)

export const bodySizeAt = (view: DataView, at: number): number => view.getUint32(at + 8, true)

/**
 * Bytes of the batch at `at`, without reading the rest of its header: to hop from batch to batch.
 *
 * @returns undefined when it does not lie whole in the area.
 */
export function batchSizeAt({ bytes, view }: ByteArea, at: number): number | undefined {
  if (bytes.length - at < BATCH_HEADER_SIZE) return undefined
  const bodySize = bodySizeAt(view, at)
  return bodySize > bytes.length - at - BATCH_HEADER_SIZE ? undefined : batchSize(bodySize)
}

/** Offset after the last record of the batch at `at`; exact below 2^53. */
export const batchEndAt = ({ view }: ByteArea, at: number): number =>
  getSafeU64(view, at + 16) + view.getUint32(at + 12, true)

/** Takes the CRCs out of a batch that goes into a segment block, and its place in a group with them. */
export function stripBatchHeader(area: ByteArea, at: number): void {
  area.view.setUint32(at, 0, true)
  area.view.setUint32(at + 4, 0, true)
  area.view.setUint16(at + 46, 0, true)
}

// ---- producer tags: five varints at the start of the body ------------------------------------------------------------

/** Five numbers below 2^53 in groups of seven bits. */
export const MAX_TAG_SIZE = 5 * 8

/** @returns where the tag ends. */
export function encodeTag(bytes: Uint8Array, at: number, tag: ProducerTag): number {
  let end = putVarint(bytes, at, tag.device)
  end = putVarint(bytes, end, tag.epoch)
  end = putVarint(bytes, end, tag.lane)
  end = putVarint(bytes, end, tag.firstSequence)
  return putVarint(bytes, end, tag.sequenceCount)
}

/** @returns the tag and where it ends, or undefined when the bytes are none. */
export function decodeTag(bytes: Uint8Array, at: number, end: number): { tag: ProducerTag; end: number } | undefined {
  const values: number[] = []
  let next = at
  for (let field = 0; field < 5; field++) {
    let value = 0
    let scale = 1
    for (let more = true; more; scale *= 128) {
      const byte = bytes[next]
      if (byte === undefined || next >= end || scale > Number.MAX_SAFE_INTEGER) return undefined
      value += (byte & 127) * scale
      more = byte >= 128
      next++
    }
    values.push(value)
  }
  const [device = 0, epoch = 0, lane = 0, firstSequence = 0, sequenceCount = 0] = values
  return { tag: { device, epoch, lane, firstSequence, sequenceCount }, end: next }
}

function putVarint(bytes: Uint8Array, at: number, value: number): number {
  let rest = value
  let next = at
  while (rest >= 128) {
    bytes[next++] = (rest % 128) | 128
    rest = Math.floor(rest / 128)
  }
  bytes[next++] = rest
  return next
}

// ---- references to records in a file of their own --------------------------------------------------------------------

export const EXTERNAL_BODY_SIZE = 16

/** Body of an `external` batch: run number of the file and stored size of its block. */
export function encodeExternal(area: ByteArea, at: number, runNumber: number, fileSize: number): void {
  setSafeU64(area.view, at, runNumber)
  setSafeU64(area.view, at + 8, fileSize)
}

export function decodeExternal(area: ByteArea, at: number): { runNumber: number; fileSize: number } {
  return { runNumber: getSafeU64(area.view, at), fileSize: getSafeU64(area.view, at + 8) }
}
