/**
 * Background work of the engine, one task at a time: repacking, preparing journal files, and whatever must not run beside
 * them (purges, dropped segments). Driven by events; after a failure it tries again by itself.
 */
import type { Clock } from '../clock.ts'
import { type EdgeError, toEdgeError } from '../errors.ts'
import type { Written } from './core/flash-budget.ts'
import { Ballast, DROP_RESERVE, RESERVE } from './io/ballast.ts'
import type { FileSystem } from './io/file-system.ts'
import type { Journal } from './io/journal.ts'
import type { JournalFile } from './io/journal-file.ts'
import type { JournalFiles } from './io/journal-files.ts'
import type { LogPartition } from './partition.ts'
import type { ReportFinding } from './ports.ts'
import type { Scheduler } from './scheduler.ts'

export interface MaintenanceOptions {
  readonly fileSystem: FileSystem
  readonly clock: Clock
  readonly scheduler: Scheduler
  readonly files: JournalFiles
  readonly fileCount: number
  readonly fileSize: number
  readonly retryMs: number
  readonly repackAfterUs: number
  readonly report: ReportFinding
  readonly repack: (file: JournalFile) => Promise<readonly LogPartition[]>
  /** Before a file is recycled. @throws when the checkpoint could not be written: the file is kept. */
  readonly checkpoint: (packed: readonly LogPartition[]) => void
  readonly journal: Journal
  readonly changed: () => void
  readonly written: Written
  readonly isHoldIgnored: boolean
}

/** Files that must be prepared before the first append is taken; the others follow in the background. */
const FILES_AT_START = 2
/** How often the age of the active file is looked at. */
const AGE_CHECKS = 4

export class Maintenance {
  readonly #options: MaintenanceOptions
  #last: Promise<unknown> = Promise.resolve()
  /** Tasks that have not begun. */
  #waitingCount = 0
  #isRunning = false
  #isAskedAgain = false
  #isClosed = false
  #cancelTimer: (() => void) | undefined
  #lastFailure: string | undefined
  #isReserveTold = false
  #cancelRetry: (() => void) | undefined
  readonly #reserve: Ballast
  readonly #dropReserve: Ballast

  constructor(options: MaintenanceOptions) {
    const { fileSystem, fileSize, written } = options
    this.#options = options
    const sizeBytes = Math.max(RESERVE.minBytes, fileSize)
    this.#reserve = new Ballast({ fileSystem, path: RESERVE.path, sizeBytes, written })
    this.#dropReserve = new Ballast({ fileSystem, ...DROP_RESERVE, written })
  }

  /** Bytes kept for a full disk. */
  get reserveBytes(): number {
    return this.#reserve.heldBytes + this.#dropReserve.heldBytes
  }

  /** On a full disk: room to put on record what is dropped. @returns whether there is some now. */
  giveUpDropReserve(): boolean {
    return this.#dropReserve.giveUp()
  }

  /** The disk is full: full journal files cannot be repacked, and who appends waits for one. */
  get isStuck(): boolean {
    const { files, journal } = this.#options
    const isWaited = files.active === undefined && files.spareCount === 0 && journal.hasUnsynced
    return isWaited && this.#lastFailure === 'EDGE_DISK_FULL'
  }

  get isBusy(): boolean {
    return this.#isRunning
  }

