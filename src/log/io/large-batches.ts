/**
 * Batches that do not fit the journal: written to a file of their own first, synced with its name, and then referred to by
 * a small batch in the journal, which is what makes them exist. At repack the file becomes a segment as it is.
 *
 * What is appended to the same partition behind a large batch waits for it here, so that offsets reach the journal in
 * order; so does what the same producer sends, since its numbers are disposed of in order. One batch is written at a time,
 * and the bytes that wait are bounded.
 */
import { EdgeError, toEdgeError } from '../../errors.ts'
import type { ProducerTag } from '../api.ts'
import {
  BATCH_FLAG,
  BATCH_HEADER_SIZE,
  BATCH_KIND,
  batchSize,
  EXTERNAL_BODY_SIZE,
  encodeBatchHeader,
  encodeExternal,
  encodeTag,
  MAX_TAG_SIZE,
} from '../core/batch-header.ts'
import { createArea } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import type { PendingBatch } from '../core/pending-batch.ts'
import type { PendingReceipt } from '../core/pending-receipt.ts'
import {
  BLOCK_FLAG,
  BLOCK_HEADER_SIZE,
  encodeBlockHeader,
  encodeSegmentHeader,
  SEGMENT_HEADER_SIZE,
  SEGMENT_VERSION,
} from '../core/segment-format.ts'
import type { LogPartition } from '../partition.ts'
import type { Scheduler } from '../scheduler.ts'
import type { BlockCodec } from './block-codec.ts'
import { type FileSystem, isDone, type LogFile } from './file-system.ts'
import type { Journal } from './journal.ts'
import { syncFile } from './journal-file.ts'
import { createInFolder, foldersNaming, isOfPlace, refugeFolder } from './refuge.ts'
import { sealBlockBody } from './sealed-blocks.ts'
import { Segment, type SegmentFields } from './segment.ts'
import type { StoreKeys } from './store-keys.ts'

export interface LargeBatchesOptions {
  readonly fileSystem: FileSystem
  readonly scheduler: Scheduler
  readonly codec: BlockCodec
  readonly checksum: Checksum
  readonly journal: Journal
  readonly storeIdBytes: Uint8Array
  readonly keys: StoreKeys
  readonly nextRunNumber: () => number
  readonly randomU32: () => number
  /** Bytes that may wait: at least the largest batch. */
  readonly maxWaitingBytes: number
  readonly written: (sizeBytes: number, syncCount: number) => void
  /** The partition's folder took the file, or did not, which lies in its refuge then. */
  readonly placed: (partition: LogPartition, refusal: EdgeError | undefined) => void
  /** A batch has its file, or the disk refused it. */
  readonly stored: (refusal: EdgeError | undefined) => void
  /** What was taken has reached the journal: until then it may be given up. */
  readonly entered: (messageCount: number, recordsSize: number) => void
}

interface Waiting {
  /** Undefined for a producer's sequence without records. */
  readonly partition: LogPartition | undefined
  readonly batch: PendingBatch
  readonly recordsBytes: Uint8Array
  readonly tag: ProducerTag | undefined
}

/** What one that waits takes beside its bytes, about: small batches behind a large one are bounded as well. */
const WAITING_COST_BYTES = 512
/** Written per turn of the event loop: a write of 64 MB at once would stop everything else. */
const CHUNK_SIZE = 1024 * 1024

export class LargeBatches {
  readonly #options: LargeBatchesOptions
  /** In order. One large batch may have a hundred thousand small ones behind it: nothing is found by going through them. */
  readonly #queue = new Set<Waiting>()
  /** How many of each partition and of each producer wait. */
  readonly #counts = new Map<LogPartition | number, number>()
  #waitingBytes = 0
  #running: Promise<void> | undefined
  /** Nothing is taken behind what is given up. */
  #isGivingUp = false

  constructor(options: LargeBatchesOptions) {
    this.#options = options
  }

  hasRoom(sizeBytes: number): boolean {
    const takenBytes = this.#waitingBytes + this.#queue.size * WAITING_COST_BYTES
    return !this.#isGivingUp && takenBytes + sizeBytes <= this.#options.maxWaitingBytes
  }

