/**
 * Goes through everything that can be read of one partition, in order: segment blocks whose CRC fits, then the journal's
 * batches. What cannot be read is told with its offsets and passed over.
 */
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import { BATCH_FLAG, BATCH_KIND, type BatchHeader } from '../core/batch-header.ts'
import { areaOf } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import { later } from '../core/offset.ts'
import {
  BLOCK_HEADER_SIZE,
  type BlockHeader,
  decodeSegmentHeader,
  parseSegmentName,
  SEGMENT_HEADER_SIZE,
  SEGMENT_VERSION,
} from '../core/segment-format.ts'
import type { BlockCodec } from '../io/block-codec.ts'
import type { FileSystem, LogFile } from '../io/file-system.ts'
import type { JournalFile } from '../io/journal-file.ts'
import { parseBatch, type ReadBatch } from '../io/journal-reader.ts'
import { newerStore } from '../io/journal-recovery.ts'
import { batchesOf } from '../io/partition-reader.ts'
import { blocksOf, readArea } from '../io/segment-files.ts'
import type { InspectedPartition, Tell } from './names.ts'

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
  readonly partition: InspectedPartition
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

  constructor(options: WalkOptions) {
    this.#options = options
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
      ...segments.map(({ baseOffset, path }) => ({ baseOffset, path, place: null })),
      ...this.#options.journal.map((place) => ({ baseOffset: place.header.baseOffset, path: null, place })),
    ]
    // The sort is stable: of two that begin alike, the segment counts.
    for (const { path, place } of pieces.sort((a, b) => compare(a.baseOffset, b.baseOffset))) {
      if (path !== null) for await (const batch of this.#batchesOfSegment(path)) yield* this.#taken(batch)
      if (place === null) continue
      if (place.header.kind === BATCH_KIND.external) {
        const external = externals.get(place.externalRun ?? -1)
        if (external === undefined) this.#tellDamage(place)
        else for await (const batch of this.#batchesOfSegment(external)) yield* this.#taken(batch)
        continue
      }
      const batch = this.#readJournal(place)
      if (batch !== null) yield* this.#taken(batch)
    }
  }

  // ---- segments ----------------------------------------------------------------------------------------------------------

  /** Segments in order, and by run number the files of large batches, which count when the journal names them. */
  #files(): { segments: { path: string; baseOffset: bigint }[]; externals: Map<number, string> } {
    const { fileSystem, partition, tell } = this.#options
    const segments: { path: string; baseOffset: bigint; runNumber: number }[] = []
    const externals = new Map<number, string>()
    for (const { name } of fileSystem.list(partition.directory)) {
      const parsed = parseSegmentName(name)
      const path = `${partition.directory}/${name}`
      if (parsed === undefined) tell('warn', path, 'is no file of ours and is set aside at the next start')
      else if (parsed.isExternal) externals.set(parsed.runNumber, path)
      else segments.push({ path, ...parsed })
    }
    segments.sort((a, b) => compare(a.baseOffset, b.baseOffset) || a.runNumber - b.runNumber)
    return { segments, externals }
  }

  async *#batchesOfSegment(path: string): AsyncGenerator<ReadBatch> {
    const { fileSystem, partition, tell } = this.#options
    const handle = fileSystem.open(path, 'existing')
    try {
      const size = handle.size()
      this.counts.segmentCount++
      this.counts.segmentBytes += size
      const header = decodeSegmentHeader(readArea(handle, 0, Math.min(size, SEGMENT_HEADER_SIZE)))
      if (header !== undefined && header.version > SEGMENT_VERSION) throw newerStore(path, header.version)
      if (header === undefined || header.key !== partition.key) {
        tell('error', path, 'has no intact header: none of its messages can be read')
        return
      }
      if (header.encryptionKeyId !== 0) {
        tell('warn', path, 'is encrypted: its contents were not looked at')
        return
      }
      for (const block of blocksOf(handle, header.seed, size)) yield* await this.#readBlock(path, handle, block)
    } finally {
      handle.close()
    }
  }

  async #readBlock(path: string, handle: LogFile, block: BlockHeader): Promise<Iterable<ReadBatch>> {
    const { checksum, codec, tell } = this.#options
    const bytes = new Uint8Array(block.storedSize)
    const size = handle.read(bytes, block.position + BLOCK_HEADER_SIZE)
    try {
      const isWhole = size === bytes.length && checksum(bytes, 0, size, 0) === block.bodyCrc
      const raw = isWhole ? await codec.decode({ codec: block.codec, bytes }, block.rawSize) : null
      if (raw !== null && raw.length === block.rawSize) return batchesOf(raw)
    } catch {
      // Told below: the CRC fits and the contents do not.
    }
    this.counts.damagedBlocks++
    const range = `offsets ${block.baseOffset} to ${block.endOffset - 1n}`
    tell('error', path, `block at ${block.position} is damaged: ${range} cannot be read here`)
    return []
  }

  // ---- journal -----------------------------------------------------------------------------------------------------------

  #readJournal(place: JournalPlace): ReadBatch | null {
    const { header, file, position, size, isDamaged } = place
    const area = areaOf(new Uint8Array(size))
    file.handle.read(area.bytes, position)
    const seed = file.seedAt(position)
    const batch = isDamaged ? null : parseBatch(area, 0, size, seed, this.#options.checksum)
    const end = header.baseOffset + BigInt(header.count)
    if (batch === null && end > this.counts.nextOffset) this.#tellDamage(place)
    return batch
  }

  #tellDamage({ header, file, position }: JournalPlace): void {
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

  /** Before the first batch, retention; before a flagged one, numbers that were never given. */
  #tellGap({ baseOffset, flags }: BatchHeader): void {
    const { counts } = this
    if (counts.firstOffset === null || (flags & BATCH_FLAG.hasGapBefore) !== 0) return
    const range = `offsets ${counts.nextOffset} to ${baseOffset - 1n}`
    this.#options.tell('error', this.#options.partition.directory, `${range} are missing`)
  }
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0)
