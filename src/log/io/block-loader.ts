/**
 * Decodes blocks of segments: those that lie one behind the other with one read, and those that a reader will want next
 * before it asks.
 *
 * A body is decoded only after its CRC; a block that is damaged costs its own offsets and nothing else.
 */
import { discard } from '../../discard.ts'
import { EdgeError } from '../../errors.ts'
import { sharedKernel } from '../../sdk/wire/kernel/shared-kernel.ts'
import { areaOf, type ByteArea } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import { BLOCK_HEADER_SIZE, BLOCK_RAW_SIZE, decodeBlockHeader } from '../core/segment-format.ts'
import type { Scheduler } from '../scheduler.ts'
import { BlockCache } from './block-cache.ts'
import { type BlockCodec, type EncodedBlock, MAX_SIZE_AT_ONCE } from './block-codec.ts'
import type { LogFile } from './file-system.ts'
import { NotingFile, pagesRefused } from './given-pages.ts'
import { openBlockBody } from './sealed-blocks.ts'
import type { Segment } from './segment.ts'
import { readBlockHeader } from './segment-scan.ts'

export interface BlockLoaderOptions {
  readonly file: (path: string) => LogFile
  readonly scheduler: Scheduler
  readonly checksum: Checksum
  readonly codec: BlockCodec
  /** How many decoded blocks are kept. */
  readonly decodedBlocks: number
}

/** Where a block lies. */
export interface BlockRange {
  readonly position: number
  /** At the latest; undefined where only its own header says so. */
  readonly end: number | undefined
}

/** What to do with a decoded block; unless it is lasting, the view is valid until this returns. */
export type UseBlock = (rawView: Uint8Array, isLasting: boolean) => void

/** Runs that are decoded at the same time before anybody asked for them: as many as the pool has threads. */
const MAX_READS_AHEAD = 2
/** Bytes that one read of several blocks takes at most. */
export const MAX_RUN_SIZE = 256 * 1024
/** Blocks that one read takes at most; and of those that are kept, a quarter. */
export const MAX_RUN_BLOCKS = 8
const RUN_SHARE = 1 / 4

/** A block on its way into memory: who wants the same one waits for it. */
interface Reading {
  readonly segment: Segment
  readonly range: BlockRange
  readonly users: UseBlock[]
  readonly ended: PromiseWithResolvers<void>
}

/** Never empty: blocks that are read together. */
type Run<T> = readonly [T, ...T[]]

export class BlockLoader {
  readonly #options: BlockLoaderOptions
  readonly #decoded: BlockCache
  /** Blocks that one read takes at most. */
  readonly maxRun: number
  #reading: Reading[] = []
  #readsAhead = 0
  #isClosed = false

  constructor(options: BlockLoaderOptions) {
    this.#options = options
    this.maxRun = Math.min(MAX_RUN_BLOCKS, Math.max(1, Math.floor(options.decodedBlocks * RUN_SHARE)))
    // In the kernels' memory: they read records where these lie.
    this.#decoded = new BlockCache(sharedKernel().reserve(options.decodedBlocks * BLOCK_RAW_SIZE), this.maxRun)
  }

  /** The file is closed, removed or renamed. */
  forget(path: string): void {
    this.#decoded.forget(path)
  }

  /** Nothing is read any more. */
  close(): void {
    this.#isClosed = true
    this.#decoded.clear()
  }

  /** @returns the raw batches of a block that is decoded already, valid in this turn; else `load` it. */
  decoded(segment: Segment, position: number): Uint8Array | undefined {
    return this.#decoded.find(segment, position)
  }

  /**
   * Decodes the first block of a run and gives its raw batches to `use` before anything else runs; then the others, which the
   * same reader wants.
   *
   * @throws as a rejection EDGE_BATCH_CORRUPT, EDGE_DECRYPT_FAILED, EDGE_IO: of the first block.
   */
  load(segment: Segment, run: Run<BlockRange>, use: UseBlock): Promise<void> {
    const running = this.#find(segment, run[0])
    if (running !== undefined) {
      running.users.push(use)
      return running.ended.promise
    }
    const readings = this.#begin(segment, run, this.maxRun)
    const [first] = readings
    first.users.push(use)
    void this.#run(readings)
    return first.ended.promise
  }

  /** Decodes what a reader that goes on will want next, in a later turn: first it is to have what it asked for. */
  readAhead(segment: Segment, run: readonly BlockRange[]): void {
    if (this.#readsAhead >= MAX_READS_AHEAD || this.#missingOf(segment, run) === undefined) return
    this.#readsAhead++
    void this.#nextTurn()
      .then(() => this.#runAhead(segment, run))
      .finally(() => this.#readsAhead--)
  }

  async #runAhead(segment: Segment, run: readonly BlockRange[]): Promise<void> {
    const missing = this.#isClosed ? undefined : this.#missingOf(segment, run)
    if (missing !== undefined) await this.#run(this.#begin(segment, missing, this.#decoded.aheadCount))
  }

  /** What is left of the run behind what is there already. */
  #missingOf(segment: Segment, run: readonly BlockRange[]): Run<BlockRange> | undefined {
    const start = run.findIndex((range) => !this.#isThere(segment, range))
    const [first, ...others] = run.slice(start)
    return start < 0 || first === undefined ? undefined : [first, ...others]
  }

  #find(segment: Segment, { position }: BlockRange): Reading | undefined {
    return this.#reading.find((reading) => reading.range.position === position && reading.segment === segment)
  }

  #isThere(segment: Segment, range: BlockRange): boolean {
    return this.#decoded.has(segment, range.position) || this.#find(segment, range) !== undefined
  }

