/**
 * Where groups are built and kept until they are synced. Two buffers take turns: while a sync covers the groups of one, the
 * next are built in the other. What is written goes to the disk straight from here, without a copy.
 */
import type { ProducerTag } from '../api.ts'
import {
  BATCH_HEADER_SIZE,
  batchSize,
  bodyCrcAt,
  bodySizeAt,
  encodeBatchHeader,
  encodeTag,
  MAX_GROUP_BATCHES,
  sealBatchHeader,
} from '../core/batch-header.ts'
import { areaOf, type ByteArea, createArea } from '../core/byte-area.ts'
import { type Checksum, joinedCrc32 } from '../core/checksum.ts'
import { GROUP_HEADER_SIZE } from '../core/journal-format.ts'
import type { PendingBatch } from '../core/pending-batch.ts'

/** Smaller batches are summed with their neighbours in less time than sums are joined in. */
const LEAST_JOINED_SIZE = 4096

/** A group that is being built, at a place in a buffer. */
export class GroupBuilder {
  readonly area: ByteArea
  readonly start: number
  readonly batches: PendingBatch[] = []
  /** Start of the machine at which its batches were given their offsets. */
  readonly boot: number
  end: number

  constructor(area: ByteArea, start: number, boot: number) {
    this.area = area
    this.start = start
    this.end = start + GROUP_HEADER_SIZE
    this.boot = boot
  }

  get isEmpty(): boolean {
    return this.batches.length === 0
  }

  get length(): number {
    return this.end - this.start
  }

  hasRoom(bodySize: number): boolean {
    return this.end + batchSize(bodySize) <= this.area.bytes.length && this.batches.length < MAX_GROUP_BATCHES
  }

  /** Copies one batch in; the caller has asked `hasRoom`. */
  add(batch: PendingBatch, recordsView: Uint8Array, tag: ProducerTag | undefined, checksum: Checksum): void {
    const { bytes } = this.area
    const at = this.end
    const bodyAt = at + BATCH_HEADER_SIZE
    const recordsAt = tag === undefined ? bodyAt : encodeTag(bytes, bodyAt, tag)
    bytes.set(recordsView, recordsAt)
    const bodySize = recordsAt + recordsView.length - bodyAt
    const size = batchSize(bodySize)
    bytes.fill(0, bodyAt + bodySize, at + size)
    const bodyCrc = bodySize === 0 ? 0 : checksum(bytes, bodyAt, bodyAt + bodySize, 0)
    encodeBatchHeader(this.area, at, batch.fields, bodyCrc, bodySize)
    batch.at = at
    batch.size = size
    this.batches.push(batch)
    this.end = at + size
  }

  /** Copies a whole batch from where it lies: it is written again. */
  addCopy(batch: PendingBatch, from: Uint8Array): void {
    this.area.bytes.set(from.subarray(batch.at, batch.at + batch.size), this.end)
    batch.at = this.end
    this.batches.push(batch)
    this.end += batch.size
  }

  /** Seals all batch headers under the session that writes the group. */
  sealBatches(seed: number): void {
    let index = 0
    for (const batch of this.batches) sealBatchHeader(this.area, batch.at, index++, seed)
  }

  /** CRC of all batches, whose headers are sealed. Large bodies are not summed again: their headers have their sums. */
  bodyCrc(checksum: Checksum): number {
    const { bytes, view } = this.area
    let sum = 0
    let summedTo = this.start + GROUP_HEADER_SIZE
    for (const { at, size } of this.batches) {
      if (size < LEAST_JOINED_SIZE) continue
      const bodyAt = at + BATCH_HEADER_SIZE
      const bodySize = bodySizeAt(view, at)
      sum = joinedCrc32(checksum(bytes, summedTo, bodyAt, sum), bodyCrcAt(view, at), bodySize)
      summedTo = bodyAt + bodySize
    }
    return checksum(bytes, summedTo, this.end, sum)
  }

  /** The same group at the front of its buffer: what lay before it is synced. */
  movedToFront(): GroupBuilder {
    const moved = new GroupBuilder(this.area, 0, this.boot)
    this.area.bytes.copyWithin(0, this.start, this.end)
    for (const batch of this.batches) {
      batch.at -= this.start
      moved.batches.push(batch)
    }
    moved.end = this.end - this.start
    return moved
  }
}

export class GroupBuffers {
  readonly size: number
  readonly #areas: readonly [ByteArea, ByteArea]

  constructor(size: number) {
    this.size = size
    this.#areas = [createArea(size), createArea(size)]
  }

  first(boot: number): GroupBuilder {
    return new GroupBuilder(this.#areas[0], 0, boot)
  }

  /** Where the next group is built. `unsynced`: groups whose bytes must stay. */
  next(current: GroupBuilder, unsynced: readonly GroupBuilder[], boot: number): GroupBuilder {
    const other = this.#areas[current.area === this.#areas[0] ? 1 : 0]
    if (unsynced.every((group) => group.area !== current.area)) return new GroupBuilder(current.area, 0, boot)
    if (unsynced.every((group) => group.area !== other)) return new GroupBuilder(other, 0, boot)
    return new GroupBuilder(current.area, current.end, boot)
  }
}

/** One group of all batches of `groups`, in a buffer of its own, so that it can be written again. Its boot is the oldest. */
export function mergedGroup(groups: readonly GroupBuilder[]): GroupBuilder {
  const boot = groups.reduce((oldest, group) => Math.min(oldest, group.boot), Number.MAX_SAFE_INTEGER)
  const size = groups.reduce((sum, group) => sum + group.length, GROUP_HEADER_SIZE)
  const merged = new GroupBuilder(areaOf(new Uint8Array(size)), 0, boot)
  for (const group of groups) for (const batch of group.batches) merged.addCopy(batch, group.area.bytes)
  return merged
}
