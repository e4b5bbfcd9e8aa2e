/** Takes messages away: purges, and segments that retention or an operator gives up. None is taken out beside a repack. */
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

/** One partition's part of what goes at a time. */
interface Drop {
  readonly partition: LogPartition
  /** Exclusive end of what goes, found when its turn has come; undefined when nothing has to. */
  readonly endOf: () => Promise<bigint | undefined>
  readonly resolve: (isDropped: boolean) => void
  readonly reject: (error: unknown) => void
}

export class SegmentRemoval {
  readonly #options: SegmentRemovalOptions
  /** Not begun: what is asked for while others go is one step behind them, as the floors of a topic lie in one file. */
  #asked: Drop[] = []
  #unlinkedCount = 0
  #running: Promise<void> | null = null
  #isClosed = false

  constructor(options: SegmentRemovalOptions) {
    this.#options = options
  }

  /** What was asked for and not begun is refused; resolves when nothing goes any more. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#running
  }

  /** Drops everything that has an offset now. Durable when it resolves. */
  async purge(partition: LogPartition): Promise<void> {
    const end = partition.beginPurge()
    await this.#drop(partition, async () => end)
  }

  /** @param lastOffset that may go, null for no bound. @returns what was dropped, if anything was. */
  async dropOldest(
    partition: LogPartition,
    count: number,
    lastOffset: bigint | null,
  ): Promise<DroppedSegments | undefined> {
    let dropped: DroppedSegments | undefined
    const isDropped = await this.#drop(partition, async () => {
      // Looked at now: a repack that ran before may have made other segments of the same messages.
      const chosen = this.#options.closedSegments(partition).slice(0, count)
      const passing = chosen.findIndex(({ endOffset }) => lastOffset !== null && endOffset - 1n > lastOffset)
      dropped = await this.#totalOf(passing < 0 ? chosen : chosen.slice(0, passing))
      return dropped?.endOffset
    })
    // Counted meanwhile, it may be deleted by now: then nothing was dropped.
    return isDropped ? dropped : undefined
  }

  /** Drops everything below, unless that turns out not to be needed any more. @returns whether it did. */
  dropTo(partition: LogPartition, offset: bigint, isStillNeeded: () => boolean): Promise<boolean> {
    return this.#drop(partition, async () => (isStillNeeded() ? offset : undefined))
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
    for (const path of paths) {
      if (this.#isClosed) return
      // Counted on from one partition to the next, each of which may have few.
      if (++this.#unlinkedCount % UNLINKED_PER_TURN === 0) await this.#nextTurn()
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

  /** @returns whether anything was dropped: the partition may be deleted meanwhile, or begin above. */
  #drop(partition: LogPartition, endOf: Drop['endOf']): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new EdgeError('EDGE_SHUTTING_DOWN', 'the log is being closed')
      this.#asked.push({ partition, endOf, resolve, reject })
      this.#running ??= this.#dropAll()
    })
  }

  async #dropAll(): Promise<void> {
    while (this.#asked.length > 0) {
      // What is asked for until then goes along.
      await this.#options.exclusive(async () => {})
      // Each partition once: what is asked of it a second time is looked for when the first has gone.
      const first = new Map<LogPartition, Drop>()
      for (const drop of this.#asked) if (!first.has(drop.partition)) first.set(drop.partition, drop)
      this.#asked = this.#asked.filter((drop) => first.get(drop.partition) !== drop)
      const byTopic = Map.groupBy(first.values(), ({ partition: { spec } }) => `${spec.streamId}/${spec.topicId}`)
      for (const drops of byTopic.values()) await this.#dropTogether(drops)
    }
    this.#running = null
  }

  /**
   * Partitions of one topic. What one partition's files refuse holds up no other, and a repack goes on between two steps:
   * full journal files wait for it.
   */
  async #dropTogether(drops: readonly Drop[]): Promise<void> {
    const { exclusive, changed } = this.#options
    const ends = new Map<LogPartition, bigint>()
    const due = await among(drops, ({ partition, endOf }) =>
      exclusive(async () => {
        if (this.#isClosed) throw new EdgeError('EDGE_SHUTTING_DOWN', 'the log is being closed')
        const end = await endOf()
        if (end === undefined || end <= partition.logStartOffset || partition.isRemoved) return false
        ends.set(partition, end)
        return true
      }),
    )
    if (due.length === 0) return
    try {
      const gone = await exclusive(() => this.#dropBelow(ends))
      const dropped = await among(due, async ({ partition }) => {
        const paths = gone.get(partition)
        if (paths === undefined) return false
        await this.#unlinkInTurns(paths)
        return true
      })
      changed()
      for (const { resolve } of dropped) resolve(true)
    } catch (error) {
      for (const { reject } of due) reject(error)
    }
  }

  /**
   * The floors are durable before the first file goes, else offsets could be given again after a crash.
   *
   * @returns the files of each partition that was not deleted meanwhile: they are to be removed.
   */
  async #dropBelow(ends: ReadonlyMap<LogPartition, bigint>): Promise<ReadonlyMap<LogPartition, readonly string[]>> {
    const { isUnlinkedBeforeFloor } = this.#options
    const floors = new Map([...ends].map(([{ key }, end]) => [key, end]))
    const gone = new Map<LogPartition, readonly string[]>()
    if (!isUnlinkedBeforeFloor) await this.#raiseFloors(floors)
    for (const [partition, end] of ends) {
      if (partition.isRemoved) continue
      partition.dropBelow(end)
      gone.set(partition, this.#takeBelow(partition, end))
    }
    if (isUnlinkedBeforeFloor) {
      for (const path of [...gone.values()].flat()) this.#unlink(path)
      await this.#raiseFloors(floors)
    }
    return gone
  }

  /** On a full disk the record needs room before what it frees is there. */
  async #raiseFloors(floors: ReadonlyMap<number, bigint>): Promise<void> {
    const { descriptors, makeRoom } = this.#options
    try {
      await descriptors.raiseFloors(floors)
    } catch (error) {
      const isFull = error instanceof EdgeError && error.code === 'EDGE_DISK_FULL'
      if (!isFull || !makeRoom()) throw error
      await descriptors.raiseFloors(floors)
    }
  }
}

/** @returns those that go on; the others are told here: that nothing is dropped, or what failed. */
async function among(drops: readonly Drop[], goesOn: (drop: Drop) => Promise<boolean>): Promise<readonly Drop[]> {
  const left: Drop[] = []
  for (const drop of drops) {
    try {
      if (await goesOn(drop)) left.push(drop)
      else drop.resolve(false)
    } catch (error) {
      drop.reject(error)
    }
  }
  return left
}
