/**
 * Repack: gathers a full journal file by partition into segments, so that the file can be recycled. Runs beside appends and
 * polls; each step leaves a state from which an open recovers (docs/formats/journal.md, "Crash points").
 *
 * 1. gather and write blocks, 2. sync segments and folders, 3. ends move in memory, 4. checkpoint of the producers, hints,
 * 5. the file is free, 6. it is prepared anew. A failure before 3 takes everything back: the journal still has it all.
 */
import type { Clock } from '../../clock.ts'
import { type EdgeError, toEdgeError } from '../../errors.ts'
import { BATCH_KIND, stripBatchHeader } from '../core/batch-header.ts'
import { areaOf, type ByteArea, createArea } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import { decodeGroupHeader } from '../core/journal-format.ts'
import { type BlockFields, BlockPlan, type RepackBatch, type RollLimits } from '../core/repack-plan.ts'
import { BLOCK_CODEC, BLOCK_RAW_SIZE } from '../core/segment-format.ts'
import type { LogPartition } from '../partition.ts'
import type { Scheduler } from '../scheduler.ts'
import type { BlockCodec } from './block-codec.ts'
import type { FileSystem } from './file-system.ts'
import type { JournalFile } from './journal-file.ts'
import { checkBatch } from './journal-reader.ts'
import { RepackBuffer } from './repack-buffer.ts'
import { openGroupInPlace } from './sealed-groups.ts'
import type { SegmentFiles } from './segment-files.ts'
import { SegmentWriter } from './segment-writer.ts'
import type { StoreKeys } from './store-keys.ts'

/** Sealed bytes that are opened before others have their turn. */
const OPENED_PER_TURN = 256 * 1024

export interface RepackRules {
  readonly isRecycledBeforeSync?: boolean
  readonly isDirectorySyncSkipped?: boolean
  readonly isSegmentAlignmentSkipped?: boolean
}

export interface RepackerOptions {
  readonly fileSystem: FileSystem
  readonly segments: SegmentFiles
  readonly codec: BlockCodec
  readonly checksum: Checksum
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly storeIdBytes: Uint8Array
  readonly keys: StoreKeys
  readonly partitions: () => Iterable<LogPartition>
  readonly limitsOf: (partition: LogPartition) => RollLimits
  readonly nextRunNumber: () => number
  readonly randomU32: () => number
  readonly written: (sizeBytes: number, syncCount: number) => void
  readonly rules?: RepackRules
}

interface Job {
  readonly partition: LogPartition
  /** Entries of the file at the front of the partition's index. */
  readonly entryCount: number
  readonly writer: SegmentWriter
  /** End of what was gathered, and of what lies in blocks. */
  endOffset: bigint
  packedEnd: bigint
}

export class Repacker {
  readonly #options: RepackerOptions
  /** Where blocks are put together, one after another. */
  readonly #block = createArea(BLOCK_RAW_SIZE)

  readonly #buffer: RepackBuffer

  constructor(options: RepackerOptions) {
    this.#options = options
    this.#buffer = new RepackBuffer(options.scheduler)
  }

  close(): void {
    this.#buffer.release()
  }

  /**
   * Packs everything of one file. Segments hold it durably when this resolves, and partitions have switched over.
   *
   * @returns the partitions that got blocks.
   * @throws EDGE_DISK_FULL, EDGE_IO: nothing has changed.
   */
  async pack(file: JournalFile): Promise<readonly LogPartition[]> {
    const area = this.#buffer.take(file.position)
    const jobs: Job[] = []
    try {
      await file.handle.readLater(area.bytes, 0)
      await this.#openGroups(file, area)
      for (const partition of [...this.#options.partitions()]) {
        const job = this.#jobFor(partition, file)
        if (job === undefined) continue
        jobs.push(job)
        await this.#packPartition(job, file, area)
      }
      if (!this.#options.rules?.isRecycledBeforeSync) await this.#sync(jobs)
    } catch (error) {
      const failure: EdgeError = toEdgeError(error)
      for (const { writer, partition } of jobs) {
        if (writer.hasNewFiles) partition.areNamesDirty = true
        writer.abort()
      }
      throw failure
    } finally {
      this.#buffer.done()
    }
    for (const { partition, entryCount, writer, endOffset } of jobs) {
      const begun = writer.commit()
      if (!partition.isRemoved) partition.repacked(entryCount, begun, endOffset)
      this.#options.written(writer.writtenBytes, 1)
    }
    return jobs.map(({ partition }) => partition).filter((partition) => !partition.isRemoved)
  }

  /** A sealed file as it would be if it were plain. What cannot be opened is found damaged batch by batch. */
  async #openGroups(file: JournalFile, area: ByteArea): Promise<void> {
    const { cipher } = file
    if (cipher === undefined) return
    let openedBytes = 0
    for (const { position } of file.groups()) {
      const header = decodeGroupHeader(area, position, file, position, area.bytes.length)
      if (header === undefined) continue
      openGroupInPlace(cipher, area, position, header)
      openedBytes += header.length
      if (openedBytes < OPENED_PER_TURN) continue
      openedBytes = 0
      await new Promise<void>((resolve) => this.#options.scheduler.nextTurn(resolve))
    }
  }

  #jobFor(partition: LogPartition, file: JournalFile): Job | undefined {
    const { index } = partition
    let entryCount = 0
    while (entryCount < index.count && index.fileNumber(entryCount) === file.number) entryCount++
    if (entryCount === 0 || partition.isRemoved) return undefined
    const { fileSystem, segments, storeIdBytes, keys, checksum, nextRunNumber, randomU32, clock, rules } = this.#options
    const writer = new SegmentWriter(
      {
        fileSystem,
        files: segments,
        storeIdBytes,
        keys,
        checksum,
        key: partition.key,
        directory: partition.spec.directory,
        limits: this.#options.limitsOf(partition),
        nextRunNumber,
        randomU32,
        nowUs: clock.wallUs(),
        isPageAlignmentSkipped: rules?.isSegmentAlignmentSkipped === true,
      },
      partition.segments.at(-1),
    )
    const { segmentEnd } = partition
    return { partition, entryCount, writer, endOffset: segmentEnd, packedEnd: segmentEnd }
  }

  async #packPartition(job: Job, file: JournalFile, area: ByteArea): Promise<void> {
    const { partition, writer } = job
    const plan = new BlockPlan()
    let to = this.#block
    for (const batch of this.#gather(job, file, area)) {
      const isExternal = batch.header.kind === BATCH_KIND.external
      if (isExternal || !plan.takes(batch)) await this.#store(job, plan, to)
      if (partition.isRemoved) return
      if (isExternal) {
        this.#adopt(job, batch.header.baseOffset)
        continue
      }
      const batchView = area.bytes.subarray(batch.position, batch.position + batch.size)
      // One that is a block by itself stays where it is.
      const isAlone = batch.size > BLOCK_RAW_SIZE
      if (isAlone) to = areaOf(batchView)
      else if (plan.isEmpty) to = this.#block
      if (!isAlone) to.bytes.set(batchView, plan.rawSize)
      // In a block batches have no checksums.
      stripBatchHeader(to, plan.rawSize)
      plan.add(batch)
    }
    await this.#store(job, plan, to)
    // The last batch was damaged: an empty block keeps its offsets from being given again.
    if (job.packedEnd < job.endOffset && !partition.isRemoved) {
      writer.append(emptyBlock(job.endOffset, partition), NO_BODY)
    }
  }

