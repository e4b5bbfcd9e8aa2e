/**
 * Writes the blocks of one repack run behind a partition's segments. Nothing counts before `commit`: until then ends and
 * indexes in memory stay as they were, and `abort` takes back what lies in the files.
 *
 * - A run begins on a page of its own in each file: the page before holds blocks whose journal file is gone already.
 * - A file on which something failed takes no more blocks. What it may have lost is still in the journal.
 */
import { discard } from '../../discard.ts'
import { alignUp, areaOf, createArea } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import { PAGE_SIZE } from '../core/journal-format.ts'
import { type BlockFields, isSegmentFull, type RollLimits } from '../core/repack-plan.ts'
import {
  BLOCK_ALIGNMENT,
  BLOCK_FLAG,
  BLOCK_HEADER_SIZE,
  type BlockHeader,
  encodeBlockHeader,
  encodeSegmentHeader,
  encodeSegmentIndex,
  SEGMENT_HEADER_SIZE,
  SEGMENT_VERSION,
} from '../core/segment-format.ts'
import { type IndexEntry, SegmentIndex } from '../core/segment-index.ts'
import { type FileSystem, isShortage } from './file-system.ts'
import { syncFile } from './journal-file.ts'
import { sealBlockBody } from './sealed-blocks.ts'
import { Segment } from './segment.ts'
import type { SegmentFiles } from './segment-files.ts'
import { type ReadSegmentHeader, readSegmentHeader } from './segment-header.ts'
import { entryOf } from './segment-scan.ts'
import type { StoreKeys } from './store-keys.ts'

export interface SegmentWriterOptions {
  readonly fileSystem: FileSystem
  readonly files: SegmentFiles
  readonly storeIdBytes: Uint8Array
  readonly keys: StoreKeys
  readonly checksum: Checksum
  readonly key: number
  readonly directory: string
  readonly limits: RollLimits
  readonly nextRunNumber: () => number
  readonly randomU32: () => number
  readonly nowUs: bigint
  readonly isPageAlignmentSkipped?: boolean
}

/** A segment as this run leaves it. */
interface Draft {
  /** A file that was written before, whole, and only gets its name now. */
  readonly isAdopted?: boolean
  readonly segment: Segment
  readonly isNew: boolean
  /** Length of the file before the run. */
  readonly lengthBefore: number
  /** Blocks of this run. */
  readonly entries: IndexEntry[]
  length: number
  endOffset: bigint
  lastAppendUs: bigint
  isClockTrusted: boolean
  lastBlockPosition: number
  lastBoot: number
  isSealed: boolean
}

export class SegmentWriter {
  readonly #options: SegmentWriterOptions
  readonly #drafts: Draft[] = []
  #writtenBytes = 0
  /** A partition's folder is made with its first segment. */
  readonly isFolderNew: boolean

  /** @param active the partition's last segment, if any. */
  constructor(options: SegmentWriterOptions, active: Segment | undefined) {
    this.#options = options
    this.isFolderNew = active === undefined
    if (active !== undefined && !active.isClosed) this.#drafts.push(this.#continued(active))
  }

  get writtenBytes(): number {
    return this.#writtenBytes
  }

  /** Whether names were made: the folder must be synced before they count. */
  get hasNewFiles(): boolean {
    return this.#drafts.some((draft) => draft.isNew)
  }

