import { EdgeError } from '../../errors.ts'
import { listTold } from '../folder-trouble.ts'
import type { FileSystem } from '../io/file-system.ts'
import type { ReportFinding } from '../ports.ts'
import type { Scheduler } from '../scheduler.ts'
import { numberOf, TRASH } from './layout.ts'

/** Files unlinked in one turn: a large file takes up to a millisecond on a slow card. */
const UNLINKS_PER_TURN = 8
/** After a refused removal (read-only disk, I/O error) the rest waits this long. */
const RETRY_DELAY_MS = 60_000

export interface TrashOptions {
  readonly fileSystem: FileSystem
  readonly scheduler: Scheduler
  readonly report: ReportFinding
}

/**
 * Takes deleted folders by one rename, which is the delete, and removes their files a few per turn. What a crash leaves is
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

  constructor(options: TrashOptions) {
    this.#options = options
    const numbers = (listTold(options, TRASH) ?? []).map(({ name }) => numberOf(name) ?? 0)
    this.#nextNumber = Math.max(0, ...numbers) + 1
  }

  /** Moves a folder here, in this turn. Not durable until `settle`. @throws EDGE_IO: it is still where it was. */
  take(path: string): void {
    this.#options.fileSystem.rename(path, `${TRASH}/${this.#nextNumber}`)
    this.#nextNumber++
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
    const removal = this.#removal ?? this.#removeAll()
    // A step that fails ends it: the next try looks at what is there then.
    this.#removal = undefined
    for (let unlinks = 0; unlinks < UNLINKS_PER_TURN; unlinks++) {
      if (removal.next().done === true) return this.#options.fileSystem.list(TRASH).length === 0
    }
    this.#removal = removal
    return false
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
    } else fileSystem.unlink(path)
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
