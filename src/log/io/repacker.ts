/**
 * Repack: gathers a full journal file by partition into segments, so that the file can be recycled. It goes through the file
 * once, and on the way a block is put together for each partition. Runs beside appends and polls; each step leaves a state
 * from which an open recovers (docs/formats/journal.md, "Crash points").
 *
 * 1. gather and write blocks, 2. sync segments and folders, 3. ends move in memory, 4. checkpoint of the producers, hints,
 * 5. the file is free, 6. it is prepared anew. A failure before 3 takes everything back: the journal still has it all.
 */
import type { Clock } from '../../clock.ts'
import { type EdgeError, systemCodeOf, toEdgeError } from '../../errors.ts'
import { BATCH_KIND, stripBatchHeader } from '../core/batch-header.ts'
import { areaOf, type ByteArea, createArea } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import { type BlockFields, BlockPlan, type RepackBatch, type RollLimits } from '../core/repack-plan.ts'
import { BLOCK_CODEC, BLOCK_RAW_SIZE } from '../core/segment-format.ts'
import type { LogPartition } from '../partition.ts'
import type { Scheduler } from '../scheduler.ts'
import type { BlockCodec } from './block-codec.ts'
import { type FileSystem, isMissing, isRefused } from './file-system.ts'
import { pagesRefused } from './given-pages.ts'
import { type JournalFile, journalPath } from './journal-file.ts'
import { checkBatch } from './journal-reader.ts'
import { JournalWindow, windowSizeFor } from './journal-window.ts'
import { clearAway, folderOf, foldersNaming, refugeFolder } from './refuge.ts'
import { RepackBuffer } from './repack-buffer.ts'
import type { SegmentFiles } from './segment-files.ts'
import { SegmentWriter } from './segment-writer.ts'
import type { StoreKeys } from './store-keys.ts'

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
  /** The partition's folder took files, or did not, which lie in its refuge then. */
  readonly placed: (partition: LogPartition, refusal: EdgeError | undefined) => void
  /** Names in the partition's folder cannot be made or taken for good: the next run leaves it alone. */
  readonly giveUpFolder: (partition: LogPartition, refusal: EdgeError) => void
  /** Bytes of a file that are looked at together. */
  readonly windowSize?: number | undefined
  readonly rules?: RepackRules
}

interface Job {
  readonly partition: LogPartition
  /** Entries of the file at the front of the partition's index. */
  readonly entryCount: number
  readonly writer: SegmentWriter
  readonly plan: BlockPlan
  /** Bytes that its largest block will take. */
  readonly blockSize: number
  readonly largestBatch: number
  /** Where its block is put together. */
  block: ByteArea
  nextEntry: number
  /** End of what was gathered, and of what lies in blocks. */
  endOffset: bigint
  packedEnd: bigint
}

/** A batch that lies in the window. */
interface WindowBatch extends RepackBatch {
  readonly at: number
}

/** Partitions that are looked at before others have their turn: the index of each one's last segment may have to be read. */
const JOBS_PER_TURN = 32

/** Said of a folder, not of the disk: nothing is gained by another try. */
const FORBIDDEN_CODES: ReadonlySet<string> = new Set(['EACCES', 'EPERM'])

/** A partition's folder in which names cannot be made or taken for good. */
interface Refusal {
  readonly partition: LogPartition
  readonly refusal: EdgeError
}

