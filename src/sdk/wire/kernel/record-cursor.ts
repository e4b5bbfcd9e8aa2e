/**
 * Reads and writes compact records one by one in plain JavaScript (layout: `../batch.ts`). One cursor serves a whole
 * batch: it holds the record it read last in plain fields, because an object per record would be garbage.
 *
 * Origin times are exact for all of u64: as a pair of u32, with deltas as doubles below 2^52 and as BigInt above, which
 * only a client with a wild clock makes.
 */
import { MAX_PAYLOAD_BYTES, MAX_USER_HEADERS_BYTES } from '../batch.ts'

const U32 = 2 ** 32
/** Seven bytes of varint hold 49 bits: exact as a double, with room to add. */
const DOUBLE_VARINT_BYTES = 7
const MAX_VARINT_BYTES = 10
const MAX_DOUBLE_DELTA = 2 ** 47
const MASK_32 = 0xffff_ffffn
const FLAG_ID = 1
const FLAG_HEADERS = 2

export class RecordCursor {
  /** Where the next record begins; past `end` after a fault. */
  at = 0
  /** Origin time of the record read last. */
  originLow = 0
  originHigh = 0
  /** Where its id lies, -1 when it has none. */
  idAt = -1
  headersSize = 0
  payloadSize = 0
  /** Where its payload and then its user headers lie. */
  bodyAt = 0
  readonly #bytes: Uint8Array
  readonly #end: number

  /** Begins at the first of the records that fill `recordsView`. */
  constructor(recordsView: Uint8Array, baseOriginUs: bigint) {
    this.#bytes = recordsView
    this.#end = recordsView.length
    this.originLow = Number(baseOriginUs & MASK_32)
    this.originHigh = Number(baseOriginUs >> 32n)
  }

  get originUs(): bigint {
    return (BigInt(this.originHigh) << 32n) | BigInt(this.originLow)
  }

  /** Reads the record at `at`. @returns false when it does not lie within the bytes. */
  next(): boolean {
    const end = this.#end
    const head = this.#varint()
    if (this.at > end) return false
    this.#addZigzag()
    if (this.at > end) return false
    this.idAt = -1
    if ((head & FLAG_ID) !== 0) {
      if (end - this.at < 16) return false
      this.idAt = this.at
      this.at += 16
    }
    this.headersSize = 0
    if ((head & FLAG_HEADERS) !== 0) {
      this.headersSize = this.#varint()
      if (this.at > end || this.headersSize > MAX_USER_HEADERS_BYTES) return false
    }
    this.payloadSize = Math.floor(head / 4)
    if (this.payloadSize > MAX_PAYLOAD_BYTES || this.headersSize + this.payloadSize > end - this.at) return false
    this.bodyAt = this.at
    this.at += this.headersSize + this.payloadSize
    return true
  }

  /** A varint of at most 64 bits as a number: exact below 2^53, and above that far beyond any size there is. */
  #varint(): number {
    const bytes = this.#bytes
    let value = 0
    let scale = 1
    for (let i = 0; i < MAX_VARINT_BYTES && this.at < this.#end; i++) {
      const byte = bytes[this.at++] ?? 0
      if (i === MAX_VARINT_BYTES - 1 && byte > 1) break
      value += (byte & 127) * scale
      if (byte < 128) return value
      scale *= 128
    }
    this.at = this.#end + 1
    return 0
  }

  #addZigzag(): void {
    const start = this.at
    const zigzag = this.#varint()
    if (this.at > this.#end) return
    if (this.at - start > DOUBLE_VARINT_BYTES) {
      this.#addWideZigzag(start)
      return
    }
    const sum = this.originLow + (zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2)
    const carry = Math.floor(sum / U32)
    this.originLow = sum - carry * U32
    this.originHigh = (this.originHigh + carry) >>> 0
  }

  #addWideZigzag(start: number): void {
    let zigzag = 0n
    for (let i = this.at - 1; i >= start; i--) zigzag = (zigzag << 7n) | BigInt((this.#bytes[i] ?? 0) & 127)
    zigzag = BigInt.asUintN(64, zigzag)
    const origin = BigInt.asUintN(64, this.originUs + ((zigzag >> 1n) ^ -(zigzag & 1n)))
    this.originLow = Number(origin & MASK_32)
    this.originHigh = Number(origin >> 32n)
  }
}

/** Where the writer below wrote last; a returned pair would be an object per record. */
export class RecordWriter {
  at = 0
  readonly #bytes: Uint8Array
  #previousLow = 0
  #previousHigh = 0
  #isFirst = true

  constructor(target: Uint8Array) {
    this.#bytes = target
  }

  /**
   * Writes what goes before the body of one record.
   *
   * @param id 16 bytes in `source` at `idAt`, or -1 for none.
   */
  head(
    originLow: number,
    originHigh: number,
    source: Uint8Array,
    idAt: number,
    headersSize: number,
    payloadSize: number,
  ): void {
    this.#varint(payloadSize * 4 + (headersSize > 0 ? FLAG_HEADERS : 0) + (idAt >= 0 ? FLAG_ID : 0))
    this.#zigzag(originLow, originHigh)
    for (let i = 0; idAt >= 0 && i < 16; i++) this.#bytes[this.at++] = source[idAt + i] ?? 0
    if (headersSize > 0) this.#varint(headersSize)
  }

  #zigzag(originLow: number, originHigh: number): void {
    // The first record's origin is the base itself.
    const delta = this.#isFirst ? 0 : (originHigh - this.#previousHigh) * U32 + (originLow - this.#previousLow)
    if (Math.abs(delta) < MAX_DOUBLE_DELTA) this.#varint(delta < 0 ? -delta * 2 - 1 : delta * 2)
    else this.#wideZigzag(originLow, originHigh)
    this.#previousLow = originLow
    this.#previousHigh = originHigh
    this.#isFirst = false
  }

  #wideZigzag(originLow: number, originHigh: number): void {
    const origin = (BigInt(originHigh) << 32n) | BigInt(originLow)
    const previous = (BigInt(this.#previousHigh) << 32n) | BigInt(this.#previousLow)
    const delta = BigInt.asIntN(64, origin - previous)
    let rest = BigInt.asUintN(64, (delta << 1n) ^ (delta >> 63n))
    while (rest >= 128n) {
      this.#bytes[this.at++] = Number(rest & 127n) | 128
      rest >>= 7n
    }
    this.#bytes[this.at++] = Number(rest)
  }

  #varint(value: number): void {
    let rest = value
    while (rest >= 128) {
      this.#bytes[this.at++] = (rest % 128) | 128
      rest = Math.floor(rest / 128)
    }
    this.#bytes[this.at++] = rest
  }
}
