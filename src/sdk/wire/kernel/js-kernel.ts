/**
 * The kernels in plain JavaScript: reference and oracle of `kernel.as`, its stand-in where there is no WebAssembly, and
 * what works on batches that do not fit its memory. Same bytes, same faults.
 *
 * Relies on targets as large as `Kernel` asks for. No BigInt, subarray or object per message, except the payload copy
 * above `LOOP_LIMIT` bytes and clocks that differ by more than four years within a batch.
 */
import { MAX_PAYLOAD_BYTES, MAX_USER_HEADERS_BYTES } from '../batch.ts'
import { FAULT, FLAG } from './faults.ts'
import type { FrameBatchHead, Kernel, RecordSlice } from './kernel.ts'
import { RecordCursor, RecordWriter } from './record-cursor.ts'
import { xxh3, xxh3High, xxh3Low } from './xxh3.ts'

export const CLASSIC_HEADER_BYTES = 64
export const FRAME_HEADER_BYTES = 48
export const BATCH_HEADER_BYTES = 256
/** What the checksum of a VSR batch covers of its header: all before the checksum, and the count after it. */
const HASHED_HEAD_BYTES = 40
export const HASHED_PREFIX_BYTES = 44
const RESERVED_AT = 52

const U32 = 2 ** 32
const MASK_32 = 0xffff_ffffn
/** Below this a loop beats `set(subarray())`, whose view object costs about as much as 18 moves of four bytes. */
const LOOP_LIMIT = 64
/** What is kept of a scratch buffer between calls. */
const SCRATCH_KEPT_BYTES = 1024 * 1024

export class JsKernel implements Kernel {
  readonly kind = 'js'
  faultIndex = 0
  leastOriginUs = 0n
  mostOriginUs = 0n
  #scratch = new Uint8Array(0)

  reserve(sizeBytes: number): Uint8Array {
    return new Uint8Array(sizeBytes)
  }

  scratch(sizeBytes: number): Uint8Array {
    if (sizeBytes > SCRATCH_KEPT_BYTES) return new Uint8Array(sizeBytes)
    if (sizeBytes > this.#scratch.length) {
      this.#scratch = new Uint8Array(Math.min(SCRATCH_KEPT_BYTES, Math.max(sizeBytes, this.#scratch.length * 2)))
    }
    return this.#scratch.subarray(0, sizeBytes)
  }

  xxh3(view: Uint8Array): bigint {
    xxh3(dataViewOf(view), 0, view.length)
    return (BigInt(xxh3High()) << 32n) | BigInt(xxh3Low())
  }

  packClassic(source: Uint8Array, count: number, target: Uint8Array, flags: number): number {
    const view = dataViewOf(source)
    const end = source.length
    const writer = new RecordWriter(target)
    let p = 0
    for (let i = 0; i < count; i++) {
      if (end - p < CLASSIC_HEADER_BYTES) return this.#fail(i, FAULT.short)
      const headers = view.getUint32(p + 48, true)
      const payload = view.getUint32(p + 52, true)
      if (headers + payload > end - p - CLASSIC_HEADER_BYTES) return this.#fail(i, FAULT.short)
      if (payload > MAX_PAYLOAD_BYTES) return this.#fail(i, FAULT.payloadTooLarge)
      if (headers > MAX_USER_HEADERS_BYTES) return this.#fail(i, FAULT.headersTooLarge)
      const size = CLASSIC_HEADER_BYTES + headers + payload
      if ((flags & FLAG.verify) !== 0 && !isZero(view, p, 8) && !isHashed(view, p, size)) {
        return this.#fail(i, FAULT.checksum)
      }
      const idAt = (flags & FLAG.keepIds) !== 0 || !isZero(view, p + 8, 16) ? p + 8 : -1
      writer.head(view.getUint32(p + 40, true), view.getUint32(p + 44, true), source, idAt, headers, payload)
      copy(source, p + CLASSIC_HEADER_BYTES, target, writer.at, headers + payload)
      writer.at += headers + payload
      p += size
    }
    return p === end ? writer.at : this.#fail(count, FAULT.trailing)
  }

