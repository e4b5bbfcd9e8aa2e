/**
 * Goes through everything that can be read of one partition, in order: segment blocks whose CRC fits, then the journal's
 * batches. What a block does not give and the journal still has is taken from there, as the next start does. What neither
 * has is told with its offsets and passed over.
 */
import { EdgeError } from '../../errors.ts'
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import { BATCH_FLAG, BATCH_KIND, type BatchHeader } from '../core/batch-header.ts'
import type { Checksum } from '../core/checksum.ts'
import { later } from '../core/offset.ts'
import { BLOCK_HEADER_SIZE, type BlockHeader, parseSegmentName } from '../core/segment-format.ts'
import type { BlockCodec } from '../io/block-codec.ts'
import { batchesOf } from '../io/block-place.ts'
import { type FileSystem, isRefused, type LogFile } from '../io/file-system.ts'
import { readGivenArea } from '../io/given-pages.ts'
import type { JournalFile } from '../io/journal-file.ts'
import { parseBatch, type ReadBatch } from '../io/journal-reader.ts'
import { refugeFolder } from '../io/refuge.ts'
import { openBlockBody } from '../io/sealed-blocks.ts'
import { SealedGroupReader } from '../io/sealed-group-reader.ts'
import { type NamedSegment, readSegmentHeader } from '../io/segment-header.ts'
import { blocksOf } from '../io/segment-scan.ts'
import type { FileCipher, StoreKeys } from '../io/store-keys.ts'
import { HEADER_MENDED, SEGMENT_HEADER_COPIED } from '../recovery-report.ts'
import { type InspectedPartition, listed, type Tell } from './names.ts'

/** Where a batch lies in the journal: read again when it is its turn. */
export interface JournalPlace {
  readonly header: BatchHeader
  readonly file: JournalFile
  readonly position: number
  readonly size: number
  readonly isDamaged: boolean
  /** Of an external batch: the run number of its file. */
  readonly externalRun: number | null
}

export interface WalkOptions {
  readonly fileSystem: FileSystem
  readonly checksum: Checksum
  readonly codec: BlockCodec
  readonly keys: StoreKeys
  /** Sealed files whose key is not there are judged by their checksums, and give no messages. */
  readonly isBlind: boolean
  readonly partition: InspectedPartition
  /** Everything below it had been synced; 0 when nothing says. */
  readonly syncedEnd: bigint
  /** In the order of the journal. */
  readonly journal: readonly JournalPlace[]
  readonly tell: Tell
}

export interface WalkCounts {
  segmentCount: number
  segmentBytes: number
  messageCount: number
  firstOffset: bigint | null
  nextOffset: bigint
  damagedBlocks: number
}

export class PartitionWalk {
  readonly counts: WalkCounts
  readonly #options: WalkOptions
  readonly #sealed: SealedGroupReader
  /** Of the journal's places the first that may hold what is not taken yet. */
  #journalAt = 0

  constructor(options: WalkOptions) {
    this.#options = options
    this.#sealed = new SealedGroupReader(options.checksum)
    this.counts = {
      segmentCount: 0,
      segmentBytes: 0,
      messageCount: 0,
      firstOffset: null,
      nextOffset: options.partition.floorOffset,
      damagedBlocks: 0,
    }
  }

