/**
 * Reads hot batches: those that still lie in the journal, straight from the page cache into one shared buffer. A ring of
 * recent bytes in memory would save less than the 2 µs that such a read costs.
 */

import { EdgeError } from '../../errors.ts'
import {
  BATCH_FLAG,
  BATCH_HEADER_SIZE,
  type BatchHeader,
  decodeBatchHeader,
  decodeTag,
  isBatchHeaderIntact,
} from '../core/batch-header.ts'
import { areaOf, type ByteArea } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import { IN_MEMORY, type JournalIndex } from '../core/journal-index.ts'
import { pagesRefused, readGiven } from './given-pages.ts'
import { type JournalFile, journalPath } from './journal-file.ts'
import type { JournalFiles } from './journal-files.ts'
import { SealedGroupReader } from './sealed-group-reader.ts'

/** Batches of other partitions in between are read along when they are not more than this: cheaper than another call. */
const MAX_READ_GAP = 4096

/** A batch as it was read; the view is valid until the next read. */
export interface ReadBatch {
  readonly header: BatchHeader
  readonly recordsView: Uint8Array
}

export class JournalReader {
  readonly #journal: { readonly memory: ByteArea | undefined }
  readonly #files: JournalFiles
  readonly #checksum: Checksum
  readonly #buffer: ByteArea
  readonly #sealed: SealedGroupReader
  #used = 0
  /** The batch read last, while it lies in the buffer: one of 1,000 messages that is polled 100 at a time is read once. */
  #last: LastBatch | undefined
  /** Why a batch of the last run is missing, where more is known than that it is damaged. */
  failure: EdgeError | undefined

  /** @param bufferBytes at least the largest batch; may lie in another module's memory. */
  constructor(
    journal: { readonly memory: ByteArea | undefined },
    files: JournalFiles,
    checksum: Checksum,
    bufferBytes: Uint8Array,
  ) {
    this.#journal = journal
    this.#files = files
    this.#checksum = checksum
    this.#buffer = areaOf(bufferBytes)
    this.#sealed = new SealedGroupReader(checksum)
  }

  get bufferSize(): number {
    return this.#buffer.bytes.length
  }

  /** Views handed out before are overwritten from now on. */
  restart(): void {
    this.#used = 0
  }