  packFrames(source: Uint8Array, count: number, firstDelta: number, target: Uint8Array, flags: number): number {
    const view = dataViewOf(source)
    const end = source.length
    // Each frame takes at least 48 bytes, so a count beyond that ends as `short` before it is believed.
    const most = Math.min(count, Math.ceil(end / FRAME_HEADER_BYTES))
    const sums = new DataView(new ArrayBuffer(HASHED_PREFIX_BYTES + most * 8))
    const writer = new RecordWriter(target)
    const baseLow = view.getUint32(24, true)
    const baseHigh = view.getUint32(28, true)
    let p = BATCH_HEADER_BYTES
    for (let i = 0; i < count; i++) {
      if (end - p < FRAME_HEADER_BYTES) return this.#fail(i, FAULT.short)
      const headers = view.getUint32(p + 32, true)
      const payload = view.getUint32(p + 36, true)
      if (headers + payload > end - p - FRAME_HEADER_BYTES) return this.#fail(i, FAULT.short)
      if (payload > MAX_PAYLOAD_BYTES) return this.#fail(i, FAULT.payloadTooLarge)
      if (headers > MAX_USER_HEADERS_BYTES) return this.#fail(i, FAULT.headersTooLarge)
      if (!isZero(view, p + 40, 8)) return this.#fail(i, FAULT.reserved)
      if (view.getUint32(p + 24, true) !== (firstDelta + i) >>> 0) return this.#fail(i, FAULT.delta)
      const size = FRAME_HEADER_BYTES + headers + payload
      if (!isHashed(view, p, size)) return this.#fail(i, FAULT.checksum)
      putPair(sums, HASHED_PREFIX_BYTES + i * 8, xxh3Low(), xxh3High())
      const originLow = baseLow + view.getUint32(p + 28, true)
      const originHigh = (baseHigh + (originLow >= U32 ? 1 : 0)) >>> 0
      const idAt = (flags & FLAG.keepIds) !== 0 || !isZero(view, p + 8, 16) ? p + 8 : -1
      writer.head(originLow >>> 0, originHigh, source, idAt, headers, payload)
      copy(source, p + FRAME_HEADER_BYTES, target, writer.at, headers + payload)
      writer.at += headers + payload
      p += size
    }
    if (p !== end) return this.#fail(count, FAULT.trailing)
    hashBatch(view, 0, count, sums)
    const isWhole = view.getUint32(40, true) === xxh3Low() && view.getUint32(44, true) === xxh3High()
    return isWhole ? writer.at : this.#fail(count, FAULT.batchChecksum)
  }

  scan(source: Uint8Array, count: number, baseOriginUs: bigint): number {
    const cursor = new RecordCursor(source, baseOriginUs)
    let leastLow = 0xffff_ffff
    let leastHigh = 0xffff_ffff
    let mostLow = 0
    let mostHigh = 0
    for (let i = 0; i < count; i++) {
      if (!cursor.next()) return this.#fail(i, FAULT.record)
      const { originLow, originHigh } = cursor
      if (originHigh < leastHigh || (originHigh === leastHigh && originLow < leastLow)) {
        leastLow = originLow
        leastHigh = originHigh
      }
      if (originHigh > mostHigh || (originHigh === mostHigh && originLow > mostLow)) {
        mostLow = originLow
        mostHigh = originHigh
      }
    }
    if (cursor.at !== source.length) return this.#fail(count, FAULT.record)
    this.leastOriginUs = (BigInt(leastHigh) << 32n) | BigInt(leastLow)
    this.mostOriginUs = (BigInt(mostHigh) << 32n) | BigInt(mostLow)
    return 0
  }

  measure(source: Uint8Array, skip: number, take: number): number {
    const cursor = new RecordCursor(source, 0n)
    let size = 0
    for (let i = 0; i < skip + take; i++) {
      if (!cursor.next()) return this.#fail(i, FAULT.record)
      if (i >= skip) size += cursor.headersSize + cursor.payloadSize
    }
    return size
  }

  unpackClassic(slice: RecordSlice, target: Uint8Array, flags: number): number {
    const { recordsView, skip, take } = slice
    const cursor = new RecordCursor(recordsView, slice.baseOriginUs)
    const view = dataViewOf(target)
    const ids = new IdSource(slice, flags)
    const isStamped = (flags & FLAG.stamp) !== 0
    const timeLow = isStamped ? Number(slice.appendTimeUs & MASK_32) : 0
    const timeHigh = isStamped ? Number(slice.appendTimeUs >> 32n) : 0
    let d = 0
    for (let i = 0; i < skip + take; i++, ids.step()) {
      if (!cursor.next()) return this.#fail(i, FAULT.record)
      if (i < skip) continue
      const body = cursor.headersSize + cursor.payloadSize
      if (target.length - d < CLASSIC_HEADER_BYTES + body) return this.#fail(i, FAULT.noRoom)
      ids.put(recordsView, cursor.idAt, target, view, d + 8)
      putPair(view, d + 24, isStamped ? ids.offsetLow : 0, isStamped ? ids.offsetHigh : 0)
      putPair(view, d + 32, timeLow, timeHigh)
      putPair(view, d + 40, cursor.originLow, cursor.originHigh)
      putPair(view, d + 48, cursor.headersSize, cursor.payloadSize)
      putPair(view, d + 56, 0, 0)
      copy(recordsView, cursor.bodyAt, target, d + CLASSIC_HEADER_BYTES, body)
      if ((flags & FLAG.withChecksum) !== 0) putHash(view, d, CLASSIC_HEADER_BYTES + body)
      else putPair(view, d, 0, 0)
      d += CLASSIC_HEADER_BYTES + body
    }
    return d
  }