  /** Views in a batch are valid until the next one is asked for. @throws {EdgeError} EDGE_STORE_NEWER, EDGE_IO. */
  async *batches(): AsyncGenerator<StoredBatch> {
    const { segments, externals } = this.#files()
    const pieces = [
      ...segments.map((file) => ({ baseOffset: file.baseOffset, file, place: null })),
      ...this.#options.journal.map((place) => ({ baseOffset: place.header.baseOffset, file: null, place })),
    ]
    // The sort is stable: of two that begin alike, the segment counts.
    for (const { file, place } of pieces.sort((a, b) => compare(a.baseOffset, b.baseOffset))) {
      if (file !== null) for await (const batch of this.#batchesOfSegment(file)) yield* this.#taken(batch)
      if (place === null) continue
      if (place.header.kind === BATCH_KIND.external) {
        const external = externals.get(place.externalRun ?? -1)
        if (external === undefined) this.#tellUnlessTaken(place)
        else for await (const batch of this.#batchesOfSegment(external)) yield* this.#taken(batch)
        continue
      }
      const batch = this.#readJournal(place)
      if (batch !== null) yield* this.#taken(batch)
    }
    this.#tellLostEnd()
  }

  // ---- segments ----------------------------------------------------------------------------------------------------------

  /** Segments in order, and by run number the files of large batches, which count when the journal names them. */
  #files(): { segments: NamedSegment[]; externals: Map<number, NamedSegment> } {
    const { partition, tell } = this.#options
    const segments: NamedSegment[] = []
    const externals = new Map<number, NamedSegment>()
    const paths = [partition.directory, refugeFolder(partition.key)].flatMap((folder) =>
      (listed(this.#options, folder) ?? []).map(({ name }) => ({ name, path: `${folder}/${name}` })),
    )
    for (const { name, path } of paths) {
      const parsed = parseSegmentName(name)
      if (parsed === undefined) tell('warn', path, 'is no file of ours and is set aside at the next start')
      else if (parsed.isExternal) externals.set(parsed.runNumber, { path, ...parsed })
      // One that could not be removed: it is empty instead.
      else if (this.#sizeOf(path) > 0) segments.push({ path, ...parsed })
    }
    segments.sort((a, b) => compare(a.baseOffset, b.baseOffset) || a.runNumber - b.runNumber)
    return { segments, externals }
  }

  /** Of one that does not tell, enough to be looked into. */
  #sizeOf(path: string): number {
    try {
      return this.#options.fileSystem.sizeOf(path)
    } catch (error) {
      if (!isRefused(error)) throw error
      return 1
    }
  }

  async *#batchesOfSegment(file: NamedSegment): AsyncGenerator<ReadBatch> {
    this.counts.segmentCount++
    try {
      yield* this.#batchesIn(file)
    } catch (error) {
      if (!isRefused(error)) throw error
      this.#options.tell('error', file.path, `cannot be read: ${error.message}`)
    }
  }

  async *#batchesIn(file: NamedSegment): AsyncGenerator<ReadBatch> {
    const { fileSystem, partition, keys, tell } = this.#options
    const { path } = file
    const handle = fileSystem.open(path, 'existing')
    try {
      const size = handle.size()
      this.counts.segmentBytes += size
      const header = readSegmentHeader(handle, file, partition.key)
      if (header === undefined) {
        tell('error', path, 'has no intact header: none of its messages can be read')
        return
      }
      if (header.isCopy) tell('error', path, SEGMENT_HEADER_COPIED)
      if (header.isMended) tell('warn', path, HEADER_MENDED)
      const keyId = header.encryptionKeyId
      const isSealedForUs = keyId !== 0 && this.#options.isBlind && !keys.has(keyId)
      const cipher = keys.cipherFor(header.bytes, keyId)
      for (const block of blocksOf(handle, header.seed, size)) {
        if (block.isMended) tell('warn', path, `at ${block.position} ${HEADER_MENDED}`)
        if (isSealedForUs) {
          this.#countBlock(path, handle, block)
          continue
        }
        yield* this.#journalUntil(block.baseOffset)
        yield* await this.#readBlock({ path, handle, cipher }, block)
      }
    } finally {
      handle.close()
    }
  }

  async #readBlock(
    { path, handle, cipher }: { path: string; handle: LogFile; cipher: FileCipher | undefined },
    block: BlockHeader,
  ): Promise<Iterable<ReadBatch>> {
    const stored = this.#storedBody(handle, block)
    let state = 'is damaged'
    try {
      const bytes = stored === null ? null : openBlockBody(cipher, block, stored)
      const raw = bytes === null ? null : await this.#options.codec.decode({ codec: block.codec, bytes }, block.rawSize)
      if (raw !== null && raw.length === block.rawSize) return batchesOf(raw)
    } catch (error) {
      // The CRC fits and the contents do not.
      if (error instanceof EdgeError && error.code === 'EDGE_DECRYPT_FAILED') state = 'cannot be opened with its key'
    }
    return this.#insteadOf(path, block, state)
  }