  /** Makes the first files; resolves when appends have somewhere to go, or are known to have to wait. */
  async start(): Promise<void> {
    this.#reserve.find()
    this.#dropReserve.find()
    await this.exclusive(async () => {
      const { files } = this.#options
      try {
        await files.prepareFree()
        const isStuck = files.active === undefined && files.spareCount === 0 && this.#options.journal.hasUnsynced
        while (
          files.all.length < Math.min(FILES_AT_START, this.#options.fileCount) ||
          (isStuck && files.spareCount === 0)
        ) {
          await this.#addFile()
        }
      } catch (error) {
        this.#failed(toEdgeError(error))
      }
    })
    this.#options.journal.fileReady()
    this.kick()
    this.#watchAge()
  }

  /** Runs `task` when no other task runs. */
  exclusive<T>(task: () => Promise<T>): Promise<T> {
    this.#waitingCount++
    const run = this.#last.then(() => {
      this.#waitingCount--
      return task()
    })
    this.#last = run.catch(() => {})
    return run
  }

  /** There may be something to do. */
  kick(): void {
    if (this.#isClosed) return
    if (this.#isRunning) {
      this.#isAskedAgain = true
      return
    }
    this.#isRunning = true
    this.#isAskedAgain = false
    void this.exclusive(() => this.#work()).then(() => {
      this.#isRunning = false
      if (this.#isAskedAgain) this.kick()
    })
  }

  /** Ends after the running task. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer?.()
    this.#cancelRetry?.()
    await this.#last
  }

  async #work(): Promise<void> {
    const { files, journal } = this.#options
    try {
      await files.prepareFree()
      journal.fileReady()
      for (let file = this.#next(); file !== undefined && !this.#isClosed; file = this.#next()) {
        await this.#repack(file)
        // Under load there is always another file: a purge must not wait for the load to end.
        if (this.#waitingCount > 0) {
          this.#isAskedAgain = true
          return
        }
      }
      if (this.#isClosed) return
      await this.#addMissing()
      await this.#removeExtra()
      await this.#restoreReserves()
      this.#lastFailure = undefined
    } catch (error) {
      this.#failed(toEdgeError(error))
    }
  }

  #next(): JournalFile | undefined {
    return this.#options.files.repackable(this.#options.isHoldIgnored)[0]
  }

  async #repack(file: JournalFile): Promise<void> {
    const { files, repack, checkpoint, journal, changed } = this.#options
    const packed = await repack(file)
    checkpoint(packed)
    // Set and prepared without a step between that could fail: recovery ignores what segments hold as well.
    file.state = 'free'
    changed()
    await files.prepareFree()
    journal.fileReady()
  }

  async #addMissing(): Promise<void> {
    const { files, fileCount, journal } = this.#options
    // All sealed files wait for their last groups to be written again: one more file, so that this can happen.
    const isStuck = files.active === undefined && files.spareCount === 0 && journal.hasUnsynced
    while (files.all.length < fileCount || (isStuck && files.spareCount === 0)) {
      if (this.#isClosed) return
      await this.#addFile()
    }
  }

  /** Idle again: what was made while failures held all files is given back, as far as it is empty. */
  async #removeExtra(): Promise<void> {
    const { files, fileCount } = this.#options
    while (files.all.length > fileCount && !this.#isClosed) if (!(await files.removeSpare())) return
  }

  /** Nothing waits for them before the disk is full: what keeps them from being made is told, and all else goes on. */
  async #restoreReserves(): Promise<void> {
    try {
      await this.#dropReserve.restore()
      await this.#reserve.restore()
      this.#isReserveTold = false
    } catch (error) {
      const failure = toEdgeError(error)
      if (failure.code === 'EDGE_DISK_FULL') throw failure
      if (!this.#isReserveTold) {
        const text = `the room kept for a full disk cannot be made: ${failure.message}`
        this.#options.report({
          event: 'log.reserve.failed',
          level: 'warn',
          text,
          fields: { error_code: failure.code },
        })
      }
      this.#isReserveTold = true
    }
  }

  async #addFile(): Promise<void> {
    await this.#options.files.add()
    await this.#options.files.prepareFree()
    this.#options.journal.fileReady()
  }

  #failed(error: EdgeError): void {
    const { report, scheduler, retryMs, files, changed } = this.#options
    if (error.code === 'EDGE_DISK_FULL') {
      if (files.spareCount === 0 && this.#reserve.giveUp()) {
        scheduler.nextTurn(() => this.kick())
        return
      }
      // Topics that may drop their oldest do so now, not at the next time of the schedule.
      changed()
    }
    if (this.#lastFailure !== error.code) {
      const text = `messages cannot be moved into segments, tried again every ${retryMs} ms: ${error.message}`
      report({ event: 'log.repack.failed', level: 'error', text, fields: { error_code: error.code } })
    }
    this.#lastFailure = error.code
    this.#cancelRetry?.()
    this.#cancelRetry = scheduler.after(retryMs, () => this.kick())
  }

  // ---- age ----------------------------------------------------------------------------------------------------------

  /** A file that holds messages for long is left before it is full, so that they can be dropped by age one day. */
  #watchAge(): void {
    const { scheduler, repackAfterUs, files, clock, journal } = this.#options
    const check = (): void => {
      if (this.#isClosed) return
      const firstUs = files.active?.firstGroupUs
      if (firstUs !== undefined && clock.monotonicUs() - firstUs >= repackAfterUs) journal.leaveFile()
      this.#cancelTimer = scheduler.after(repackAfterUs / 1000 / AGE_CHECKS, check)
    }
    this.#cancelTimer = scheduler.after(repackAfterUs / 1000 / AGE_CHECKS, check)
  }
}
