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

  startRecorded(): void {
    if (!this.#isMarkOld) return
    this.#isMarkOld = false
    clearFailureMark(this.#fileSystem)
  }
}
