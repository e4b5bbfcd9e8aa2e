/** What is told and left behind when the disk fails: findings, and the mark for the next process. */
import type { EdgeError } from '../errors.ts'
import { clearFailureMark, isFailureMarked, markFailure } from './io/failure-mark.ts'
import type { FileSystem } from './io/file-system.ts'
import type { JournalFile } from './io/journal-file.ts'
import type { ReportFinding } from './ports.ts'

export class DiskTrouble {
  /** An earlier process of this machine start saw a sync fail. */
  readonly wasMarked: boolean
  readonly #fileSystem: FileSystem
  readonly #report: ReportFinding
  /** The mark is taken away once this start is on record, unless a sync fails here as well. */
  #isMarkOld: boolean
  #isLargeRefused = false

  constructor(fileSystem: FileSystem, report: ReportFinding) {
    this.#fileSystem = fileSystem
    this.#report = report
    this.wasMarked = isFailureMarked(fileSystem)
    this.#isMarkOld = this.wasMarked
  }

  failed(error: EdgeError, file: JournalFile | undefined, isRefusing: boolean): void {
    markFailure(this.#fileSystem)
    this.#isMarkOld = false
    this.#report({
      // Tried again file by file: it is one loss.
      ...(error.details.isDisplaced === true ? { series: 'displaced' } : {}),
      event: isRefusing ? 'log.append.refused' : 'log.sync.failed',
      level: 'error',
      text: isRefusing
        ? `the disk refuses, appends are refused until it takes them again: ${error.message}`
        : `a sync failed, the file is given up and its last messages are written again: ${error.message}`,
      fields: { error_code: error.code, journal_file: file?.number ?? -1 },
    })
  }

  ended(): void {
    this.#report({ event: 'log.append.resumed', level: 'warn', text: 'the disk takes appends again', fields: {} })
  }

  /** A large batch has its file, or the disk refused it, while small ones may still find room in the journal. Told once. */
  stored(refusal: EdgeError | undefined): void {
    const isRefused = refusal !== undefined
    if (isRefused === this.#isLargeRefused) return
    this.#isLargeRefused = isRefused
    if (!isRefused) {
      const text = 'the disk takes large batches again'
      this.#report({ event: 'log.append.resumed', level: 'warn', text, fields: {} })
      return
    }
    this.#report({
      event: 'log.append.large_refused',
      level: 'error',
      text: `the disk refuses large batches, their senders are told to try again: ${refusal.message}`,
      fields: { error_code: refusal.code },
    })
  }

  startRecorded(): void {
    if (!this.#isMarkOld) return
    this.#isMarkOld = false
    clearFailureMark(this.#fileSystem)
  }
}
