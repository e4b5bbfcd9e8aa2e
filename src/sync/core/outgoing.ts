/**
 * Local batches as one batch for the upstream: consecutive offsets, ids derived from them under our prefix, ids of the
 * senders left behind (they cannot prove order), payloads, headers and origin times byte for byte. Pure.
 */
import { EdgeError } from '../../errors.ts'
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import { RecordCursor, RecordWriter } from '../../sdk/wire/kernel/record-cursor.ts'
import { MAX_ORIGIN_SPAN_US } from '../../sdk/wire/record-slice.ts'

/** An id that is left out makes room for a longer varint of time: what a record may grow by. */
const GROWTH_BYTES = 16

export interface Outgoing {
  /** `idSeed` is the prefix; owned bytes. */
  readonly batch: StoredBatch
  readonly count: number
  readonly sizeBytes: number
  /** Where to read on: after the last record taken. */
  readonly nextOffset: bigint
}

/**
 * Takes records while offsets follow each other and origin times fit: the rest stays for the next read.
 *
 * @param maxBytes most that it may have, unless it is one record.
 * @returns undefined when there is no record at all.
 * @throws {EdgeError} EDGE_BATCH_CORRUPT.
 */
export function joinBatches(
  batches: readonly StoredBatch[],
  prefix: bigint,
  maxBytes = Number.POSITIVE_INFINITY,
): Outgoing | undefined {
  const first = batches[0]
  if (first === undefined) return undefined
  const capacity = batches.reduce((sum, batch) => sum + batch.recordsView.length + batch.take * GROWTH_BYTES, 0)
  const joiner = new Joiner(capacity, maxBytes)
  for (const batch of batches) {
    if (!joiner.add(batch)) break
  }
  return joiner.finish(first, prefix)
}

class Joiner {
  readonly #target: Uint8Array
  readonly #maxBytes: number
  readonly #writer: RecordWriter
  #count = 0
  #firstOffset = 0n
  #baseOriginUs = 0n
  #leastUs = 0n
  #mostUs = 0n

  constructor(capacity: number, maxBytes: number) {
    this.#maxBytes = maxBytes
    this.#target = new Uint8Array(capacity)
    this.#writer = new RecordWriter(this.#target)
  }

  /** @returns false when a record does not fit to those before. */
  add(batch: StoredBatch): boolean {
    const cursor = new RecordCursor(batch.recordsView, batch.baseOriginUs)
    for (let index = 0; index < batch.skip + batch.take; index++) {
      if (!cursor.next()) {
        throw new EdgeError('EDGE_BATCH_CORRUPT', `record ${index} of batch ${batch.baseOffset} does not lie within it`)
      }
      if (index < batch.skip) continue
      if (!this.#fits(batch.baseOffset + BigInt(index), cursor.originUs)) return false
      const { at } = this.#writer
      this.#copy(batch.recordsView, cursor)
      if (this.#count === 1 || this.#writer.at <= this.#maxBytes) continue
      this.#writer.at = at
      this.#count -= 1
      return false
    }
    return true
  }

  finish(first: StoredBatch, prefix: bigint): Outgoing | undefined {
    if (this.#count === 0) return undefined
    const recordsView = this.#target.subarray(0, this.#writer.at)
    const batch: StoredBatch = {
      count: this.#count,
      baseOriginUs: this.#baseOriginUs,
      recordsView,
      baseOffset: this.#firstOffset,
      appendTimeUs: first.appendTimeUs,
      idSeed: prefix,
      skip: 0,
      take: this.#count,
      isClockTrusted: first.isClockTrusted,
    }
    const nextOffset = this.#firstOffset + BigInt(this.#count)
    return { batch, count: this.#count, sizeBytes: recordsView.length, nextOffset }
  }

  #fits(offset: bigint, originUs: bigint): boolean {
    if (this.#count === 0) {
      this.#firstOffset = offset
      this.#baseOriginUs = originUs
      this.#leastUs = originUs
      this.#mostUs = originUs
      return true
    }
    if (offset !== this.#firstOffset + BigInt(this.#count)) return false
    const leastUs = originUs < this.#leastUs ? originUs : this.#leastUs
    const mostUs = originUs > this.#mostUs ? originUs : this.#mostUs
    if (mostUs - leastUs > MAX_ORIGIN_SPAN_US) return false
    this.#leastUs = leastUs
    this.#mostUs = mostUs
    return true
  }

  #copy(source: Uint8Array, cursor: RecordCursor): void {
    const { originLow, originHigh, headersSize, payloadSize, bodyAt } = cursor
    this.#writer.head(originLow, originHigh, source, -1, headersSize, payloadSize)
    const sizeBytes = payloadSize + headersSize
    this.#target.set(source.subarray(bodyAt, bodyAt + sizeBytes), this.#writer.at)
    this.#writer.at += sizeBytes
    this.#count += 1
  }
}
