/** What surrounds the engine in `log-world.ts`: a catalog whose floors take time to be durable. */
import { EdgeError } from '../../src/errors.ts'
import type { LogPartition } from '../../src/log/partition.ts'
import type { DescriptorStore, HintStore, Jump, PartitionHint, PartitionSpec } from '../../src/log/ports.ts'
import { LOG_SETTINGS, type LogSettings } from '../../src/log/settings.ts'
import { defaultsOf } from '../../src/setting.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { EventSink } from './sim-disk.ts'
import { topicOptions } from './topic-options.ts'

/** Descriptors that are durable as soon as they are written, and a floor that is so some time later. */
export class FakeCatalog implements DescriptorStore {
  readonly #specs = new Map<number, PartitionSpec>()
  readonly #process: () => EventSink
  readonly #random: SeededRandom
  readonly #lost = new Map<number, PartitionSpec>()
  readonly #pending: { key: number; floorOffset: bigint }[] = []
  nextKey = 1

  constructor(process: () => EventSink, random: SeededRandom) {
    this.#process = process
    this.#random = random
  }

  get firstLostKey(): number {
    return this.nextKey
  }

  specs(): readonly PartitionSpec[] {
    return [...this.#specs.values()]
  }

  create(isBuffered: boolean): PartitionSpec {
    const key = this.nextKey++
    const spec: PartitionSpec = {
      key,
      streamId: 0,
      topicId: key,
      partitionId: 0,
      createdAtUs: 0n,
      idSeed: 1n,
      directory: `streams/0/topics/${key}/${key}`,
      floorOffset: 0n,
      options: topicOptions(isBuffered ? 'buffered' : 'durable'),
    }
    this.#specs.set(key, spec)
    return spec
  }

  /** Nothing here has a name. */
  readonly streams = new Map()
  readonly trashBytes = 0

  remove(key: number): void {
    this.#specs.delete(key)
  }

  /** The newest descriptor, its copy and the key floor are gone, as after an old backup came back. */
  loseNewest(): void {
    const spec = this.#specs.get(this.nextKey - 1)
    if (spec === undefined) return
    this.#specs.delete(spec.key)
    this.nextKey--
    this.#lost.set(spec.key, spec)
  }

  /** The same folder again: an older one with segments would have been found by the catalog. */
  adopt(key: number): PartitionSpec {
    const spec = this.#lost.get(key)
    if (spec === undefined) throw new Error(`J12: key ${key} was never lost`)
    this.#specs.set(key, spec)
    return spec
  }

  async keepAdopted(): Promise<void> {
    this.nextKey = Math.max(this.nextKey, ...[...this.#specs.keys()].map((key) => key + 1))
  }

  raiseFloors(floors: ReadonlyMap<number, bigint>): Promise<void> {
    const changes = [...floors].map(([key, floorOffset]) => ({ key, floorOffset }))
    this.#pending.push(...changes)
    return new Promise((resolve) => {
      this.#process().later('sync', () => {
        for (const change of changes) this.#apply(change)
        resolve()
      })
    })
  }

  /** What was on its way reached the disk or not. */
  crash(): void {
    for (const change of [...this.#pending]) if (this.#random.chance(0.5)) this.#apply(change)
    this.#pending.length = 0
  }

  #apply(change: { key: number; floorOffset: bigint }): void {
    const at = this.#pending.indexOf(change)
    if (at >= 0) this.#pending.splice(at, 1)
    const spec = this.#specs.get(change.key)
    if (spec === undefined || spec.floorOffset >= change.floorOffset) return
    this.#specs.set(change.key, { ...spec, floorOffset: change.floorOffset })
  }
}

/** Hardly anything of it is synced: a power cut brings back what there was at an earlier open, or nothing. */
export class FakeHints implements HintStore {
  readonly #hints = new Map<number, PartitionHint>()
  #files: readonly number[] = []
  #durableFiles: readonly number[] = []
  #owed: ReadonlyMap<number, bigint> = new Map()
  #jumps: ReadonlyMap<number, readonly Jump[]> = new Map()

  hint(key: number): PartitionHint | undefined {
    return this.#hints.get(key)
  }

  setHints(hints: ReadonlyMap<number, PartitionHint>): void {
    for (const [key, hint] of hints) this.#hints.set(key, hint)
  }

  journalFiles(): readonly number[] {
    return this.#files
  }

  setJournalFiles(generations: readonly number[], isDurable: boolean): void {
    this.#files = generations
    if (isDurable) this.#durableFiles = generations
  }

  owedOffsets(): ReadonlyMap<number, bigint> {
    return this.#owed
  }

  keepOwedOffsets(owed: ReadonlyMap<number, bigint>): void {
    this.#owed = owed
  }

  jumps(): ReadonlyMap<number, readonly Jump[]> {
    return this.#jumps
  }

  keepJumps(jumps: ReadonlyMap<number, readonly Jump[]>): void {
    this.#jumps = jumps
  }

  opened(): this {
    this.#durableFiles = this.#files
    return this
  }

  lose(): void {
    this.#hints.clear()
    this.#files = this.#durableFiles
  }
}

export interface Given {
  readonly baseOffset: bigint
  readonly ids: readonly number[]
}

/** What the outside knows of one partition. */
export class Known {
  readonly isBuffered: boolean
  given: Given[] = []
  readonly seen = new Map<bigint, number>()
  writtenAck = 0n
  durableAck = 0n
  isDeleted = false
  appendCount = 0
  settledCount = 0
  purgedTo = 0n
  droppableTo = 0n
  readonly damaged: { from: bigint; end: bigint }[] = []

  constructor(isBuffered: boolean) {
    this.isBuffered = isBuffered
  }
}

export const JOURNAL_FILE_SIZE = 32 * 1024

export const SETTINGS: LogSettings = {
  ...defaultsOf(LOG_SETTINGS),
  journal_file_size: JOURNAL_FILE_SIZE,
  journal_files: 4,
  flush_size: 2048,
  segment_size: 24 * 1024,
  append_retry: 100,
  repack_after: 3_600_000,
}

export function check(isTrue: boolean, invariant: string, detail: string): void {
  if (!isTrue) throw new Error(`${invariant}: ${detail}`)
}

export const isDamaged = (known: Known, offset: bigint): boolean =>
  known.damaged.some(({ from, end }) => from <= offset && offset < end)

export const max = (a: bigint, b: bigint): bigint => [a, b].reduce((left, right) => (left > right ? left : right))

/** Everything that only waits for other promises has run. */
export const drained = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export function ignore(): void {}

/** Where a batch lies in a journal file. */
export interface Placed {
  readonly partition: LogPartition
  readonly baseOffset: bigint
  readonly from: number
  readonly end: number
}

/** All batches of a journal file, by position. */
export function batchesIn(partitions: Iterable<LogPartition>, fileNumber: number): Placed[] {
  const placed: Placed[] = []
  for (const partition of partitions) {
    const { index } = partition
    for (let entry = 0; entry < index.count; entry++) {
      if (index.fileNumber(entry) !== fileNumber) continue
      const from = index.position(entry)
      placed.push({ partition, baseOffset: index.baseOffset(entry), from, end: from + index.size(entry) })
    }
  }
  return placed.sort((a, b) => a.from - b.from)
}

/** A log may have no room, behind a large batch or while one is given up. */
export function isTaken(append: () => void): boolean {
  try {
    append()
    return true
  } catch (error) {
    if (error instanceof EdgeError && error.code === 'EDGE_BACKPRESSURE') return false
    throw error
  }
}