  *#insteadOf(path: string, block: BlockHeader, state: string): Generator<ReadBatch> {
    yield* this.#journalUntil(block.endOffset)
    if (this.counts.nextOffset < block.endOffset) this.#tellBlock(path, block, state)
  }

  /** Without its key a block is only whole or damaged; what it holds is known from its header. */
  #countBlock(path: string, handle: LogFile, block: BlockHeader): void {
    const { counts } = this
    if (this.#storedBody(handle, block) === null) {
      this.#tellBlock(path, block, 'is damaged')
      return
    }
    // Below lies what was dropped, or counted before.
    if (block.endOffset <= counts.nextOffset) return
    const from = later(block.baseOffset, counts.nextOffset)
    counts.firstOffset ??= from
    counts.nextOffset = block.endOffset
    counts.messageCount += Math.max(0, block.recordCount - Number(from - block.baseOffset))
  }

  /** @returns null when its CRC does not fit. */
  #storedBody(handle: LogFile, block: BlockHeader): Uint8Array | null {
    const { storedSize, position, bodyCrc } = block
    const { bytes } = readGivenArea(handle, position + BLOCK_HEADER_SIZE, storedSize)
    return bytes.length === storedSize && this.#options.checksum(bytes, 0, storedSize, 0) === bodyCrc ? bytes : null
  }

  #tellBlock(path: string, block: BlockHeader, state: string): void {
    this.counts.damagedBlocks++
    const range = `offsets ${block.baseOffset} to ${block.endOffset - 1n}`
    this.#options.tell('error', path, `block at ${block.position} ${state}: ${range} cannot be read here`)
  }

  // ---- journal -----------------------------------------------------------------------------------------------------------

  #readJournal(place: JournalPlace): ReadBatch | null {
    const batch = this.#parseJournal(place)
    if (batch === null) this.#tellUnlessTaken(place)
    return batch
  }

  #parseJournal({ file, position, size, isDamaged }: JournalPlace): ReadBatch | null {
    const area = this.#sealed.areaAt(file, position, size)
    const seed = file.seedAt(position)
    return isDamaged ? null : parseBatch(area, 0, size, seed, this.#options.checksum)
  }

  /** What segments should have had below `end`. Whoever takes a batch moves on `counts` before the next one is looked for. */
  *#journalUntil(end: bigint): Generator<ReadBatch> {
    const { journal } = this.#options
    for (; this.counts.nextOffset < end; this.#journalAt++) {
      const place = journal[this.#journalAt]
      if (place === undefined || place.header.baseOffset >= end) return
      const { baseOffset, count, kind } = place.header
      if (kind === BATCH_KIND.external || baseOffset + BigInt(count) <= this.counts.nextOffset) continue
      const batch = this.#parseJournal(place)
      if (batch !== null) yield batch
    }
  }

  /** What a kill left in the journal after it had become a segment, large batches under another name, is not missed. */
  #tellUnlessTaken({ header, file, position }: JournalPlace): void {
    if (header.baseOffset + BigInt(header.count) <= this.counts.nextOffset) return
    this.counts.damagedBlocks++
    const range = `offsets ${header.baseOffset} to ${header.baseOffset + BigInt(header.count) - 1n}`
    const text = `batch at ${position} is damaged: ${range} cannot be read here`
    this.#options.tell('error', `journal/${file.number}`, text)
  }

  // ---- both --------------------------------------------------------------------------------------------------------------

  /** A batch that was there before (packed into a segment, and still in the journal) is taken once. */
  *#taken({ header, recordsView }: ReadBatch): Generator<StoredBatch> {
    const { counts } = this
    const end = header.baseOffset + BigInt(header.count)
    if (end <= counts.nextOffset) return
    if (header.baseOffset > counts.nextOffset) this.#tellGap(header)
    const from = later(header.baseOffset, counts.nextOffset)
    const skip = Number(from - header.baseOffset)
    counts.firstOffset ??= from
    counts.nextOffset = end
    counts.messageCount += header.count - skip
    yield {
      count: header.count,
      baseOriginUs: header.baseOriginUs,
      recordsView,
      baseOffset: header.baseOffset,
      appendTimeUs: header.appendTimeUs,
      idSeed: this.#options.partition.idSeed,
      skip,
      take: header.count - skip,
      isClockTrusted: (header.flags & BATCH_FLAG.isClockTrusted) !== 0,
    }
  }

  /** Synced once, and neither in a segment nor in the journal: the file that held it is gone as a whole. */
  #tellLostEnd(): void {
    const { syncedEnd, isBlind, partition, tell } = this.#options
    const { nextOffset } = this.counts
    if (isBlind || syncedEnd <= nextOffset) return
    const range = `offsets ${nextOffset} to ${syncedEnd - 1n}`
    tell('error', partition.directory, `${range} are missing: they had been synced, and no file holds them`)
  }

  /** Before a flagged batch lie numbers that were never given; what retention and purges took lies below the floor. */
  #tellGap({ baseOffset, flags }: BatchHeader): void {
    const { counts } = this
    const isFloorUnknown = counts.firstOffset === null && !this.#options.partition.isDescribed
    if (isFloorUnknown || this.#options.isBlind || (flags & BATCH_FLAG.hasGapBefore) !== 0) return
    const range = `offsets ${counts.nextOffset} to ${baseOffset - 1n}`
    this.#options.tell('error', this.#options.partition.directory, `${range} are missing`)
  }
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)