  /** Whether a batch of that partition or that producer waits, so that later ones must as well. */
  holds(partition: LogPartition | undefined, tag: ProducerTag | undefined): boolean {
    return this.#queue.size > 0 && namesOf({ partition, tag }).some((name) => this.#counts.has(name))
  }

  /** Copies the batch; the caller has asked `hasRoom`. */
  append(
    partition: LogPartition | undefined,
    batch: PendingBatch,
    recordsView: Uint8Array,
    tag: ProducerTag | undefined,
  ): void {
    this.#queue.add({ partition, batch, recordsBytes: new Uint8Array(recordsView), tag })
    for (const name of namesOf({ partition, tag })) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
    this.#waitingBytes += recordsView.length
    this.#running ??= this.#run()
  }

  /** Everything that waits now has reached the journal, or was told why not. */
  async settled(): Promise<void> {
    await this.#running
  }

  async #run(): Promise<void> {
    for (let [next] = this.#queue; next !== undefined; [next] = this.#queue) {
      try {
        await this.#submit(next)
        this.#remove([next])
      } catch (error) {
        await this.#giveUp(next, toEdgeError(error))
      }
    }
    this.#running = undefined
  }

  async #submit(waiting: Waiting): Promise<void> {
    const { partition, batch, recordsBytes } = waiting
    if (partition === undefined || batch.fields.kind !== BATCH_KIND.external) {
      await this.#enter(waiting, recordsBytes)
      return
    }
    this.#refuseWhenClosed()
    const segment = await this.#store(partition, waiting)
    try {
      await this.#enter(waiting, referenceTo(segment), segment)
    } catch (error) {
      // Nothing refers to it. Left there it would take its place on the disk until the next start.
      this.#unlinkQuietly(segment.path)
      throw error
    }
  }

  async #store(partition: LogPartition, waiting: Waiting): Promise<Segment> {
    const { stored } = this.#options
    try {
      const segment = await this.#writeFile(partition, waiting)
      stored(undefined)
      return segment
    } catch (error) {
      // Of a partition that was deleted meanwhile the folder is gone, which is nobody's trouble.
      if (!partition.isRemoved) stored(toEdgeError(error))
      throw error
    }
  }

  /** Waits for room in the journal, and appends in the turn in which there is some. */
  async #enter(waiting: Waiting, bodyView: Uint8Array, segment?: Segment): Promise<void> {
    const { partition, batch, recordsBytes, tag } = waiting
    const { journal, entered } = this.#options
    while (!journal.hasRoom(MAX_TAG_SIZE + bodyView.length)) {
      if (journal.refusal !== undefined) throw journal.refusal
      this.#refuseWhenClosed()
      await new Promise<void>((resolve) => journal.onceRoom(resolve))
    }
    if (partition?.isRemoved) throw new EdgeError('EDGE_PARTITION_NOT_FOUND', 'the partition was deleted meanwhile')
    // What a purge has passed meanwhile nobody reads: only the reference goes on, with the numbers of a producer.
    if (partition !== undefined && segment !== undefined) {
      if (batch.endOffset <= partition.logStartOffset) this.#unlinkQuietly(segment.path)
      else partition.addExternal(batch.fields.baseOffset, segment)
    }
    journal.append(batch, partition?.watermark.isBuffered === true, bodyView, tag)
    if (partition !== undefined) entered(batch.fields.count, recordsBytes.length)
  }

  /** A closed journal has no room ever again. */
  #refuseWhenClosed(): void {
    if (this.#options.journal.isClosed) throw new EdgeError('EDGE_SHUTTING_DOWN', 'the log was closed meanwhile')
  }

  /** A file in the form of a segment with one block; durable with its name when it resolves. */
  async #writeFile(
    partition: LogPartition,
    { batch, recordsBytes, tag }: Pick<Waiting, 'batch' | 'recordsBytes' | 'tag'>,
  ): Promise<Segment> {
    const { codec, checksum, fileSystem, storeIdBytes, keys, nextRunNumber, randomU32 } = this.#options
    const { fields, endOffset } = batch
    const raw = rawBatch(batch, recordsBytes, tag)
    const body = await codec.encode(raw)
    const { baseOffset, appendTimeUs: createdAtUs } = fields
    const [runNumber, seed, encryptionKeyId] = [nextRunNumber(), randomU32(), keys.currentId]
    const area = createArea(SEGMENT_HEADER_SIZE + BLOCK_HEADER_SIZE)
    const place = { version: SEGMENT_VERSION, storeIdBytes, key: partition.key, seed, baseOffset, runNumber }
    encodeSegmentHeader(area, 0, { ...place, createdAtUs, encryptionKeyId })
    const cipher = keys.cipherFor(area.bytes, encryptionKeyId)
    if (partition.isRemoved) throw new EdgeError('EDGE_PARTITION_NOT_FOUND', 'the partition was deleted meanwhile')
    const { segment, handle } = this.#begun(partition, { baseOffset, runNumber, seed, cipher })
    segment.isClosed = true
    segment.endOffset = endOffset
    segment.messageCount = fields.count
    segment.lastAppendUs = fields.appendTimeUs
    segment.isClockTrusted = (fields.flags & BATCH_FLAG.isClockTrusted) !== 0
    segment.lastBlockPosition = SEGMENT_HEADER_SIZE
    segment.lastBoot = this.#options.journal.boot
    const block = {
      rawSize: raw.length,
      batchCount: 1,
      codec: body.codec,
      flags: segment.isClockTrusted ? 0 : BLOCK_FLAG.isClockUntrusted,
      baseOffset,
      endOffset,
      firstTimeUs: fields.appendTimeUs,
      lastTimeUs: fields.appendTimeUs,
      runNumber,
      boot: segment.lastBoot,
      recordCount: fields.count,
      previousPosition: 0,
      position: SEGMENT_HEADER_SIZE,
    }
    const stored = sealBlockBody(cipher, block, body.bytes, randomU32)
    const bodyCrc = checksum(stored, 0, stored.length, 0)
    encodeBlockHeader(area, SEGMENT_HEADER_SIZE, { ...block, storedSize: stored.length, bodyCrc }, seed)
    const padding = batchSize(stored.length) - BATCH_HEADER_SIZE - stored.length
    await this.#writeSynced(segment, handle, [area.bytes, stored, new Uint8Array(padding)])
    try {
      for (const folder of foldersNaming(segment.directory)) await fileSystem.syncDirectory(folder)
    } catch (error) {
      this.#unlinkQuietly(segment.path)
      throw error
    }
    if (segment.directory === partition.spec.directory) this.#options.placed(partition, undefined)
    return segment
  }

  /** An empty file in the partition's folder, or where that takes none, in its refuge. */
  #begun(partition: LogPartition, name: Omit<SegmentFields, 'directory'>): { segment: Segment; handle: LogFile } {
    const { fileSystem, placed } = this.#options
    const begunIn = (directory: string): { segment: Segment; handle: LogFile } => {
      const segment = new Segment({ ...name, directory })
      segment.isExternal = true
      return { segment, handle: createInFolder(fileSystem, segment.path) }
    }
    try {
      if (partition.folderRefusal !== undefined) throw partition.folderRefusal
      return begunIn(partition.spec.directory)
    } catch (error) {
      if (!isOfPlace(error, fileSystem)) throw error
      const begun = begunIn(refugeFolder(partition.key))
      placed(partition, error)
      return begun
    }
  }

  async #writeSynced(segment: Segment, handle: LogFile, parts: readonly Uint8Array[]): Promise<void> {
    const { scheduler, written } = this.#options
    let position = 0
    try {
      for (const part of parts) {
        for (let at = 0; at < part.length; at += CHUNK_SIZE) {
          const chunk = part.subarray(at, at + CHUNK_SIZE)
          handle.write(chunk, position)
          position += chunk.length
          if (part.length > CHUNK_SIZE) await new Promise<void>((resolve) => scheduler.nextTurn(resolve))
        }
      }
      await syncFile(handle)
    } catch (error) {
      handle.close()
      this.#unlinkQuietly(segment.path)
      throw error
    }
    handle.close()
    segment.sizeBytes = position
    written(position, 1)
  }

  #unlinkQuietly(path: string): void {
    // The next start removes what nothing refers to.
    isDone(() => this.#options.fileSystem.unlink(path))
  }

  /**
   * All that waits behind it goes with it, of its partition and of its producer: offsets are given back, and nothing above
   * them is in the journal; sequence numbers come again.
   *
   * Told at once, all together: a producer that learned of it late would go on meanwhile, beyond numbers that are lost.
   */
  async #giveUp(first: Waiting, error: EdgeError): Promise<void> {
    const { journal, scheduler } = this.#options
    let given = this.#bound(first)
    while (!isNext(given)) {
      await journal.flush().catch(() => {})
      await new Promise<void>((resolve) => scheduler.nextTurn(resolve))
      given = this.#bound(first)
    }
    this.#isGivingUp = true
    for (const { batch } of given) batch.settle(error)
    this.#isGivingUp = false
    const taken = new Set<LogPartition>()
    for (const { partition, batch } of given) {
      if (partition === undefined || taken.has(partition)) continue
      taken.add(partition)
      partition.takeBack(batch.fields.baseOffset)
    }
    this.#remove(given)
  }

  /** What must go with it, in order: also those that must be told before one of them, and theirs. */
  #bound(first: Waiting): Waiting[] {
    const bound = new Set<Waiting>()
    const names = new Set<LogPartition | PendingReceipt | number>()
    const isBound = ({ partition, tag, batch }: Waiting): boolean =>
      (partition !== undefined && names.has(partition)) ||
      (tag !== undefined && names.has(tag.device)) ||
      names.has(batch)
    for (let added = [first]; added.length > 0; ) {
      for (const waiting of added) {
        const { partition, tag, batch } = waiting
        bound.add(waiting)
        for (const name of [partition, tag?.device, batch.before])
          if (name !== undefined && name !== null) names.add(name)
      }
      added = [...this.#queue].filter((waiting) => !bound.has(waiting) && isBound(waiting))
    }
    return [...this.#queue].filter((waiting) => bound.has(waiting))
  }

  #remove(done: readonly Waiting[]): void {
    for (const waiting of done) {
      this.#queue.delete(waiting)
      this.#waitingBytes -= waiting.recordsBytes.length
      for (const name of namesOf(waiting)) {
        const left = (this.#counts.get(name) ?? 0) - 1
        if (left > 0) this.#counts.set(name, left)
        else this.#counts.delete(name)
      }
    }
    this.#options.journal.roomMade()
  }
}