export class Repacker {
  readonly #options: RepackerOptions
  /** Partitions whose folder was refused in the last run. */
  readonly #failing = new WeakSet<LogPartition>()
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
    for (;;) {
      const packed = await this.#run(file)
      if (packed !== undefined) return packed
    }
  }

  /** @returns undefined where folders were given up: nothing has changed, and another run does without them. */
  async #run(file: JournalFile): Promise<readonly LogPartition[] | undefined> {
    const jobs: Job[] = []
    try {
      for (const [number, partition] of [...this.#options.partitions()].entries()) {
        if (number % JOBS_PER_TURN === JOBS_PER_TURN - 1) await this.#nextTurn()
        const job = this.#jobFor(partition, file)
        if (job !== undefined) jobs.push(job)
      }
      await this.#packAll(jobs, file, this.#windowFor(jobs, file))
      const refusals = this.#options.rules?.isRecycledBeforeSync ? [] : await this.#sync(jobs)
      if (refusals.length > 0) {
        abort(jobs)
        for (const { partition, refusal } of refusals) this.#options.giveUpFolder(partition, refusal)
        return undefined
      }
    } catch (error) {
      const failure: EdgeError = toEdgeError(error)
      abort(jobs)
      throw failure
    } finally {
      this.#buffer.done()
    }
    for (const { partition, entryCount, writer, endOffset } of jobs) {
      if (!partition.isRemoved) partition.repacked(entryCount, writer.commit(), endOffset)
      this.#options.written(writer.writtenBytes, 1)
      const { refusal } = writer
      const isTold = refusal !== undefined || writer.touches(partition.spec.directory)
      if (isTold && !partition.isRemoved) this.#options.placed(partition, refusal)
    }
    return jobs.map(({ partition }) => partition).filter((partition) => !partition.isRemoved)
  }

  /** One buffer for the window and for the blocks of all partitions, which fill side by side. */
  #windowFor(jobs: readonly Job[], file: JournalFile): JournalWindow {
    const largestBatch = jobs.reduce((largest, job) => Math.max(largest, job.largestBatch), 0)
    const windowSize = windowSizeFor(file, largestBatch, this.#options.windowSize)
    const { bytes } = this.#buffer.take(jobs.reduce((sum, job) => sum + job.blockSize, windowSize))
    let at = windowSize
    for (const job of jobs) {
      job.block = areaOf(bytes.subarray(at, at + job.blockSize))
      at += job.blockSize
    }
    return new JournalWindow(file, areaOf(bytes.subarray(0, windowSize)))
  }

  /** Within a window the order between partitions does not matter: each takes what it has there. */
  async #packAll(jobs: readonly Job[], file: JournalFile, window: JournalWindow): Promise<void> {
    for (let position = nextPosition(jobs); position !== undefined; position = nextPosition(jobs)) {
      await window.moveTo(position)
      for (const job of jobs) {
        for (let held = this.#addAll(job, file, window); held !== undefined; held = this.#addAll(job, file, window)) {
          await this.#addOne(job, held, window)
        }
        // It cannot be read where it should lie: the file is shorter.
        if (job.nextEntry < job.entryCount && job.partition.index.position(job.nextEntry) === position) {
          this.#damaged(job)
          job.nextEntry++
        }
      }
    }
    for (const job of jobs) await this.#finish(job)
  }

  /** Adds batches of the window to the block, as long as nothing must be waited for. @returns the one it ended at. */
  #addAll(job: Job, file: JournalFile, window: JournalWindow): WindowBatch | undefined {
    const { partition, plan, block, entryCount } = job
    const { index } = partition
    for (; job.nextEntry < entryCount; job.nextEntry++) {
      if (partition.isRemoved) continue
      const at = window.find(index.position(job.nextEntry), index.size(job.nextEntry))
      if (at === undefined) return undefined
      const batch = this.#check(job, file, window, at)
      if (batch === undefined) continue
      if (isExternal(batch) || isBlockAlone(batch.size) || !plan.takes(batch)) return batch
      addTo(block, plan, batch, window.area.bytes.subarray(at, at + batch.size))
    }
    return undefined
  }

  async #addOne(job: Job, batch: WindowBatch, { area }: JournalWindow): Promise<void> {
    job.nextEntry++
    if (isExternal(batch) || !job.plan.takes(batch)) await this.#store(job, job.block)
    if (job.partition.isRemoved) return
    if (isExternal(batch)) {
      this.#adopt(job, batch.header.baseOffset)
      return
    }
    const batchView = area.bytes.subarray(batch.at, batch.at + batch.size)
    // One that is a block by itself is stored from where it lies.
    const isAlone = isBlockAlone(batch.size)
    const block = isAlone ? areaOf(batchView) : job.block
    addTo(block, job.plan, batch, batchView)
    if (isAlone) await this.#store(job, block)
  }

  async #finish(job: Job): Promise<void> {
    const { partition, writer } = job
    await this.#store(job, job.block)
    // The last batch was damaged: a block without batches keeps its offsets from being given again.
    if (job.packedEnd < job.endOffset && !partition.isRemoved) {
      writer.append(holeBlock(job, partition), NO_BODY)
    }
  }

  #jobFor(partition: LogPartition, file: JournalFile): Job | undefined {
    const { index } = partition
    let entryCount = 0
    let blockSize = 0
    let largestBatch = 0
    for (; entryCount < index.count && index.fileNumber(entryCount) === file.number; entryCount++) {
      const size = index.size(entryCount)
      largestBatch = Math.max(largestBatch, size)
      if (!isBlockAlone(size)) blockSize = Math.min(blockSize + size, BLOCK_RAW_SIZE)
    }
    if (entryCount === 0 || partition.isRemoved) return undefined
    const { fileSystem, segments, storeIdBytes, keys, checksum, nextRunNumber, randomU32, clock, rules } = this.#options
    const limits = this.#options.limitsOf(partition)
    const writer = new SegmentWriter(
      {
        fileSystem,
        files: segments,
        storeIdBytes,
        keys,
        checksum,
        key: partition.key,
        directory: partition.spec.directory,
        refuge: refugeFolder(partition.key),
        leftovers: partition.leftovers,
        folderRefusal: partition.folderRefusal,
        limits,
        nextRunNumber,
        randomU32,
        nowUs: clock.wallUs(),
        isPageAlignmentSkipped: rules?.isSegmentAlignmentSkipped === true,
      },
      partition.segments.at(-1),
    )
    const { segmentEnd } = partition
    const ends = { endOffset: segmentEnd, packedEnd: segmentEnd }
    const plan = new BlockPlan(limits.sizeBytes)
    return { partition, entryCount, writer, plan, blockSize, largestBatch, block: NO_AREA, nextEntry: 0, ...ends }
  }

  /** Writes the block that is planned and that `from` holds, if there is one. */
  async #store(job: Job, from: ByteArea): Promise<void> {
    const fields = job.plan.take()
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

  /**
   * @returns the job's next batch, which lies at `at`, if it is still needed; a damaged one becomes a hole.
   * @throws EDGE_IO where it may only not be given now.
   */
  #check(job: Job, file: JournalFile, { area, isGiven }: JournalWindow, at: number): WindowBatch | undefined {
    const { partition, nextEntry } = job
    const { index } = partition
    const baseOffset = index.baseOffset(nextEntry)
    const position = index.position(nextEntry)
    const size = index.size(nextEntry)
    const { refusals } = this.#options.segments
    if (isGiven && !refusals.isEmpty) refusals.given(file.life, position)
    const header = checkBatch(area, at, size, file.seedAt(position), this.#options.checksum)
    if (header === null || header.baseOffset !== baseOffset || header.key !== partition.key) {
      if (!isGiven) refusals.check(file.life, position, pagesRefused(journalPath(file.number)))
      this.#damaged(job)
      return undefined
    }
    if (header.kind === BATCH_KIND.sequence || baseOffset < partition.logStartOffset) return undefined
    job.endOffset = header.baseOffset + BigInt(header.count)
    return { header, size, boot: file.bootAt(position), at }
  }

  /** The job's next batch becomes a hole. */
  #damaged(job: Job): void {
    const { partition, nextEntry } = job
    const { index } = partition
    const end = nextEntry + 1 < index.count ? index.baseOffset(nextEntry + 1) : partition.watermark.writtenEnd
    partition.damaged(index.baseOffset(nextEntry), end, 'a batch in the journal does not fit its checksum')
    job.endOffset = end
  }

  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#options.scheduler.nextTurn(resolve))
  }

  /** @returns folders of partitions that are to be given up before the run can count. */
  async #sync(jobs: readonly Job[]): Promise<readonly Refusal[]> {
    const refusals: Refusal[] = []
    for (const { partition, writer } of jobs) {
      if (partition.isRemoved) continue
      await writer.sync()
      noteNames(partition, writer)
      // Without a segment no name can end one.
      const isAny = partition.segments.length > 0 || writer.hasBegun
      const refusal = await this.#refusalOf(partition, async () => {
        await clearAway(this.#options.fileSystem, partition.leftovers)
        if (isAny && !this.#options.rules?.isDirectorySyncSkipped) await this.#syncHomeNames(partition)
      })
      if (refusal !== undefined) refusals.push({ partition, refusal })
      else if (isAny && !this.#options.rules?.isDirectorySyncSkipped) await this.#syncRefugeNames(partition)
    }
    return refusals
  }

  /**
   * @returns why the partition's folder is to be given up.
   * @throws the first time, unless the folder is forbidden: a disk that fails once is tried again.
   */
  async #refusalOf(partition: LogPartition, task: () => Promise<void>): Promise<EdgeError | undefined> {
    try {
      await this.#unlessRemoved(partition, task)
      this.#failing.delete(partition)
      return undefined
    } catch (error) {
      const isAgain = this.#failing.has(partition)
      this.#failing.add(partition)
      const isFinal = isAgain || FORBIDDEN_CODES.has(systemCodeOf(error))
      if (!isRefused(error) || !isFinal || partition.folderRefusal !== undefined) throw error
      return error
    }
  }

  async #syncHomeNames(partition: LogPartition): Promise<void> {
    if (!partition.areNamesDirty || partition.folderRefusal !== undefined) return
    const { fileSystem } = this.#options
    const { directory } = partition.spec
    const isThere = await syncIfThere(fileSystem, directory)
    if (!isThere || partition.isFolderNameDirty) await fileSystem.syncDirectory(folderOf(directory))
    partition.isFolderNameDirty = false
    partition.areNamesDirty = false
  }

  async #syncRefugeNames(partition: LogPartition): Promise<void> {
    if (!partition.areRefugeNamesDirty) return
    const { fileSystem } = this.#options
    for (const folder of foldersNaming(refugeFolder(partition.key))) {
      await this.#unlessRemoved(partition, () => fileSystem.syncDirectory(folder))
    }
    partition.areRefugeNamesDirty = false
  }

  /** The catalog may have moved the folder to the trash meanwhile: nothing of it is needed any more. */
  async #unlessRemoved(partition: LogPartition, task: () => Promise<void>): Promise<void> {
    try {
      await task()
    } catch (error) {
      if (!partition.isRemoved) throw error
    }
  }
}