  /**
   * Reads entries `first .. lastWanted` of one file with one call, as far as the buffer goes.
   *
   * @returns one result per entry read: the batch, or null where it is damaged. At least one when the buffer was restarted.
   */
  readRun(index: JournalIndex, first: number, lastWanted: number): (ReadBatch | null)[] {
    this.failure = undefined
    if (index.fileNumber(first) === IN_MEMORY) return [this.#fromMemory(index, first)]
    const file = this.#files.byNumber(index.fileNumber(first))
    if (file === undefined) return [null]
    if (file.cipher !== undefined) return this.#readSealed(file, index, first, lastWanted)
    const start = index.position(first)
    const last = this.#last
    // After a restart only: what was handed out since must not be read over.
    if (this.#used === 0 && last?.file === file && last.generation === file.generation && last.position === start) {
      this.#used = last.bufferEnd
      return [last.batch]
    }
    const room = this.#buffer.bytes.length - this.#used
    let count = 0
    let end = start
    for (let entry = first; entry <= lastWanted && index.fileNumber(entry) === file.number; entry++) {
      const position = index.position(entry)
      const entryEnd = position + index.size(entry)
      if (position < end || (count > 0 && position - end > MAX_READ_GAP) || entryEnd - start > room) break
      end = entryEnd
      count++
    }
    if (count === 0) return []
    const base = this.#used
    // Overwritten now, and gone also when the read fails half-way.
    this.#last = undefined
    const { refused } = readGiven(file.handle, this.#buffer.bytes.subarray(base, base + end - start), start)
    if (refused.length > 0) this.failure = pagesRefused(journalPath(file.number))
    this.#used += end - start
    const batches: (ReadBatch | null)[] = []
    for (let entry = first; entry < first + count; entry++) batches.push(this.#parse(file, base - start, index, entry))
    const batch = batches[count - 1] ?? null
    const { generation } = file
    const position = index.position(first + count - 1)
    if (batch !== null) this.#last = { file, generation, position, bufferEnd: this.#used, batch }
    return batches
  }

  /** Names the file of an entry, as long as it holds that. */
  lifeOf(index: JournalIndex, entry: number): string {
    return this.#files.byNumber(index.fileNumber(entry))?.life ?? ''
  }

  /** Header of one entry. */
  readHeader(index: JournalIndex, entry: number): BatchHeader | undefined {
    if (index.fileNumber(entry) === IN_MEMORY) return this.#fromMemory(index, entry)?.header
    const file = this.#files.byNumber(index.fileNumber(entry))
    if (file === undefined) return undefined
    const position = index.position(entry)
    const area = this.#sealed.areaAt(file, position, BATCH_HEADER_SIZE)
    if (!isBatchHeaderIntact(area, 0, file.seedAt(position))) return undefined
    return decodeBatchHeader(area, 0, index.size(entry))
  }

  /** The same from a file whose groups are sealed: each is opened whole and its batches copied. */
  #readSealed(file: JournalFile, index: JournalIndex, first: number, last: number): (ReadBatch | null)[] {
    this.#last = undefined
    const batches: (ReadBatch | null)[] = []
    for (let entry = first; entry <= last && index.fileNumber(entry) === file.number; entry++) {
      const [position, size] = [index.position(entry), index.size(entry)]
      if (this.#used + size > this.#buffer.bytes.length) break
      const plain = this.#sealed.read(file, position, size)
      if (plain instanceof EdgeError) {
        this.failure = plain
        batches.push(null)
        continue
      }
      this.#buffer.bytes.set(plain, this.#used)
      batches.push(parseBatch(this.#buffer, this.#used, size, file.seedAt(position), this.#checksum))
      this.#used += size
    }
    return batches
  }

  /** Copied, since what waits there moves when it is written again. */
  #fromMemory(index: JournalIndex, entry: number): ReadBatch | null {
    const memory = this.#journal.memory
    if (memory === undefined) return null
    const at = index.position(entry)
    const area = areaOf(memory.bytes.slice(at, at + index.size(entry)))
    const header = decodeBatchHeader(area, 0, area.bytes.length)
    if (header === undefined) return null
    const recordsAt = recordsStart(area, header, BATCH_HEADER_SIZE)
    return { header, recordsView: area.bytes.subarray(recordsAt, BATCH_HEADER_SIZE + header.bodySize) }
  }

  #parse(file: JournalFile, shift: number, index: JournalIndex, entry: number): ReadBatch | null {
    const position = index.position(entry)
    return parseBatch(this.#buffer, shift + position, index.size(entry), file.seedAt(position), this.#checksum)
  }
}

interface LastBatch {
  readonly file: JournalFile
  /** Of the file: in its next life it holds another batch at the same position. */
  readonly generation: number
  readonly position: number
  /** Where the buffer may be read to next. */
  readonly bufferEnd: number
  readonly batch: ReadBatch
}

/** Checks one batch at `at`, header and body. @returns its header, or null when it is damaged. */
export function checkBatch(
  area: ByteArea,
  at: number,
  size: number,
  seed: number,
  checksum: Checksum,
): BatchHeader | null {
  if (!isBatchHeaderIntact(area, at, seed)) return null
  const header = decodeBatchHeader(area, at, at + size)
  if (header === undefined) return null
  const bodyAt = at + BATCH_HEADER_SIZE
  const isBodyIntact =
    header.bodySize === 0 || checksum(area.bytes, bodyAt, bodyAt + header.bodySize, 0) === header.bodyCrc
  return isBodyIntact ? header : null
}

/** Checks and parses one batch at `at`. @returns null when it is damaged. */
export function parseBatch(
  area: ByteArea,
  at: number,
  size: number,
  seed: number,
  checksum: Checksum,
): ReadBatch | null {
  const header = checkBatch(area, at, size, seed, checksum)
  if (header === null) return null
  const bodyAt = at + BATCH_HEADER_SIZE
  const recordsView = area.bytes.subarray(recordsStart(area, header, bodyAt), bodyAt + header.bodySize)
  return { header, recordsView }
}

/** Where the records begin: behind the tag, if there is one. */
export function recordsStart(area: ByteArea, header: BatchHeader, bodyAt: number): number {
  if ((header.flags & BATCH_FLAG.hasTag) === 0) return bodyAt
  return decodeTag(area.bytes, bodyAt, bodyAt + header.bodySize)?.end ?? bodyAt
}