  /** Writes the block that `plan` describes and `from` holds, if there is one. */
  async #store(job: Job, plan: BlockPlan, from: ByteArea): Promise<void> {
    const fields = plan.take()
    if (fields === undefined) return
    const body = await this.#options.codec.encode(from.bytes.subarray(0, fields.rawSize))
    // The catalog may have moved the folder to the trash meanwhile.
    if (job.partition.isRemoved) return
    job.writer.append(fields, body)
    job.packedEnd = fields.endOffset
  }

  #adopt(job: Job, baseOffset: bigint): void {
    const segment = job.partition.externals.get(baseOffset)
    if (segment === undefined) return
    job.writer.adopt(segment)
    job.packedEnd = segment.endOffset
  }

  /** Batches of the file that are still needed, checked; a damaged one becomes a hole. */
  *#gather(job: Job, file: JournalFile, area: ByteArea): Generator<RepackBatch> {
    const { partition, entryCount } = job
    const { index } = partition
    for (let entry = 0; entry < entryCount; entry++) {
      const baseOffset = index.baseOffset(entry)
      const position = index.position(entry)
      const size = index.size(entry)
      const header = checkBatch(area, position, size, file.seedAt(position), this.#options.checksum)
      if (header === null || header.baseOffset !== baseOffset || header.key !== partition.key) {
        const end = entry + 1 < index.count ? index.baseOffset(entry + 1) : partition.watermark.writtenEnd
        partition.damaged(baseOffset, end, 'a batch in the journal does not fit its checksum')
        job.endOffset = end
        continue
      }
      if (header.kind === BATCH_KIND.sequence || baseOffset < partition.logStartOffset) continue
      job.endOffset = header.baseOffset + BigInt(header.count)
      yield { header, position, size, boot: file.bootAt(position) }
    }
  }

  async #sync(jobs: readonly Job[]): Promise<void> {
    for (const { partition, writer } of jobs) {
      if (!partition.isRemoved) await writer.sync()
      const isChanged = writer.hasNewFiles || (partition.areNamesDirty && partition.segments.length > 0)
      if (!isChanged || partition.isRemoved || this.#options.rules?.isDirectorySyncSkipped) continue
      await this.#syncNames(partition, writer)
    }
  }

  async #syncNames(partition: LogPartition, { isFolderNew }: SegmentWriter): Promise<void> {
    const { fileSystem } = this.#options
    const { directory } = partition.spec
    try {
      await fileSystem.syncDirectory(directory)
      if (isFolderNew) await fileSystem.syncDirectory(directory.slice(0, directory.lastIndexOf('/')))
      partition.areNamesDirty = false
    } catch (error) {
      // The catalog moved the folder to the trash meanwhile: nothing of it is needed any more.
      if (!partition.isRemoved) throw error
    }
  }
}

const NO_BODY = { codec: BLOCK_CODEC.plain, bytes: new Uint8Array(0) }

const emptyBlock = (offset: bigint, partition: LogPartition): BlockFields => ({
  rawSize: 0,
  batchCount: 0,
  flags: 0,
  baseOffset: offset,
  endOffset: offset,
  firstTimeUs: partition.lastAppendUs,
  lastTimeUs: partition.lastAppendUs,
  boot: 0,
  recordCount: 0,
})