  unpackFrames(slice: RecordSlice, head: FrameBatchHead, target: Uint8Array, flags: number): number {
    const { recordsView, skip, take } = slice
    if (target.length < BATCH_HEADER_BYTES) return this.#fail(skip, FAULT.noRoom)
    const cursor = new RecordCursor(recordsView, slice.baseOriginUs)
    const view = dataViewOf(target)
    const ids = new IdSource(slice, flags)
    const sums = new DataView(new ArrayBuffer(HASHED_PREFIX_BYTES + take * 8))
    const baseLow = Number(head.originUs & MASK_32)
    const baseHigh = Number(head.originUs >> 32n)
    let d = BATCH_HEADER_BYTES
    for (let i = 0; i < skip + take; i++, ids.step()) {
      if (!cursor.next()) return this.#fail(i, FAULT.record)
      if (i < skip) continue
      const body = cursor.headersSize + cursor.payloadSize
      if (target.length - d < FRAME_HEADER_BYTES + body) return this.#fail(i, FAULT.noRoom)
      const delta = (cursor.originHigh - baseHigh) * U32 + (cursor.originLow - baseLow)
      if (delta < 0 || delta >= U32) return this.#fail(i, FAULT.delta)
      ids.put(recordsView, cursor.idAt, target, view, d + 8)
      putPair(view, d + 24, i, delta)
      putPair(view, d + 32, cursor.headersSize, cursor.payloadSize)
      putPair(view, d + 40, 0, 0)
      copy(recordsView, cursor.bodyAt, target, d + FRAME_HEADER_BYTES, body)
      putHash(view, d, FRAME_HEADER_BYTES + body)
      putPair(sums, HASHED_PREFIX_BYTES + (i - skip) * 8, xxh3Low(), xxh3High())
      d += FRAME_HEADER_BYTES + body
    }
    view.setBigUint64(0, BigInt(head.partitionId), true)
    view.setBigUint64(8, head.baseOffset, true)
    view.setBigUint64(16, head.appendTimeUs, true)
    view.setBigUint64(24, head.originUs, true)
    putPair(view, 32, d, 0)
    view.setUint32(48, take, true)
    target.fill(0, RESERVED_AT, BATCH_HEADER_BYTES)
    hashBatch(view, 0, take, sums)
    putPair(view, 40, xxh3Low(), xxh3High())
    return d
  }

  #fail(index: number, fault: number): number {
    this.faultIndex = index
    return fault
  }
}

/** The id of each record in turn: its own, or the one derived from its offset, or none. */
class IdSource {
  offsetLow: number
  offsetHigh: number
  readonly #seedLow: number
  readonly #seedHigh: number
  readonly #isDerived: boolean

  constructor(slice: RecordSlice, flags: number) {
    this.offsetLow = Number(slice.baseOffset & MASK_32)
    this.offsetHigh = Number(slice.baseOffset >> 32n)
    this.#isDerived = (flags & FLAG.deriveIds) !== 0
    this.#seedLow = Number(slice.idSeed & MASK_32)
    this.#seedHigh = Number(slice.idSeed >> 32n)
  }

  step(): void {
    if (++this.offsetLow < U32) return
    this.offsetLow = 0
    this.offsetHigh = (this.offsetHigh + 1) >>> 0
  }

  put(source: Uint8Array, idAt: number, target: Uint8Array, view: DataView, at: number): void {
    if (idAt >= 0) {
      copy(source, idAt, target, at, 16)
    } else if (this.#isDerived) {
      putPair(view, at, this.offsetLow, this.offsetHigh)
      putPair(view, at + 8, this.#seedLow, this.#seedHigh)
    } else {
      putPair(view, at, 0, 0)
      putPair(view, at + 8, 0, 0)
    }
  }
}

function dataViewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

function putPair(view: DataView, at: number, low: number, high: number): void {
  view.setUint32(at, low, true)
  view.setUint32(at + 4, high, true)
}

/** Writes the hash of all that follows the first eight bytes into these. */
function putHash(view: DataView, at: number, size: number): void {
  xxh3(view, at + 8, size - 8)
  putPair(view, at, xxh3Low(), xxh3High())
}

function isHashed(view: DataView, at: number, size: number): boolean {
  xxh3(view, at + 8, size - 8)
  return view.getUint32(at, true) === xxh3Low() && view.getUint32(at + 4, true) === xxh3High()
}

/** Hashes a batch: its header's fields, then the checksums that `sums` holds after room for them. */
function hashBatch(view: DataView, at: number, count: number, sums: DataView): void {
  for (let i = 0; i < HASHED_HEAD_BYTES; i += 4) sums.setUint32(i, view.getUint32(at + i, true), true)
  sums.setUint32(HASHED_HEAD_BYTES, count, true)
  xxh3(sums, 0, HASHED_PREFIX_BYTES + count * 8)
}

function isZero(view: DataView, at: number, length: number): boolean {
  let bits = 0
  for (let i = 0; i < length; i += 4) bits |= view.getUint32(at + i, true)
  return bits === 0
}

function copy(source: Uint8Array, from: number, target: Uint8Array, to: number, length: number): void {
  if (length > LOOP_LIMIT) target.set(source.subarray(from, from + length), to)
  else for (let i = 0; i < length; i++) target[to + i] = source[from + i] ?? 0
}
