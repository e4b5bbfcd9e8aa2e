/** The segment files of a store: keeps few of them open, and knows where their blocks lie. */
import type { IndexEntry } from '../core/segment-format.ts'
import { BlockLoader, type BlockLoaderOptions } from './block-loader.ts'
import type { FileSystem, LogFile } from './file-system.ts'
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
}

export class SegmentFiles {
  readonly #options: SegmentFilesOptions
  /** In order of use, the oldest first: a map keeps the order of insertion. */
  readonly #open = new Map<string, LogFile>()
  readonly blocks: BlockLoader

  constructor(options: SegmentFilesOptions) {
    this.#options = options
    this.blocks = new BlockLoader({ ...options, file: (path) => this.file(path) })
  }

  get openCount(): number {
    return this.#open.size
  }

  file(path: string): LogFile {
    const handle = this.#open.get(path) ?? this.#options.fileSystem.open(path, 'existing')
    this.#open.delete(path)
    this.#open.set(path, handle)
    for (const [oldest, each] of this.#open) {
      if (this.#open.size <= this.#options.maxOpenFiles) break
      this.#open.delete(oldest)
      each.close()
    }
    return handle
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

  /** Where a segment's blocks lie: from its index, or from its block headers when it has none or a damaged one. */
  index(segment: Segment): readonly IndexEntry[] {
    if (segment.entries !== undefined) return segment.entries
    const handle = this.file(segment.path)
    const trailer = readTrailer(handle, segment.seed)
    const entries = trailer === undefined ? undefined : readIndex(handle, trailer, this.#options.checksum)
    segment.entries = entries ?? this.#indexFromBlocks(segment, handle)
    segment.messageCount = segment.entries.reduce((sum, entry) => sum + entry.recordCount, 0)
    return segment.entries
  }

  /** Append time of the last batch: from the last block's header, whose flags say what it is worth. @throws EDGE_IO. */
  lastAppendUs(segment: Segment): bigint {
    if (segment.lastAppendUs !== undefined) return segment.lastAppendUs
    const handle = this.file(segment.path)
    const { seed, sizeBytes } = segment
    const trailer = readTrailer(handle, seed)
    const position = trailer === undefined ? this.index(segment).at(-1)?.position : lastPosition(handle, trailer)
    const last = position === undefined ? undefined : readBlockHeader(handle, seed, position, sizeBytes)
    segment.isClockTrusted = last === undefined || isClockTrusted(last)
    segment.lastAppendUs = last?.lastTimeUs ?? trailer?.lastTimeUs ?? segment.entries?.at(-1)?.firstTimeUs ?? 0n
    return segment.lastAppendUs
  }

  #indexFromBlocks(segment: Segment, handle: LogFile): IndexEntry[] {
    const entries: IndexEntry[] = []
    let end = segment.baseOffset
    for (const block of blocksOf(handle, segment.seed, segment.sizeBytes)) {
      if (block.baseOffset >= segment.endOffset) break
      // Below the running end: a run was repeated after a crash, the first one counts.
      if (block.baseOffset < end) continue
      entries.push(entryOf(block))
      end = block.endOffset
    }
    return entries
  }
}