function abort(jobs: readonly Job[]): void {
  for (const { writer, partition } of jobs) {
    noteNames(partition, writer)
    writer.abort()
  }
}

/** Folders in which the run gave or took names are to be synced before it counts, or the next one does. */
function noteNames(partition: LogPartition, writer: SegmentWriter): void {
  if (writer.touches(partition.spec.directory)) partition.areNamesDirty = true
  if (writer.touches(refugeFolder(partition.key))) partition.areRefugeNamesDirty = true
  if (writer.isFolderNew) partition.isFolderNameDirty = true
}

/** @returns whether it is there: one that is not holds no names, once its own is gone for good. */
async function syncIfThere(fileSystem: FileSystem, folder: string): Promise<boolean> {
  try {
    await fileSystem.syncDirectory(folder)
    return true
  } catch (error) {
    if (!isMissing(error)) throw error
    return false
  }
}

/** Where the first batch lies that no job has taken yet. */
function nextPosition(jobs: readonly Job[]): number | undefined {
  let first: number | undefined
  for (const { partition, nextEntry, entryCount } of jobs) {
    if (nextEntry >= entryCount) continue
    const position = partition.index.position(nextEntry)
    if (first === undefined || position < first) first = position
  }
  return first
}

/** Copies the batch behind those that are planned, unless it lies there. In a block batches have no checksums. */
function addTo(block: ByteArea, plan: BlockPlan, batch: RepackBatch, batchView: Uint8Array): void {
  if (block.bytes.byteOffset !== batchView.byteOffset) block.bytes.set(batchView, plan.rawSize)
  stripBatchHeader(block, plan.rawSize)
  plan.add(batch)
}

const isExternal = ({ header }: RepackBatch): boolean => header.kind === BATCH_KIND.external

const isBlockAlone = (batchSize: number): boolean => batchSize > BLOCK_RAW_SIZE

const NO_AREA = createArea(0)
const NO_BODY = { codec: BLOCK_CODEC.plain, bytes: new Uint8Array(0) }

/** It begins where the hole does: a file that begins with it must not have the name of the one behind it. */
const holeBlock = ({ packedEnd, endOffset }: Job, partition: LogPartition): BlockFields => ({
  rawSize: 0,
  batchCount: 0,
  flags: 0,
  baseOffset: packedEnd,
  endOffset,
  firstTimeUs: partition.lastAppendUs,
  lastTimeUs: partition.lastAppendUs,
  boot: 0,
  recordCount: 0,
})
