/**
 * Writes the blocks of one repack run behind a partition's segments. Nothing counts before `commit`: until then ends and
 * indexes in memory stay as they were, and `abort` takes back what lies in the files.
 *
 * - A run begins on a page of its own in each file: the page before holds blocks whose journal file is gone already.
 * - A file on which something failed takes no more blocks. What it may have lost is still in the journal.
 * - What the partition's folder does not take lies in its refuge (`segment-places.ts`), until the folder takes files again.
 */
import { discard } from '../../discard.ts'
import type { EdgeError } from '../../errors.ts'
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
import { isShortage } from './file-system.ts'
import { syncFile } from './journal-file.ts'
import { sealBlockBody } from './sealed-blocks.ts'
import { Segment } from './segment.ts'
import { type ReadSegmentHeader, readSegmentHeader } from './segment-header.ts'
import { SegmentPlaces, type SegmentPlacesOptions } from './segment-places.ts'
import { entryOf } from './segment-scan.ts'
import type { StoreKeys } from './store-keys.ts'

export interface SegmentWriterOptions extends SegmentPlacesOptions {
  readonly storeIdBytes: Uint8Array
  readonly keys: StoreKeys
  readonly checksum: Checksum
  readonly key: number
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
  segment: Segment
  /** Of a large batch that was copied: what the journal still refers to. */
  original?: Segment
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
  readonly #places: SegmentPlaces
  readonly #isFirst: boolean

  /** @param active the partition's last segment, if any. */
  constructor(options: SegmentWriterOptions, active: Segment | undefined) {
    this.#options = options
    this.#places = new SegmentPlaces(options)
    this.#isFirst = active === undefined
    if (active !== undefined && !active.isClosed) this.#continue(active)
  }

  get writtenBytes(): number {
    return this.#writtenBytes
  }

  /** A partition's folder is made with its first segment, and again should it go missing. */
  get isFolderNew(): boolean {
    return this.#isFirst || this.#places.isFolderMade
  }

  /** Why the partition's folder did not take a file of this run. */
  get refusal(): EdgeError | undefined {
    return this.#places.refusal
  }

  /** Whether files were begun. */
  get hasBegun(): boolean {
    return this.#drafts.some((draft) => draft.isNew)
  }

  /** Whether names in that folder were made or taken: it must be synced before they count. */
  touches(directory: string): boolean {
    return this.#places.touches(directory)
  }

  /** @throws EDGE_DISK_FULL, EDGE_IO: call `abort` then. */
  append(block: BlockFields, body: { codec: number; bytes: Uint8Array }): void {
    for (;;) {
      const draft = this.#draftFor(block)
      const refusal = this.#appendTo(draft, block, body)
      if (refusal === undefined) return
      this.#leave(draft, refusal)
    }
  }

