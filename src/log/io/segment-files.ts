/** The segment files of a store: keeps few of them open, and knows where their blocks lie. */
import { type IndexEntry, SegmentIndex } from '../core/segment-index.ts'
import { BlockLoader, type BlockLoaderOptions } from './block-loader.ts'
import { type FileSystem, type LogFile, openToRead } from './file-system.ts'
import { NotingFile, pagesRefused, type Readable } from './given-pages.ts'
import { HeldIndexes } from './held-indexes.ts'
import type { Refusals } from './refusals.ts'
import type { Segment } from './segment.ts'
import {
  blocksOf,
  entryOf,
  isClockTrusted,
  lastPosition,
  readBlockHeader,
  readIndex,
  readTrailer,
} from './segment-scan.ts'

export interface SegmentFilesOptions extends Omit<BlockLoaderOptions, 'file'> {
  readonly fileSystem: FileSystem
  readonly maxOpenFiles: number
  /** Of all indexes that stay in memory. */
  readonly maxIndexBytes: number
  readonly refusals: Refusals
}

/** Stands for the place of where blocks lie: no block begins there. */
const INDEX_PLACE = 0

export class SegmentFiles {
  readonly #options: SegmentFilesOptions
  /** In order of use, the oldest first: a map keeps the order of insertion. */
  readonly #open = new Map<string, LogFile>()
  readonly #indexes: HeldIndexes
  readonly blocks: BlockLoader
  readonly refusals: Refusals

  constructor(options: SegmentFilesOptions) {
    this.#options = options
    this.refusals = options.refusals
    this.#indexes = new HeldIndexes(options.maxIndexBytes)
    this.blocks = new BlockLoader({ ...options, file: (path) => this.file(path) })
  }

  file(path: string): LogFile {
    const handle = this.#open.get(path) ?? openToRead(this.#options.fileSystem, path)
    this.#open.delete(path)
    this.#open.set(path, handle)
    for (const [oldest, each] of this.#open) {
      if (this.#open.size <= this.#options.maxOpenFiles) break
      this.#open.delete(oldest)
      each.close()
    }
    return handle
  }

  /** The segment is no part of the log any more; its file may still be there, and a reader at it. */
  removed(segment: Segment): void {
    this.#indexes.forget(segment)
    // Also one that still grew: the index that a late reader asks for is not to be kept before those of others.
    segment.isClosed = true
  }

  /** The file is closed, removed or renamed. */
  forget(path: string): void {
    this.#open.get(path)?.close()
    this.#open.delete(path)
    this.blocks.forget(path)
  }

  close(): void {
    for (const handle of this.#open.values()) handle.close()
    this.#open.clear()
    this.blocks.close()
  }

  /**
   * Where a segment's blocks lie: from its index, or from its block headers when it has none or a damaged one.
   *
   * @throws EDGE_IO; as a shortage while the device may give more of it.
   */
  index(segment: Segment): SegmentIndex {
    const index = segment.index ?? this.#indexGiven(segment)
    segment.index = index
    this.#indexes.use(segment)
    return index
  }

  #indexGiven(segment: Segment): SegmentIndex {
    try {
      const handle = new NotingFile(this.file(segment.path))
      const index = this.#readIndex(segment, handle)
      if (handle.isRefused) this.refusals.check(segment.path, INDEX_PLACE, pagesRefused(segment.path))
      else this.refusals.given(segment.path, INDEX_PLACE)
      segment.blockCount = index.count
      segment.firstAppendUs = index.entry(0)?.firstTimeUs
      segment.messageCount = index.recordCount
      return index
    } catch (error) {
      this.refusals.check(segment.path, INDEX_PLACE, error)
      throw error
    }
  }

  #readIndex(segment: Segment, handle: Readable): SegmentIndex {
    const trailer = readTrailer(handle, segment.seed)
    const stored = trailer === undefined ? undefined : readIndex(handle, trailer, this.#options.checksum)
    // What a repack that is still under way has closed it with, or what the next file's name cuts off, does not count.
    return stored?.below(segment.endOffset) ?? this.#indexFromBlocks(segment, handle)
  }

  /** Append time of the last batch: from the last block's header, whose flags say what it is worth. @throws EDGE_IO. */
  lastAppendUs(segment: Segment): bigint {
    if (segment.lastAppendUs !== undefined) return segment.lastAppendUs
    const handle = new NotingFile(this.file(segment.path))
    const { path, seed, sizeBytes } = segment
    const trailer = readTrailer(handle, seed)
    const position = trailer === undefined ? lastEntry(this.index(segment))?.position : lastPosition(handle, trailer)
    const last = position === undefined ? undefined : readBlockHeader(handle, seed, position, sizeBytes)
    const isUnread = position !== undefined && last === undefined
    if (isUnread && handle.isRefused) this.refusals.check(path, position, pagesRefused(path))
    // A time that nobody vouches for must not make a segment expire.
    segment.isClockTrusted = last === undefined ? !isUnread : isClockTrusted(last)
    segment.lastAppendUs = last?.lastTimeUs ?? trailer?.lastTimeUs ?? lastEntry(segment.index)?.firstTimeUs ?? 0n
    return segment.lastAppendUs
  }

  #indexFromBlocks(segment: Segment, handle: Readable): SegmentIndex {
    const index = new SegmentIndex()
    let end = segment.baseOffset
    for (const block of blocksOf(handle, segment.seed, segment.sizeBytes)) {
      if (block.baseOffset >= segment.endOffset) break
      // Below the running end: a run was repeated after a crash, the first one counts.
      if (block.baseOffset < end) continue
      index.push(entryOf(block))
      end = block.endOffset
    }
    return index
  }
}

const lastEntry = (index: SegmentIndex | undefined): IndexEntry | undefined => index?.entry(index.count - 1)