  /** @throws EDGE_DISK_FULL, EDGE_IO: call `abort` then. */
  append(block: BlockFields, body: { codec: number; bytes: Uint8Array }): void {
    const draft = this.#draftFor(block)
    const { cipher, runNumber } = draft.segment
    const position = this.#nextPosition(draft)
    const place = { position, previousPosition: draft.lastBlockPosition, runNumber }
    const fields = { ...block, ...place, codec: body.codec }
    const stored = sealBlockBody(cipher, fields, body.bytes, this.#options.randomU32)
    const area = createArea(alignUp(BLOCK_HEADER_SIZE + stored.length, BLOCK_ALIGNMENT))
    area.bytes.set(stored, BLOCK_HEADER_SIZE)
    const bodyCrc = this.#options.checksum(stored, 0, stored.length, 0)
    const header: BlockHeader = { ...fields, storedSize: stored.length, bodyCrc }
    encodeBlockHeader(area, 0, header, draft.segment.seed)
    this.#write(draft, area.bytes, position)
    discard(area.bytes)
    draft.entries.push(entryOf(header))
    draft.endOffset = block.endOffset
    draft.lastAppendUs = block.lastTimeUs
    draft.isClockTrusted = (block.flags & BLOCK_FLAG.isClockUntrusted) === 0
    draft.lastBlockPosition = position
    draft.lastBoot = block.boot
  }

  /** Takes a large batch's file among the segments, as it is. */
  adopt(segment: Segment): void {
    this.roll()
    const { sizeBytes, endOffset, lastAppendUs = 0n, isClockTrusted, lastBlockPosition, lastBoot } = segment
    this.#drafts.push({
      segment,
      isAdopted: true,
      isNew: true,
      lengthBefore: sizeBytes,
      entries: [],
      length: sizeBytes,
      endOffset,
      lastAppendUs,
      isClockTrusted,
      lastBlockPosition,
      lastBoot,
      isSealed: true,
    })
  }

  /** No more blocks go into the current file: what follows lies in another. */
  roll(): void {
    const draft = this.#drafts.at(-1)
    if (draft === undefined || draft.isSealed) return
    draft.isSealed = true
    const index = this.#indexOf(draft)
    if (index === undefined) return
    const indexPosition = this.#nextPosition(draft)
    const { lastAppendUs, segment } = draft
    const bytes = encodeSegmentIndex(index, { indexPosition, lastTimeUs: lastAppendUs, seed: segment.seed })
    this.#write(draft, bytes, indexPosition)
  }

  /** Of the blocks before this run and in it; undefined when the file cannot be read: its blocks are all that tells then. */
  #indexOf({ segment, isNew, entries }: Draft): SegmentIndex | undefined {
    try {
      const index = new SegmentIndex(isNew ? undefined : this.#options.files.index(segment).bytesView.slice())
      for (const entry of entries) index.push(entry)
      return index
    } catch (error) {
      if (isShortage(error)) throw error
      return undefined
    }
  }

  /** Makes all files stable, their names aside. @throws EDGE_IO: call `abort` then; the sync is not tried again. */
  async sync(): Promise<void> {
    for (const draft of this.#drafts.filter(hasChanged)) {
      if (draft.isAdopted) this.#rename(draft.segment)
      else await syncFile(this.#options.files.file(draft.segment.path))
    }
  }

  /** The run counts. @returns segments that were begun. */
  commit(): Segment[] {
    const { files } = this.#options
    const begun: Segment[] = []
    for (const draft of this.#drafts.filter(hasChanged)) {
      const { segment } = draft
      for (const entry of draft.entries) {
        segment.index?.push(entry)
        segment.messageCount += entry.recordCount
      }
      if (!draft.isAdopted) segment.blockCount = blockCountOf(draft)
      segment.firstAppendUs ??= draft.entries[0]?.firstTimeUs
      segment.sizeBytes = draft.length
      segment.endOffset = draft.endOffset
      segment.lastAppendUs = draft.lastAppendUs
      segment.isClockTrusted = draft.isClockTrusted
      segment.lastBlockPosition = draft.lastBlockPosition
      segment.lastBoot = draft.lastBoot
      segment.isClosed = draft.isSealed
      if (segment.index !== undefined) files.index(segment)
      if (draft.isNew) begun.push(segment)
    }
    return begun
  }

  /**
   * Nothing of the run counts: files are cut to what they were, or removed, and take no more blocks. The folder is to be
   * synced before the next run counts: a removed name that comes back would end the segment before it.
   */
  abort(): void {
    const { files, fileSystem } = this.#options
    for (const { segment, isNew, isAdopted, lengthBefore } of this.#drafts.filter(hasChanged)) {
      segment.isClosed = true
      // The journal still refers to it, by whichever name.
      if (isAdopted) continue
      try {
        if (!isNew) files.file(segment.path).truncate(lengthBefore)
        files.forget(segment.path)
        if (isNew) fileSystem.unlink(segment.path)
      } catch {
        // The next file's name says where this one ends, and the journal's first offset what counts at all.
      }
    }
  }

  #rename(segment: Segment): void {
    if (!segment.isExternal) return
    const { files, fileSystem } = this.#options
    const before = segment.path
    files.forget(before)
    segment.isExternal = false
    try {
      fileSystem.rename(before, segment.path)
    } catch (error) {
      // It is read by the name it has, and renamed at the next try.
      segment.isExternal = true
      throw error
    }
  }

  #draftFor(block: BlockFields): Draft {
    const last = this.#drafts.at(-1)
    if (last !== undefined && !last.isSealed && !this.#isFull(last) && this.#keepHeader(last)) return last
    this.roll()
    const draft = this.#begun(block.baseOffset)
    this.#drafts.push(draft)
    return draft
  }

  #isFull(draft: Draft): boolean {
    const firstAppendUs = draft.segment.firstAppendUs ?? draft.entries[0]?.firstTimeUs ?? this.#options.nowUs
    const segment = { sizeBytes: draft.length, blockCount: blockCountOf(draft), firstAppendUs }
    return isSegmentFull(segment, this.#options.limits, this.#options.nowUs)
  }

  #nextPosition(draft: Draft): number {
    const isFirst = draft.length === draft.lengthBefore && !draft.isNew && !this.#options.isPageAlignmentSkipped
    return isFirst ? alignUp(draft.length, PAGE_SIZE) : alignUp(draft.length, BLOCK_ALIGNMENT)
  }

  #continued(segment: Segment): Draft {
    const { sizeBytes, endOffset, lastAppendUs = 0n, isClockTrusted, lastBlockPosition, lastBoot } = segment
    // How full it is, a start of the edge does not tell.
    if (segment.blockCount === undefined) this.#options.files.index(segment)
    return {
      segment,
      isNew: false,
      lengthBefore: sizeBytes,
      entries: [],
      length: sizeBytes,
      endOffset,
      lastAppendUs,
      isClockTrusted,
      lastBlockPosition,
      lastBoot,
      isSealed: false,
    }
  }

  #begun(baseOffset: bigint): Draft {
    const { fileSystem, files, directory, key, keys, storeIdBytes, nowUs } = this.#options
    const [runNumber, seed] = [this.#options.nextRunNumber(), this.#options.randomU32()]
    const encryptionKeyId = keys.currentId
    const header = areaOf(new Uint8Array(SEGMENT_HEADER_SIZE))
    const fields = { version: SEGMENT_VERSION, storeIdBytes, key, seed, baseOffset, runNumber }
    encodeSegmentHeader(header, 0, { ...fields, createdAtUs: nowUs, encryptionKeyId })
    const cipher = keys.cipherFor(header.bytes, encryptionKeyId)
    const segment = new Segment({ directory, baseOffset, runNumber, seed, cipher })
    segment.index = new SegmentIndex()
    if (this.isFolderNew) fileSystem.makeDirectory(directory)
    fileSystem.open(segment.path, 'create').close()
    const draft: Draft = {
      segment,
      isNew: true,
      lengthBefore: 0,
      entries: [],
      length: 0,
      endOffset: baseOffset,
      lastAppendUs: 0n,
      isClockTrusted: true,
      lastBlockPosition: 0,
      lastBoot: 0,
      isSealed: false,
    }
    try {
      this.#write(draft, header.bytes, 0)
    } catch (error) {
      files.forget(segment.path)
      fileSystem.unlink(segment.path)
      throw error
    }
    return draft
  }

  /**
   * A page that goes bad takes what it holds and no more: the header, which all blocks go by, stands once more before the
   * first block that does not begin in the same page.
   *
   * @returns false when it went bad before it was copied: the file takes no more blocks.
   */
  #keepHeader(draft: Draft): boolean {
    const { segment, lastBlockPosition } = draft
    const position = this.#nextPosition(draft)
    if (lastBlockPosition === 0 || lastBlockPosition >= PAGE_SIZE || position < PAGE_SIZE) return true
    const header = this.#readHeader(segment)
    if (header !== undefined) this.#write(draft, header.bytes, position)
    return header !== undefined
  }

  #readHeader(segment: Segment): ReadSegmentHeader | undefined {
    try {
      return readSegmentHeader(this.#options.files.file(segment.path), segment, this.#options.key)
    } catch {
      return undefined
    }
  }

  #write(draft: Draft, bytes: Uint8Array, position: number): void {
    // Set before the call: what fails half-way is taken back as well.
    draft.length = position + bytes.length
    this.#options.files.file(draft.segment.path).write(bytes, position)
    this.#writtenBytes += bytes.length
  }
}

const hasChanged = (draft: Draft): boolean => draft.isNew || draft.length !== draft.lengthBefore

const blockCountOf = ({ segment, entries }: Draft): number => (segment.blockCount ?? 0) + entries.length