  /** @returns why the file does not take it, where another one may. */
  #appendTo(draft: Draft, block: BlockFields, body: { codec: number; bytes: Uint8Array }): EdgeError | undefined {
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
    const refusal = this.#refusalOf(draft, area.bytes, position)
    discard(area.bytes)
    if (refusal !== undefined) return refusal
    draft.entries.push(entryOf(header))
    draft.endOffset = block.endOffset
    draft.lastAppendUs = block.lastTimeUs
    draft.isClockTrusted = (block.flags & BLOCK_FLAG.isClockUntrusted) === 0
    draft.lastBlockPosition = position
    draft.lastBoot = block.boot
    return undefined
  }

  /** Takes a large batch's file among the segments, as it is. */
  adopt(segment: Segment): void {
    this.roll()
    if (!this.#isLeft(segment)) this.#places.touch(segment.directory)
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
    if (draft !== undefined) this.#seal(draft)
  }

  #seal(draft: Draft): void {
    if (draft.isSealed) return
    draft.isSealed = true
    const index = this.#indexOf(draft)
    if (index === undefined) return
    const indexPosition = this.#nextPosition(draft)
    const { lastAppendUs, segment } = draft
    const bytes = encodeSegmentIndex(index, { indexPosition, lastTimeUs: lastAppendUs, seed: segment.seed })
    this.#refusalOf(draft, bytes, indexPosition)
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
      if (draft.isAdopted) await this.#name(draft)
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
      if (draft.original === undefined) continue
      files.forget(draft.original.path)
      files.removed(draft.original)
    }
    return begun
  }

  /**
   * Nothing of the run counts: files are cut to what they were, or removed, and take no more blocks. The folder is to be
   * synced before the next run counts: a removed name that comes back would end the segment before it.
   */
  abort(): void {
    for (const draft of this.#drafts.filter(hasChanged)) {
      const { segment, original, isNew, isAdopted, lengthBefore } = draft
      segment.isClosed = true
      // The journal still refers to it, by whichever name.
      if (isAdopted && original === undefined) continue
      if (isNew) this.#places.discard(segment)
      else this.#cut(draft, lengthBefore)
    }
  }

  /** Its own name, or where its folder takes none, that of a copy in the refuge. */
  async #name(draft: Draft): Promise<void> {
    const { segment } = draft
    const refusal = this.#isLeft(segment) ? this.#options.folderRefusal : this.#renameRefusal(segment)
    if (refusal === undefined) return
    draft.segment = await this.#places.copied(segment, refusal)
    draft.original = segment
  }

  /** No name is given or taken in its folder. */
  #isLeft(segment: Segment): boolean {
    return this.#options.folderRefusal !== undefined && this.#places.isHome(segment)
  }

  /** @returns why the folder does not give it its name, where another one may. */
  #renameRefusal(segment: Segment): EdgeError | undefined {
    try {
      this.#rename(segment)
      return undefined
    } catch (error) {
      if (!this.#places.isHome(segment) || !this.#places.isOther(error)) throw error
      return error
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
    const isOpen = last !== undefined && !last.isSealed && !this.#isFull(last) && this.#keepHeader(last)
    if (!isOpen) this.roll()
    else if (!this.#isAwayFromHome(last)) return last
    const begin = (directory: string): Draft => this.#begunIn(directory, block.baseOffset)
    const home = this.#places.begunAtHome(begin)
    if (home === undefined && isOpen) return last
    const draft = home ?? begin(this.#options.refuge)
    this.#drafts.push(draft)
    if (isOpen) this.#seal(last)
    return draft
  }

  /** An earlier run had to begin it in the refuge: once a run it is asked whether the folder takes files again. */
  #isAwayFromHome({ segment, isNew, entries }: Draft): boolean {
    return !this.#places.isHome(segment) && !isNew && entries.length === 0
  }

  /** That file takes no more; one of this run that took nothing is no part of it. @throws `refusal` where no other is left. */
  #leave(draft: Draft, refusal: EdgeError): void {
    const { segment, isNew, entries } = draft
    draft.isSealed = true
    if (!isNew || entries.length > 0) return
    this.#drafts.splice(this.#drafts.indexOf(draft), 1)
    this.#places.discard(segment)
    if (!this.#places.isHome(segment)) throw refusal
    this.#places.refusal = refusal
  }

  /** What it was given takes nothing that was there before. @returns why it does not take the bytes, where another one may. */
  #refusalOf(draft: Draft, bytes: Uint8Array, position: number): EdgeError | undefined {
    const { length } = draft
    try {
      this.#write(draft, bytes, position)
      return undefined
    } catch (error) {
      if (!this.#places.isOther(error)) throw error
      this.#cut(draft, length)
      draft.length = length
      draft.segment.isClosed = true
      return error
    }
  }

  #cut({ segment }: Draft, length: number): void {
    const { files } = this.#options
    try {
      files.file(segment.path).truncate(length)
      files.forget(segment.path)
    } catch {
      // The next file's name says where this one ends, and the journal's first offset what counts at all.
    }
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

  #continue(segment: Segment): void {
    const { sizeBytes, endOffset, lastAppendUs = 0n, isClockTrusted, lastBlockPosition, lastBoot } = segment
    try {
      // How full it is, a start of the edge does not tell.
      if (segment.blockCount === undefined) this.#options.files.index(segment)
    } catch (error) {
      if (!this.#places.isOther(error)) throw error
      segment.isClosed = true
      return
    }
    this.#drafts.push({
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
    })
  }

  #begunIn(directory: string, baseOffset: bigint): Draft {
    const { key, keys, storeIdBytes, nowUs } = this.#options
    const [runNumber, seed] = [this.#options.nextRunNumber(), this.#options.randomU32()]
    const encryptionKeyId = keys.currentId
    const header = areaOf(new Uint8Array(SEGMENT_HEADER_SIZE))
    const fields = { version: SEGMENT_VERSION, storeIdBytes, key, seed, baseOffset, runNumber }
    encodeSegmentHeader(header, 0, { ...fields, createdAtUs: nowUs, encryptionKeyId })
    const cipher = keys.cipherFor(header.bytes, encryptionKeyId)
    const segment = new Segment({ directory, baseOffset, runNumber, seed, cipher })
    segment.index = new SegmentIndex()
    this.#places.create(segment)
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
      this.#places.discard(segment)
      throw error
    }
    return draft
  }

  /**
   * A page that goes bad takes what it holds and no more: the header, which all blocks go by, stands once more before the
   * first block that does not begin in the same page.
   *
   * @returns false when it went bad before it was copied, or the copy is not taken: the file takes no more blocks.
   */
  #keepHeader(draft: Draft): boolean {
    const { segment, lastBlockPosition } = draft
    const position = this.#nextPosition(draft)
    if (lastBlockPosition === 0 || lastBlockPosition >= PAGE_SIZE || position < PAGE_SIZE) return true
    const header = this.#readHeader(segment)
    return header !== undefined && this.#refusalOf(draft, header.bytes, position) === undefined
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
