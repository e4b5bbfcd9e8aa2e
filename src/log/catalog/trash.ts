import { EdgeError } from '../../errors.ts'
import { listTold } from '../folder-trouble.ts'
import type { DirectoryEntry, FileSystem } from '../io/file-system.ts'
import type { ReportFinding } from '../ports.ts'
import type { Scheduler } from '../scheduler.ts'
import { numberOf, TRASH } from './layout.ts'

/** Files unlinked in one turn: a large file takes up to a millisecond on a slow card. */
const UNLINKS_PER_TURN = 8
/** Files measured in one turn, before they are removed: some microseconds each. */
const MEASURED_PER_TURN = 64
/** After a refused removal (read-only disk, I/O error) the rest waits this long. */
const RETRY_DELAY_MS = 60_000

export interface TrashOptions {
  readonly fileSystem: FileSystem
  readonly scheduler: Scheduler
  readonly report: ReportFinding
}

/**
 * Takes deleted folders by one rename, which is the delete, and measures and removes their files a few per turn. What a crash leaves is
 * removed after the next start; whatever lies in the trash is deleted for good, whoever put it there.
 */
export class Trash {
  readonly #options: TrashOptions
  #nextNumber: number
  #cancel: (() => void) | null = null
  #isClosed = false
  #isFailing = false
  /** Where the removal is: a folder of thousands of files is listed once, not again for every few of them. */
  #removal: Iterator<void> | undefined
  /** Entries that were not looked at yet. */
  readonly #unmeasured: DirectoryEntry[]
  #measuring: Iterator<number> | undefined
  #sizeBytes = 0

  constructor(options: TrashOptions) {
    this.#options = options
    const entries = listTold(options, TRASH) ?? []
    this.#nextNumber = Math.max(0, ...entries.map(({ name }) => numberOf(name) ?? 0)) + 1
    this.#unmeasured = [...entries]
  }

  /** Bytes of what lies here, as far as it is measured: of what came a moment ago it is not. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Moves a folder here, in this turn. Not durable until `settle`. @throws EDGE_IO: it is still where it was. */
  take(path: string): void {
    const name = String(this.#nextNumber)
    this.#options.fileSystem.rename(path, `${TRASH}/${name}`)
    this.#nextNumber++
    this.#unmeasured.push({ name, isDirectory: true })
  }

  /** Makes earlier `take`s durable; `parents` are the folders they came from. Then removal begins. */
  async settle(parents: readonly string[]): Promise<void> {
    for (const parent of parents) await this.#options.fileSystem.syncDirectory(parent)
    await this.#options.fileSystem.syncDirectory(TRASH)
    this.startRemoval()
  }

  /** Removes what lies here, a few files per turn. */
  startRemoval(): void {
    if (this.#isClosed || this.#cancel !== null) return
    this.#cancel = this.#options.scheduler.after(0, () => this.#turn())
  }

  close(): void {
    this.#isClosed = true
    this.#cancel?.()
    this.#cancel = null
  }

  #turn(): void {
    this.#cancel = null
    let delayMs = 0
    try {
      if (this.#removeSome()) return
      this.#isFailing = false
    } catch (error) {
      if (!(error instanceof EdgeError)) throw error
      this.#reportOnce(error)
      delayMs = RETRY_DELAY_MS
    }
    if (!this.#isClosed) this.#cancel = this.#options.scheduler.after(delayMs, () => this.#turn())
  }

  /** @returns whether the trash is empty. */
  #removeSome(): boolean {
    if (this.#isMeasuring()) return false
    const removal = this.#removal ?? this.#removeAll()
    // A step that fails ends it: the next try looks at what is there then.
    this.#removal = undefined
    for (let unlinks = 0; unlinks < UNLINKS_PER_TURN; unlinks++) {
      if (removal.next().done === true) return this.#isEmpty()
    }
    this.#removal = removal
    return false
  }

  #isEmpty(): boolean {
    const isEmpty = this.#options.fileSystem.list(TRASH).length === 0
    // What could not be measured, or changed since, is gone as well.
    if (isEmpty) this.#sizeBytes = 0
    return isEmpty
  }

  /** Looks at a few files. @returns whether that was a turn's work. */
  #isMeasuring(): boolean {
    for (let looks = 0; looks < MEASURED_PER_TURN; looks++) {
      const entry = this.#measuring === undefined ? this.#unmeasured.shift() : undefined
      const measuring = entry === undefined ? this.#measuring : this.#sizesIn(TRASH, entry)
      if (measuring === undefined) return false
      // One that fails ends here: what it did not see counts for nothing.
      this.#measuring = undefined
      const { value, done } = measuring.next()
      if (done === true) continue
      this.#sizeBytes += value
      this.#measuring = measuring
    }
    return true
  }

  *#sizesIn(folder: string, { name, isDirectory }: DirectoryEntry): Generator<number> {
    const { fileSystem } = this.#options
    const path = `${folder}/${name}`
    if (!isDirectory) yield fileSystem.sizeOf(path)
    else for (const entry of fileSystem.list(path)) yield* this.#sizesIn(path, entry)
  }

  /** One file or folder a step. */
  *#removeAll(): Generator<void> {
    for (const { name, isDirectory } of this.#options.fileSystem.list(TRASH)) {
      yield* this.#remove(`${TRASH}/${name}`, isDirectory)
    }
  }

  /** Depth first. */
  *#remove(path: string, isDirectory: boolean): Generator<void> {
    const { fileSystem } = this.#options
    if (isDirectory) {
      for (const entry of fileSystem.list(path)) yield* this.#remove(`${path}/${entry.name}`, entry.isDirectory)
      fileSystem.removeDirectory(path)
    } else {
      const sizeBytes = fileSystem.sizeOf(path)
      fileSystem.unlink(path)
      this.#sizeBytes = Math.max(0, this.#sizeBytes - sizeBytes)
    }
    yield
  }

  #reportOnce(error: EdgeError): void {
    if (!this.#isFailing) {
      const text = `deleted files cannot be removed, tried again every ${RETRY_DELAY_MS / 1000} s: ${error.message}`
      this.#options.report({ event: 'log.trash.stuck', level: 'warn', text, fields: { error_code: error.code } })
    }
    this.#isFailing = true
  }
}