/** What a batch has in common with those that must wait for it: its partition, and the number of its producer. */
function namesOf({ partition, tag }: Pick<Waiting, 'partition' | 'tag'>): readonly (LogPartition | number)[] {
  return [partition ?? [], tag?.device ?? []].flat()
}

/** Nobody else must be told before them. */
function isNext(given: readonly Waiting[]): boolean {
  const receipts = new Set<PendingReceipt>(given.map(({ batch }) => batch))
  return given.every(({ batch }) => batch.before === null || receipts.has(batch.before))
}

/** The batch as it lies in a block. */
function rawBatch(batch: PendingBatch, recordsBytes: Uint8Array, tag: ProducerTag | undefined): Uint8Array {
  const tagArea = createArea(MAX_TAG_SIZE)
  const tagSize = tag === undefined ? 0 : encodeTag(tagArea.bytes, 0, tag)
  const bodySize = tagSize + recordsBytes.length
  const area = createArea(batchSize(bodySize))
  encodeBatchHeader(area, 0, { ...batch.fields, kind: BATCH_KIND.data }, 0, bodySize)
  area.bytes.set(tagArea.bytes.subarray(0, tagSize), BATCH_HEADER_SIZE)
  area.bytes.set(recordsBytes, BATCH_HEADER_SIZE + tagSize)
  return area.bytes
}

function referenceTo(segment: Segment): Uint8Array {
  const area = createArea(EXTERNAL_BODY_SIZE)
  encodeExternal(area, 0, segment.runNumber, segment.sizeBytes)
  return area.bytes
}
