/** Takes messages away: purges, and segments that retention or an operator gives up. Never beside a repack. */
import { EdgeError } from '../errors.ts'
import { type FileSystem, isDone } from './io/file-system.ts'
import { refugeFolder } from './io/refuge.ts'
import type { SegmentFiles } from './io/segment-files.ts'
import type { LogPartition } from './partition.ts'
import type { DescriptorStore, DroppedSegments, SealedSegment } from './ports.ts'
import type { Scheduler } from './scheduler.ts'

/** Each takes a tenth of a millisecond, on a slow card one. */
const UNLINKED_PER_TURN = 32
/** Of a segment that was not read since the start the index is: a hundred KiB or two. */
const COUNTED_PER_TURN = 8

export interface SegmentRemovalOptions {
  readonly fileSystem: FileSystem
  readonly segmentFiles: SegmentFiles
  /** The oldest first: sealed files, and what is closed behind them in the journal. */
  readonly closedSegments: (partition: LogPartition) => readonly SealedSegment[]
  readonly descriptors: DescriptorStore
  readonly exclusive: <T>(task: () => Promise<T>) => Promise<T>
  /** Makes room for a record of what goes. @returns whether there is some now. */
  readonly makeRoom: () => boolean
  readonly changed: () => void
  readonly scheduler: Scheduler
  /** Rule left out by a test. */
  readonly isUnlinkedBeforeFloor: boolean
}

export class SegmentRemoval {
  readonly #options: SegmentRemovalOptions

  constructor(options: SegmentRemovalOptions) {
    this.#options = options
  }

  /** Drops everything that has an offset now. Durable when it resolves. */
  purge(partition: LogPartition): Promise<void> {
    const end = partition.beginPurge()
    return this.#options.exclusive(async () => void (await this.#dropBelow(partition, end)))
  }

  /** @param lastOffset that may go, null for no bound. @returns what was dropped, if anything was. */
  dropOldest(partition: LogPartition, count: number, lastOffset: bigint | null): Promise<DroppedSegments | undefined> {
    return this.#options.exclusive(async () => {
      // Looked at now: a repack that ran before may have made other segments of the same messages.
      const chosen = this.#options.closedSegments(partition).slice(0, count)
      const passing = chosen.findIndex(({ endOffset }) => lastOffset !== null && endOffset - 1n > lastOffset)
      const dropped = await this.#totalOf(passing < 0 ? chosen : chosen.slice(0, passing))
      // Counted meanwhile, it may be deleted by now: then nothing was dropped.
      const isDropped = dropped !== undefined && (await this.#dropBelow(partition, dropped.endOffset))
      return isDropped ? dropped : undefined
    })
  }

  /** Drops everything below, unless that turns out not to be needed any more. @returns whether it did. */
  dropTo(partition: LogPartition, offset: bigint, isStillNeeded: () => boolean): Promise<boolean> {
    return this.#options.exclusive(async () => {
      if (!isStillNeeded() || partition.isRemoved) return false
      await this.#dropBelow(partition, offset)
      return true
    })
  }

  /** The last segment grows no more. Never beside a repack, which may be writing to it. */
  sealActive(partition: LogPartition): Promise<void> {
    return this.#options.exclusive(async () => {
      const active = partition.segments.at(-1)
      if (active !== undefined) active.isClosed = true
    })
  }

  /** At open: a power cut may bring back what had been dropped. @returns what could not be removed: it does no harm. */
  unlinkBelow(partition: LogPartition, offset: bigint): readonly string[] {
    return this.#takeBelow(partition, offset).filter((path) => !isDone(() => this.#unlink(path)))
  }

  /** What lies in the refuge of a partition that was removed; a stop in the middle is made up at open. */
  clearRefuge(key: number): Promise<void> {
    const { fileSystem, exclusive } = this.#options
    const folder = refugeFolder(key)
    return exclusive(async () => {
      const paths = fileSystem.list(folder).map(({ name }) => `${folder}/${name}`)
      if (paths.length === 0) return
      await this.#unlinkInTurns(paths)
      fileSystem.removeDirectory(folder)
    })
  }

  /** Counted before the files go. What a segment holds may have to be read from it: others have their turn in between. */
  async #totalOf(segments: readonly SealedSegment[]): Promise<DroppedSegments | undefined> {
    const [first, last] = [segments.at(0), segments.at(-1)]
    if (first === undefined || last === undefined) return undefined
    let messageCount = 0
    let sizeBytes = 0
    for (const [at, segment] of segments.entries()) {
      if (at > 0 && at % COUNTED_PER_TURN === 0) await this.#nextTurn()
      messageCount += segment.messageCount
      sizeBytes += segment.sizeBytes
    }
    const { baseOffset: fromOffset } = first
    return { count: segments.length, fromOffset, endOffset: last.endOffset, messageCount, sizeBytes }
  }

  /** Thousands of files may go at once: others have their turn in between. A stop in the middle is made up at open. */
  async #unlinkInTurns(paths: readonly string[]): Promise<void> {
    for (const [at, path] of paths.entries()) {
      if (at > 0 && at % UNLINKED_PER_TURN === 0) await this.#nextTurn()
      this.#unlink(path)
    }
  }

  #nextTurn(): Promise<void> {
    return new Promise((resolve) => this.#options.scheduler.nextTurn(resolve))
  }

  #unlink(path: string): void {
    this.#options.segmentFiles.forget(path)
    this.#options.fileSystem.unlink(path)
  }

  /** @returns files that are read no more. */
  #takeBelow(partition: LogPartition, offset: bigint): readonly string[] {
    const gone = partition.segments.filter((segment) => segment.endOffset <= offset)
    partition.segments = partition.segments.filter((segment) => segment.endOffset > offset)
    for (const [baseOffset, segment] of partition.externals) {
      if (segment.endOffset > offset) continue
      partition.removeExternal(baseOffset)
      gone.push(segment)
    }
    for (const segment of gone) {
      this.#options.segmentFiles.removed(segment)
      if (segment.directory === partition.spec.directory) partition.areNamesDirty = true
      else partition.areRefugeNamesDirty = true
    }
    return gone.map(({ path }) => path)
  }

  /**
   * The floor is durable before the first file goes, else offsets could be given again after a crash.
   *
   * @returns whether anything was dropped: the partition may be deleted meanwhile, or begin above.
   */
  async #dropBelow(partition: LogPartition, offset: bigint): Promise<boolean> {
    if (offset <= partition.logStartOffset || partition.isRemoved) return false
    const { descriptors, isUnlinkedBeforeFloor, changed } = this.#options
    if (!isUnlinkedBeforeFloor) await this.#raiseFloor(partition.key, offset)
    if (partition.isRemoved) return false
    partition.dropBelow(offset)
    await this.#unlinkInTurns(this.#takeBelow(partition, offset))
    changed()
    if (isUnlinkedBeforeFloor) await descriptors.raiseFloor(partition.key, offset)
    return true
  }

  /** On a full disk the record needs room before what it frees is there. */
  async #raiseFloor(key: number, offset: bigint): Promise<void> {
    const { descriptors, makeRoom } = this.#options
    try {
      await descriptors.raiseFloor(key, offset)
    } catch (error) {
      const isFull = error instanceof EdgeError && error.code === 'EDGE_DISK_FULL'
      if (!isFull || !makeRoom()) throw error
      await descriptors.raiseFloor(key, offset)
    }
  }
}