  /** The run as far as it is to be read: up to what is there already, and not more than the memory is good for. */
  #begin(segment: Segment, [first, ...others]: Run<BlockRange>, maxCount: number): Run<Reading> {
    const isBeyond = (range: BlockRange, index: number): boolean =>
      index + 1 >= maxCount ||
      range.end === undefined ||
      range.end - first.position > MAX_RUN_SIZE ||
      this.#isThere(segment, range)
    const count = others.findIndex(isBeyond)
    const readingOf = (range: BlockRange): Reading => ({ segment, range, users: [], ended: Promise.withResolvers() })
    const wanted = count < 0 ? others : others.slice(0, count)
    const readings: Run<Reading> = [readingOf(first), ...wanted.map(readingOf)]
    // Whoever comes for it is told what is wrong with it.
    for (const { ended } of readings) ended.promise.catch(() => undefined)
    this.#reading.push(...readings)
    return readings
  }

  async #run(readings: Run<Reading>): Promise<void> {
    const { codec } = this.#options
    const [first] = readings
    let area: ByteArea
    try {
      area = await this.#read(first, readings.at(-1) ?? first)
    } catch (error) {
      // What cannot be read costs its own block, not its neighbours.
      if (readings.length === 1) this.#end(first, () => first.ended.reject(error))
      else for (const reading of readings) await this.#run([reading])
      return
    }
    const from = first.range.position
    let isAreaKept = false
    for (const reading of readings) {
      // Whoever has the block before answers with it meanwhile.
      if (reading !== first) await this.#nextTurn()
      try {
        const { block, rawSize } = this.#checked(reading, area, reading.range.position - from)
        const isAtOnce = rawSize <= MAX_SIZE_AT_ONCE
        if (!isAtOnce || !this.#keep(reading, rawSize, (place) => codec.decodeInto(block, place))) {
          const raw = await codec.decode(block, rawSize)
          if (raw.length !== rawSize) throw corrupt(reading.segment, reading.range.position)
          const isCopied = this.#keep(reading, rawSize, (place) => place.set(raw))
          if (!isCopied) for (const use of reading.users) use(raw, true)
          if (raw.buffer === area.bytes.buffer) isAreaKept ||= !isCopied
          else if (isCopied) discard(raw)
        }
        this.#end(reading, reading.ended.resolve)
      } catch (error) {
        this.#end(reading, () => reading.ended.reject(error))
      }
    }
    if (!isAreaKept) discard(area.bytes)
  }

  async #read(first: Reading, last: Reading): Promise<ByteArea> {
    const { segment } = first
    const handle = this.#options.file(segment.path)
    const from = first.range.position
    const bytes = new Uint8Array((last.range.end ?? endOf(handle, segment, last.range.position)) - from)
    const isAtHand = bytes.length <= MAX_RUN_SIZE && handle.readAtHand(bytes, from)
    const size = isAtHand ? bytes.length : await handle.readLater(bytes, from)
    return areaOf(bytes.subarray(0, size))
  }

  /** @param at where in the area the block lies. */
  #checked({ segment, range }: Reading, area: ByteArea, at: number): { block: EncodedBlock; rawSize: number } {
    const { bytes } = area
    const bodyAt = at + BLOCK_HEADER_SIZE
    const isHeaderThere = bodyAt <= bytes.length
    const { seed, sizeBytes } = segment
    const header = isHeaderThere ? decodeBlockHeader(area, at, seed, range.position, sizeBytes) : undefined
    const bodyEnd = bodyAt + (header?.storedSize ?? 0)
    if (header === undefined || bodyEnd > bytes.length) throw corrupt(segment, range.position)
    if (this.#options.checksum(bytes, bodyAt, bodyEnd, 0) !== header.bodyCrc) throw corrupt(segment, range.position)
    const body = openBlockBody(segment.cipher, header, bytes.subarray(bodyAt, bodyEnd))
    return { block: { codec: header.codec, bytes: body }, rawSize: header.rawSize }
  }

  /** Has the block put where it is kept, and lets its readers have it. @returns false for one that is too large for that. */
  #keep({ segment, range, users }: Reading, rawSize: number, fill: (place: Uint8Array) => void): boolean {
    const rawView = this.#decoded.claim(rawSize)
    if (rawView === undefined) return false
    fill(rawView)
    this.#decoded.add(segment, range.position, rawView, users.length === 0)
    for (const use of users) use(rawView, false)
    return true
  }

  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#options.scheduler.nextTurn(resolve))
  }

  #end(ended: Reading, settle: () => void): void {
    this.#reading = this.#reading.filter((reading) => reading !== ended)
    settle()
  }
}

function endOf(handle: LogFile, segment: Segment, position: number): number {
  const noting = new NotingFile(handle)
  const header = readBlockHeader(noting, segment.seed, position, segment.sizeBytes)
  if (header === undefined) throw noting.isRefused ? pagesRefused(segment.path) : corrupt(segment, position)
  return position + BLOCK_HEADER_SIZE + header.storedSize
}

function corrupt(segment: Segment, position: number): EdgeError {
  return new EdgeError('EDGE_BATCH_CORRUPT', `block at ${position} of ${segment.path} is damaged`, {
    details: { path: segment.path, position },
  })
}
